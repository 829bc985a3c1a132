package store_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/store"
	"github.com/penstock-project/penstock/pkg/store/chain"
	"github.com/penstock-project/penstock/pkg/store/claim"
	"github.com/penstock-project/penstock/pkg/store/gc"
	"github.com/penstock-project/penstock/pkg/store/identity"
	"github.com/penstock-project/penstock/pkg/store/pack"
	"github.com/penstock-project/penstock/pkg/store/references"
	"github.com/penstock-project/penstock/pkg/store/run"
	"github.com/penstock-project/penstock/pkg/store/storetest"
)

// update writes a file of the current stored form, in addition to the existing files. A released
// file must never be written again.
var update = flag.Bool("update", false, "write testdata/stores/<name>.json anew, for a format that no release has written")

// newest is the file with the currently written form. A changed form needs a new file name, so that
// the old form stays and remains readable. The previous release must be able to read the current
// form (docs/operations/upgrade.md).
const newest = "2026-11-deltas.json"

const prefix = "/penstock"

// sample holds the content of a store with a record of each kind.
type sample struct {
	identity identity.Identity
	objects  []manifest.Object
	// next are the manifests of the next revision, a delta. Older stores do not have it.
	next      []manifest.Object
	inventory chain.Inventory
	// elsewhere is the inventory of a chain that names its target. Older stores do not have it.
	elsewhere chain.Inventory
	head      chain.Head
	runs      []run.Row
}

func newSample(t *testing.T) sample {
	t.Helper()
	noon := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	s := sample{
		identity: identity.Identity{ID: "6d758d4d-3e56-4c5c-8bb3-67c88ae562d5", Format: identity.Format, CreatedAt: noon},
		inventory: chain.Inventory{
			Entries: []chain.Entry{{Version: "v1", Kind: "ConfigMap", Namespace: "argocd", Name: "settings", UID: "o-1", Revision: 1,
				Digest: "sha256:ab", ManagedEntry: "m", Generation: 1, ResourceVersion: "5", Rank: 2, Yielded: []string{".data.a"}}},
			Reached: map[string]int{"u-1": 2}, Levels: map[string]bool{"u-1": true},
			Deletions: []chain.Deletion{{At: noon, Objects: 3}},
		},
		head: chain.Head{Name: "argocd", OwnerUID: "owner", Highest: 1, HighestUID: "u-1", Confirmed: true, Succeeded: true,
			Rows: []chain.Row{{Revision: 1, UID: "u-1", CreatedAt: noon, RequestedBy: "jane", Result: "Succeeded", Version: "v1.2.3"}}},
		runs: []run.Row{{Plan: "p-1", Number: 1, Body: json.RawMessage(`{"phase":"Done"}`)}},
	}
	s.elsewhere = s.inventory
	s.elsewhere.Cluster = "f491102b-5d2c-4b0e-9f5c-0f7a2b8f5a11"
	copy(s.identity.SecretKey[:], "a key of a test, nobody else's...")
	for _, text := range []string{
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"settings","namespace":"argocd"},"data":{"a":"1"}}`,
		`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"token","namespace":"argocd"},"stringData":{"token":"none"}}`,
	} {
		s.objects = append(s.objects, s.object(t, text))
	}
	s.next = append(slices.Clone(s.objects), s.object(t, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"more","namespace":"argocd"},"data":{"a":"2"}}`))
	return s
}

func (s sample) object(t *testing.T, text string) manifest.Object {
	t.Helper()
	object, err := s.digester().FromJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return object
}

func rootOf(objects []manifest.Object) string {
	var refs []manifest.Ref
	for _, object := range objects {
		refs = append(refs, object.Ref)
	}
	return pack.Root(refs)
}

func (s sample) digester() manifest.Digester {
	return manifest.Digester{SecretKey: s.identity.SecretKey[:]}
}

// write writes the store as the current Penstock does.
func (s sample) write(t *testing.T, client *clientv3.Client) {
	t.Helper()
	ctx, heads := t.Context(), chain.NewHeads(client, prefix)
	_, _, err := identity.NewStore(client, prefix).Create(ctx, s.identity)
	for _, step := range []func() error{
		func() error { _, err := pack.New(client, prefix, s.digester()).Put(ctx, s.objects); return err },
		func() error {
			_, err := pack.New(client, prefix, s.digester()).PutInChain(ctx, s.next, []string{rootOf(s.objects)})
			return err
		},
		func() error { return heads.Advance(ctx, chain.Head{Name: "argocd"}, 1, "u-1") },
		func() error { return heads.Confirm(ctx, "argocd", 1, "u-1", s.head.Rows[0]) },
		func() error { return heads.SetOwner(ctx, "argocd", "owner") },
		func() error { return heads.Succeed(ctx, "argocd", 1, "u-1", chain.Row{}) },
		func() error {
			_, err := chain.NewInventories(client, prefix).Save(ctx, "argocd", s.inventory, 0)
			return err
		},
		func() error {
			_, err := chain.NewInventories(client, prefix).Save(ctx, "elsewhere", s.elsewhere, 0)
			return err
		},
		func() error { return claim.New(client, prefix).Acquire(ctx, "profile/a", "plan-a") },
		func() error { return run.New(client, prefix).Put(ctx, "plan-a", s.runs[0]) },
	} {
		if err == nil {
			err = step()
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}

// read returns all content of the store, by kind.
func (s sample) read(t *testing.T, client *clientv3.Client) (map[string]any, map[string]error) {
	t.Helper()
	ctx := t.Context()
	found, errs := map[string]any{}, map[string]error{}
	found["identity"], _, errs["identity"] = identity.NewStore(client, prefix).Read(ctx)
	found["head"], _, errs["head"] = chain.NewHeads(client, prefix).Get(ctx, "argocd")
	found["inventory"], _, errs["inventory"] = chain.NewInventories(client, prefix).Load(ctx, "argocd")
	if elsewhere, revision, err := chain.NewInventories(client, prefix).Load(ctx, "elsewhere"); revision > 0 || err != nil {
		found["elsewhere"], errs["elsewhere"] = elsewhere, err
	}
	found["claim"], errs["claim"] = claim.New(client, prefix).Holder(ctx, "profile/a")
	found["runs"], errs["runs"] = run.New(client, prefix).List(ctx, "plan-a")
	packs := pack.New(client, prefix, s.digester())
	roots, err := packs.Roots(ctx)
	if err != nil {
		t.Fatal(err)
	}
	found["pack"], errs["pack"] = packs.Objects(ctx, rootOf(s.objects))
	if slices.Contains(roots, rootOf(s.next)) {
		found["delta"], errs["delta"] = packs.Objects(ctx, rootOf(s.next))
	}
	return found, errs
}

// want returns the expected content of a file.
func (s sample) want(file string) map[string]any {
	file = filepath.Base(file)
	all := map[string]any{"identity": s.identity, "head": s.head, "inventory": s.inventory, "claim": "plan-a", "runs": s.runs, "pack": s.objects}
	if file == newest || file == "2026-11-targets.json" {
		all["elsewhere"] = s.elsewhere
	}
	if file == newest {
		all["delta"] = s.next
		return all
	}
	earlier := s.identity
	earlier.Format = 1
	all["identity"] = earlier
	return all
}

func dump(t *testing.T, client *clientv3.Client) map[string][]byte {
	t.Helper()
	response, err := client.Get(t.Context(), prefix, clientv3.WithPrefix())
	if err != nil {
		t.Fatal(err)
	}
	records := map[string][]byte{}
	for _, kv := range response.Kvs {
		records[string(kv.Key)] = kv.Value
	}
	return records
}

// load replaces the content of etcd.
func load(t *testing.T, client *clientv3.Client, records map[string][]byte) {
	t.Helper()
	_, err := client.Delete(t.Context(), prefix, clientv3.WithPrefix())
	for _, key := range slices.Sorted(maps.Keys(records)) {
		if err == nil {
			_, err = client.Put(t.Context(), key, string(records[key]))
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}

// headerBytes is the length of a record's magic and format.
const headerBytes = 4

// TestStoresOfBefore: every stored format can be read. Records of the current Penstock equal the
// records of the newest file. Records of a newer Penstock are refused.
func TestStoresOfBefore(t *testing.T) {
	client, s := storetest.Client(t), newSample(t)
	s.write(t, client)
	today := dump(t, client)
	path := filepath.Join("testdata", "stores", newest)
	if *update {
		save(t, path, today)
	}
	files, err := filepath.Glob(filepath.Join("testdata", "stores", "*.json"))
	if err != nil || !slices.Contains(files, path) {
		t.Fatalf("%s is not among %v: %v", path, files, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) {
			load(t, client, open(t, file))
			found, errs := s.read(t, client)
			for kind, err := range errs {
				if err != nil {
					t.Errorf("%s: %v", kind, err)
				}
			}
			if diff := cmp.Diff(s.want(file), found, cmp.AllowUnexported(manifest.Object{})); diff != "" {
				t.Errorf("what was written is not what is read (-want +got):\n%s", diff)
			}
		})
	}
	t.Run("Today", func(t *testing.T) {
		before := open(t, path)
		if diff := cmp.Diff(slices.Sorted(maps.Keys(before)), slices.Sorted(maps.Keys(today))); diff != "" {
			t.Errorf("other keys are written than %s says (-want +got):\n%s", newest, diff)
		}
		for key, record := range today {
			if want := before[key]; len(want) >= headerBytes && !bytes.Equal(record[:headerBytes], want[:headerBytes]) {
				t.Errorf("%s is written as %q, and %s says %q: a new format needs a file of its own, see its comment", key, record[:headerBytes], newest, want[:headerBytes])
			}
		}
	})
	t.Run("Newer", func(t *testing.T) {
		newer := maps.Clone(today)
		for key, record := range newer {
			record = bytes.Clone(record)
			record[headerBytes-1] = 0xff
			newer[key] = record
		}
		load(t, client, newer)
		_, errs := s.read(t, client)
		for kind, err := range errs {
			var format *store.FormatError
			if !errors.As(err, &format) || !strings.Contains(err.Error(), "run the newer one") {
				t.Errorf("%s of a newer format is not refused as such: %v", kind, err)
			}
		}
	})
}

// TestStoreOfBeforeShrinks: the store is from the time when packs were whole and never deleted. Its
// next revision is a delta. A collection then deletes unreferenced packs.
func TestStoreOfBeforeShrinks(t *testing.T) {
	client, s := storetest.Client(t), newSample(t)
	load(t, client, open(t, filepath.Join("testdata", "stores", "2026-11-targets.json")))
	identities := identity.NewStore(client, prefix)
	raised, err := identities.Raise(t.Context())
	if diff := cmp.Diff(s.identity, raised); diff != "" || err != nil {
		t.Fatalf("the identity, error %v (-want +got):\n%s", err, diff)
	}
	packs := pack.New(client, prefix, s.digester())
	if _, err := packs.PutInChain(t.Context(), s.next, []string{rootOf(s.objects)}); err != nil {
		t.Fatal(err)
	}
	refer := references.Decoders{"claim": func(string, []byte) ([]string, error) { return []string{rootOf(s.next)}, nil }}
	collector := gc.New(client, references.NewSource(client, prefix, refer), packs)
	if err := collector.Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	done, err := collector.Collect(t.Context())
	if diff := cmp.Diff(gc.Result{Packs: 1, Rebased: 1, Present: 1}, done); diff != "" || err != nil {
		t.Errorf("collected, error %v (-want +got):\n%s", err, diff)
	}
	if found, err := packs.Objects(t.Context(), rootOf(s.next)); err != nil || len(found) != len(s.next) {
		t.Errorf("%d objects are left, error %v", len(found), err)
	}
}

func save(t *testing.T, path string, records map[string][]byte) {
	t.Helper()
	raw, err := json.MarshalIndent(records, "", "  ")
	if err == nil {
		err = os.WriteFile(path, append(raw, '\n'), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func open(t *testing.T, path string) map[string][]byte {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	records := map[string][]byte{}
	if err := json.Unmarshal(raw, &records); err != nil {
		t.Fatal(err)
	}
	return records
}
