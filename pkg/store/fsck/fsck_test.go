package fsck

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/store"
	"github.com/penstock-project/penstock/pkg/store/chain"
	"github.com/penstock-project/penstock/pkg/store/pack"
	"github.com/penstock-project/penstock/pkg/store/references"
	"github.com/penstock-project/penstock/pkg/store/storetest"
)

const prefix = "/p"

// TestCheck damages a store in every known way, one after the other.
func TestCheck(t *testing.T) {
	etcd := storetest.Client(t)
	ctx, keys := t.Context(), store.NewKeys(prefix)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	put := func(key, value string) {
		t.Helper()
		_, err := etcd.Put(ctx, key, value)
		must(err)
	}
	record := func(name string) string { return keys.All() + "g.io/clusterextensionrevisions/" + name }
	source := references.NewSource(etcd, prefix, references.Decoders{revisions: func(key string, record []byte) ([]string, error) {
		if string(record) == "damaged" {
			return nil, &store.DamagedError{Kind: "object", Key: key, Err: errors.New("by the test")}
		}
		return []string{string(record)}, nil
	}})
	packs := pack.New(etcd, prefix, manifest.Digester{})
	roots := map[string]string{}
	fill := func() {
		_, err := etcd.Delete(ctx, keys.All(), clientv3.WithPrefix())
		must(err)
		var before []string
		for i, name := range []string{"a-1", "a-2", "a-3"} {
			object, err := manifest.Digester{}.FromJSON([]byte(fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"},"data":{"k":%q}}`, randomText()+name)))
			must(err)
			root, err := packs.PutInChain(ctx, []manifest.Object{object}, before)
			must(err)
			roots[name], before = root, append(before, root)
			put(record(name), root)
			must(chain.NewHeads(etcd, prefix).Confirm(ctx, "a", int64(i+1), "uid", chain.Row{}))
		}
		_, err = chain.NewInventories(etcd, prefix).Save(ctx, "a", chain.Inventory{Entries: []chain.Entry{{Version: "v1", Kind: "ConfigMap", Name: "c"}}}, 0)
		must(err)
	}
	flip := func(key string) {
		t.Helper()
		found, err := store.Get(ctx, etcd, key)
		must(err)
		found.Bytes[len(found.Bytes)-1] ^= 1
		put(key, string(found.Bytes))
	}
	remove := func(key string) { _, err := etcd.Delete(ctx, key); must(err) }

	for name, tc := range map[string]struct {
		damage func()
		want   []string
	}{
		"clean":             {damage: func() {}},
		"a revision":        {damage: func() { put(record("a-2"), "damaged") }, want: []string{"Unreadable " + record("a-2")}},
		"a head":            {damage: func() { flip(keys.Head("a")) }, want: []string{"Unreadable " + keys.Head("a")}},
		"an inventory":      {damage: func() { flip(keys.Inventory("a")) }, want: []string{"Unreadable " + keys.Inventory("a")}},
		"another's head":    {damage: func() { found, _ := store.Get(ctx, etcd, keys.Head("a")); put(keys.Head("b"), string(found.Bytes)) }, want: []string{"Unreadable " + keys.Head("b")}},
		"a claim":           {damage: func() { put(keys.Claim("x"), "no") }, want: []string{"Unreadable " + keys.Claim("x")}},
		"the identity":      {damage: func() { put(keys.Identity(), "no") }, want: []string{"Unreadable " + keys.Identity()}},
		"no head":           {damage: func() { remove(keys.Head("a")) }, want: []string{"Stray " + keys.Inventory("a")}},
		"bytes of a delta":  {damage: func() { flip(keys.Pack(roots["a-2"])) }, want: []string{"Corrupt /p/packs/a-2/pack"}},
		"bytes of the base": {damage: func() { flip(keys.Pack(roots["a-1"])) }, want: []string{"Corrupt /p/packs/a-1/pack", "Corrupt /p/packs/a-2/pack", "Corrupt /p/packs/a-3/pack"}},
		"no pack":           {damage: func() { remove(keys.Pack(roots["a-3"])) }, want: []string{"Missing /p/packs/a-3/pack"}},
		"no base":           {damage: func() { remove(keys.Pack(roots["a-1"])) }, want: []string{"Missing /p/packs/a-1/pack", "Missing /p/packs/a-2/pack", "Missing /p/packs/a-3/pack"}},
		"no revision":       {damage: func() { remove(record("a-3")) }, want: []string{"LeftOver /p/packs/a-3/pack"}},
		"no first revision": {damage: func() { remove(record("a-1")) }},
		"a part":            {damage: func() { put(keys.Chunk(roots["a-1"], "00"), "x") }, want: []string{"LeftOver /p/packs/a-1/chunks/00"}},
		"a candidate":       {damage: func() { put(keys.Candidate(roots["a-1"]), "") }, want: []string{"LeftOver /p/packs/a-1/candidate"}},
		"a reservation":     {damage: func() { remove(record("a-3")); put(keys.Reservation(roots["a-3"], 1), "") }},
		"a newer format":    {damage: func() { put(keys.Pack(roots["a-3"]), "PKP\x7f") }, want: []string{"Unreadable /p/packs/a-3/pack"}},
	} {
		fill()
		tc.damage()
		report, err := Check(ctx, Options{Source: source, KV: etcd, Prefix: prefix})
		must(err)
		var got []string
		for _, problem := range report.Problems {
			key := problem.Key
			for name, root := range roots {
				key = strings.ReplaceAll(key, root, name)
			}
			got = append(got, string(problem.Kind)+" "+key)
			if problem.Message == "" || problem.Repair == "" {
				t.Errorf("%s: a problem that says too little: %+v", name, problem)
			}
		}
		slices.Sort(got)
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if name == "clean" {
			if len(report.Extensions) != 1 || report.Extensions[0].Name != "a" || report.Extensions[0].Revisions != 3 || report.Extensions[0].Bytes <= report.PackBytes || report.Deltas != 2 {
				t.Errorf("sizes: %+v", report)
			}
		}
	}
}

// randomText returns text that does not compress, so a pack with it is stored as a delta.
func randomText() string {
	random := rand.New(rand.NewPCG(1, 2))
	text := make([]byte, 2000)
	for i := range text {
		text[i] = byte('0' + random.IntN(64))
	}
	return string(text)
}
