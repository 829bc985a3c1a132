package olm_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apiserver/pkg/admission"

	hub "github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/store/archive"
	"github.com/penstock-project/penstock/pkg/store/chain"
)

var then = time.Date(2025, 1, 2, 3, 4, 5, 0, time.UTC)

// archived builds archives of the chain e, as from another store.
type archived struct {
	t     *testing.T
	chain archive.Chain
	items []archive.Item
}

// elsewhere returns the digester of a store with another key.
func elsewhere() manifest.Digester {
	return manifest.Digester{SecretKey: []byte("another key, as of another store")}
}

func newArchived(t *testing.T) *archived {
	return &archived{t: t, chain: archive.Chain{Name: "e"}}
}

// deleted adds the row of a deleted revision.
func (a *archived) deleted(number int64) *archived {
	a.chain.Highest = max(a.chain.Highest, number)
	a.chain.History = append(a.chain.History, archive.Row{Revision: number, CreatedAt: then, DeletedAt: then.Add(time.Hour), Result: "Succeeded", RequestedBy: "carol"})
	return a
}

// revision adds a revision, which must be newer than the revisions before.
func (a *archived) revision(number int64, state string, change func(*archive.Revision), manifests ...object) *archived {
	a.t.Helper()
	entries, objects := []any{}, []manifest.Object{}
	for _, m := range manifests {
		made, err := elsewhere().New(m)
		if err != nil {
			a.t.Fatal(err)
		}
		objects = append(objects, made)
		entries = append(entries, object{"apiVersion": made.APIVersion(), "kind": made.Kind, "namespace": made.Namespace, "name": made.Name, "digest": made.Digest})
	}
	previous := []any{}
	if number > 1 {
		previous = append(previous, object{"name": fmt.Sprintf("e-%d", number-1)})
	}
	spec, err := json.Marshal(object{
		"revision": number, "lifecycleState": state, "collisionProtection": "Prevent", "teardownPolicy": "Delete",
		"previous": previous,
		"phases":   []any{object{"name": "one", "objects": entries}},
	})
	if err != nil {
		a.t.Fatal(err)
	}
	revision := &archive.Revision{
		Number: number, Labels: map[string]string{"penstock.dev/chain": "e"}, CreatedAt: then.Add(time.Duration(number) * time.Minute),
		RequestedBy: "dave", Succeeded: true, CompletedAt: then.Add(time.Hour), Spec: spec,
	}
	if change != nil {
		change(revision)
	}
	a.chain.Highest = max(a.chain.Highest, number)
	a.chain.Revisions = slices.Insert(a.chain.Revisions, 0, number)
	a.chain.History = append(a.chain.History, archive.Row{
		Revision: number, CreatedAt: revision.CreatedAt, CompletedAt: revision.CompletedAt, RequestedBy: "dave", Result: "Succeeded",
		Counts: &archive.Counts{Objects: len(objects), Changed: 1},
	})
	a.items = slices.Insert(a.items, 0, archive.Item{Revision: revision, Objects: objects})
	return a
}

func (a *archived) String() string {
	a.t.Helper()
	var out bytes.Buffer
	w, err := archive.NewWriter(&out)
	if err == nil {
		err = w.Chain(a.chain)
	}
	for _, item := range a.items {
		err = errors.Join(err, w.Revision(*item.Revision, item.Objects))
	}
	if err = errors.Join(err, w.Close()); err != nil {
		a.t.Fatal(err)
	}
	return out.String()
}

func (s *server) imported(name, query string, body any) response {
	s.t.Helper()
	return s.do(call{method: http.MethodPost, path: histories + "/" + name + "/import" + query, body: fmt.Sprint(body), user: "bob"})
}

// sample returns a chain with a deleted, an archived and an active revision.
func sample(t *testing.T) *archived {
	return newArchived(t).deleted(1).
		revision(2, "Archived", func(r *archive.Revision) {
			r.Annotations = map[string]string{"penstock.dev/rollback-of": "e-1", "penstock.dev/allow-crd-deletion": "x.y", "penstock.dev/acknowledge-deletion": "1-a", "penstock.dev/release-hold": "e-1", "mine": "yes"}
		}, configMap("a", "1"), secret("s", "x")).
		revision(3, "Active", nil, configMap("a", "2"), secret("s", "x"))
}

func TestImport(t *testing.T) {
	s := newServer(t, settings{})
	s.unchanged(func() {
		s.imported("e", "?check=true", sample(t)).want(t, http.StatusOK)
	})
	s.imported("e", "", sample(t)).want(t, http.StatusCreated)

	second, third := s.get("e-2"), s.get("e-3")
	for _, want := range []struct {
		reason   string
		revision object
		path     []any
		value    any
	}{
		{"it was created then", second, []any{"metadata", "creationTimestamp"}, "2025-01-02T03:06:05Z"},
		{"by whom is told", second, []any{"metadata", "annotations", "penstock.dev/requested-by"}, "dave"},
		{"who asked here is who has the rights here", second, []any{"status", "requestedBy", "username"}, "bob"},
		{"only the server can say so", second, []any{"metadata", "annotations", "penstock.dev/rollback-of"}, "e-1"},
		{"what the user said", second, []any{"metadata", "annotations", "mine"}, "yes"},
		{"an acknowledgement was for its time", second, []any{"metadata", "annotations", "penstock.dev/allow-crd-deletion"}, nil},
		{"as this one", second, []any{"metadata", "annotations", "penstock.dev/acknowledge-deletion"}, nil},
		{"and this one", second, []any{"metadata", "annotations", "penstock.dev/release-hold"}, nil},
		{"nobody will see it succeed any more", second, []any{"status", "conditions", 1, "type"}, "Succeeded"},
		{"as it was", second, []any{"spec", "lifecycleState"}, "Archived"},
		{"this store has to see that itself", third, []any{"status", "conditions", 0, "status"}, "Unknown"},
		{"and nothing is known yet", third, []any{"status", "conditions", 1}, nil},
		{"what it followed", third, []any{"spec", "previous", 0, "uid"}, at(second, "metadata", "uid")},
		{"what is not here has no uid", second, []any{"spec", "previous", 0, "uid"}, nil},
		{"the finalizer is ours", third, []any{"metadata", "finalizers", 0}, "penstock.dev/teardown"},
		{"sizes are the server's", third, []any{"spec", "phases", 0, "objects", 0, "size"}, float64(len(`{"apiVersion":"v1","data":{"k":"2"},"kind":"ConfigMap","metadata":{"name":"a","namespace":"default"}}`))},
		{"but for Secrets", third, []any{"spec", "phases", 0, "objects", 1, "size"}, nil},
		{"the first generation", third, []any{"metadata", "generation"}, float64(1)},
	} {
		if diff := cmp.Diff(want.value, at(want.revision, want.path...)); diff != "" {
			t.Errorf("%v: %s (-want +got):\n%s", want.path, want.reason, diff)
		}
	}

	// Digests of Secrets use the key of this store. They are equal in both revisions, in diffs, and
	// for a user who creates the next revision.
	digest := at(third, "spec", "phases", 0, "objects", 1, "digest")
	if theirs, _ := elsewhere().New(secret("s", "x")); digest == string(theirs.Digest) || digest != at(second, "spec", "phases", 0, "objects", 1, "digest") {
		t.Errorf("the Secret has the digests %v and %v", digest, at(second, "spec", "phases", 0, "objects", 1, "digest"))
	}
	diff := s.do(call{path: revisions + "/e-3/diff"}).want(t, http.StatusOK).body
	if got := at(diff, "summary", "unchanged"); got != float64(1) {
		t.Errorf("between the revisions %v objects are unchanged, want the Secret", got)
	}
	if raw := s.do(call{path: revisions + "/e-3/manifests"}).want(t, http.StatusOK).raw; !strings.Contains(raw, `"password":"x"`) {
		t.Errorf("the Secret's manifest is not there: %s", raw)
	}

	// Numbers that were used cannot be used again.
	s.create(file("e-3", inline(configMap("a", "3")))).want(t, http.StatusConflict)
	s.create(file("e-1", inline(configMap("a", "3")))).want(t, http.StatusUnprocessableEntity)
	s.rollback("e-2", "", "bob", nil).want(t, http.StatusCreated)
	if got := at(s.get("e-4"), "metadata", "annotations", "penstock.dev/requested-by"); got != nil {
		t.Errorf("a rollback was requested by %v", got)
	}
}

func TestImportHistory(t *testing.T) {
	s := newServer(t, settings{})
	a := sample(t)
	a.chain.Hold = &archive.Hold{Revision: 3, OwnerGeneration: 9}
	got := s.imported("e", "", a).want(t, http.StatusCreated).body
	want := []any{
		object{"name": "e-1", "revision": 1.0, "state": "Deleted", "result": "Succeeded", "createdAt": "2025-01-02T03:04:05Z", "deletedAt": "2025-01-02T04:04:05Z", "requestedBy": "carol"},
		object{"name": "e-2", "revision": 2.0, "state": "Archived", "result": "Succeeded", "createdAt": "2025-01-02T03:06:05Z", "completedAt": "2025-01-02T04:04:05Z", "requestedBy": "dave", "rollbackOf": "e-1",
			"objects": 2.0, "changes": object{"added": 0.0, "changed": 1.0, "removed": 0.0}},
		object{"name": "e-3", "revision": 3.0, "state": "Active", "createdAt": "2025-01-02T03:07:05Z", "requestedBy": "dave",
			"objects": 2.0, "changes": object{"added": 0.0, "changed": 1.0, "removed": 0.0}},
	}
	if diff := cmp.Diff(want, got["revisions"]); diff != "" {
		t.Errorf("history (-want +got):\n%s", diff)
	}
	// The owner does not exist in this cluster, so its generation has no meaning: the owner is
	// held.
	if diff := cmp.Diff(object{"revision": "e-3"}, got["hold"]); diff != "" {
		t.Errorf("hold (-want +got):\n%s", diff)
	}
}

// TestImportHistoryOfOlder: an imported active revision that is not the newest keeps its result
// from the archive.
func TestImportHistoryOfOlder(t *testing.T) {
	s := newServer(t, settings{})
	a := newArchived(t).revision(1, "Active", nil, configMap("a", "1")).revision(2, "Paused", nil, configMap("a", "2"))
	got := s.imported("e", "", a).want(t, http.StatusCreated).body
	first := at(got, "revisions", 0)
	if at(first, "result") != "Succeeded" || at(first, "completedAt") != "2025-01-02T04:04:05Z" {
		t.Errorf("e-1: %v", first)
	}
}

// TestImportPastIsNotForClients: only an import can give a revision a past.
func TestImportPastIsNotForClients(t *testing.T) {
	s := newServer(t, settings{})
	s.create(with(file("e-1", inline(configMap("a", "1"))), object{"penstock.dev/requested-by": "root"}, "metadata", "annotations")).want(t, http.StatusCreated)
	if got := at(s.get("e-1"), "metadata", "annotations", "penstock.dev/requested-by"); got != nil {
		t.Errorf("a client said that %v requested it", got)
	}
}

func TestImportPaused(t *testing.T) {
	s := newServer(t, settings{})
	s.imported("e", "?paused=true", sample(t)).want(t, http.StatusCreated)
	for name, want := range map[string]string{"e-2": "Archived", "e-3": "Paused"} {
		if got := at(s.get(name), "spec", "lifecycleState"); got != want {
			t.Errorf("%s is %v, want %s", name, got, want)
		}
	}
}

// TestImportArmsNothing: an automatic rollback writes without a requester. So the rights of the
// user who enables it are checked against all revisions of the chain. An import checks its
// revisions one by one, so it cannot enable automatic rollback.
func TestImportArmsNothing(t *testing.T) {
	armed := func(r *archive.Revision) {
		r.Spec = []byte(strings.Replace(string(r.Spec), `"revision"`, `"onFailure":"Rollback","progressDeadlineMinutes":5,"revision"`, 1))
	}
	s := newServer(t, settings{})
	got := s.imported("e", "", newArchived(t).
		revision(1, "Archived", armed, configMap("a", "1")).
		revision(2, "Paused", armed, configMap("a", "2")).
		revision(3, "Active", armed, configMap("a", "3"))).want(t, http.StatusCreated)
	for name, want := range map[string]string{
		"e-1": "Rollback", // unchanged: an archived revision never rolls back
		"e-2": "Rollback", // the rights of the user who resumes it are checked
		"e-3": "None",
	} {
		if got := at(s.get(name), "spec", "onFailure"); got != want {
			t.Errorf("onFailure of %s is %v, want %s", name, got, want)
		}
	}
	if len(got.warnings) != 1 || !strings.Contains(got.warnings[0], "e-3") || !strings.Contains(got.warnings[0], "onFailure") {
		t.Errorf("warnings: %q", got.warnings)
	}
}

func TestImportOwners(t *testing.T) {
	owner := archive.Owner{APIVersion: "olm.operatorframework.io/v1", Kind: "ClusterExtension", Name: "e", UID: "u", Controller: true}
	owned := func(t *testing.T) *archived {
		a := newArchived(t).revision(1, "Active", func(r *archive.Revision) { r.Owners = []archive.Owner{owner} }, configMap("a", "1"))
		a.chain.Hold = &archive.Hold{Revision: 1, OwnerGeneration: 9}
		return a
	}
	t.Run("Here", func(t *testing.T) {
		s := newServer(t, settings{owners: &owners{generation: 9}})
		s.imported("e", "", owned(t)).want(t, http.StatusCreated)
		want := []any{object{"apiVersion": owner.APIVersion, "kind": owner.Kind, "name": "e", "uid": "u", "controller": true}}
		if diff := cmp.Diff(want, at(s.get("e-1"), "metadata", "ownerReferences")); diff != "" {
			t.Errorf("owners (-want +got):\n%s", diff)
		}
		if head, _, err := s.heads.Get(t.Context(), "e"); err != nil || head.Hold == nil || head.Hold.OwnerGeneration != 9 {
			t.Errorf("the owner is held by %+v, error %v", head.Hold, err)
		}
	})
	t.Run("Elsewhere", func(t *testing.T) {
		s := newServer(t, settings{owners: &owners{err: errors.New("it has another uid")}})
		got := s.imported("e", "", owned(t)).want(t, http.StatusCreated)
		if references := at(s.get("e-1"), "metadata", "ownerReferences"); references != nil {
			t.Errorf("garbage collection would follow %v", references)
		}
		if len(got.warnings) != 1 || !strings.Contains(got.warnings[0], "without their owner ClusterExtension e: it has another uid") {
			t.Errorf("warnings: %q", got.warnings)
		}
	})
}

// TestImportRefused: a refused import writes nothing visible.
func TestImportRefused(t *testing.T) {
	replace := func(old, change string) func(*archive.Revision) {
		return func(r *archive.Revision) { r.Spec = []byte(strings.Replace(string(r.Spec), old, change, 1)) }
	}
	last := func(change func(*archive.Revision)) func(*archived) {
		return func(a *archived) { change(a.items[1].Revision) }
	}
	cases := map[string]struct {
		reason string
		change func(*archived)
		raw    string
		query  string
		want   int
		says   string
	}{
		"NoArchive":      {reason: "something else", raw: "hello", want: http.StatusBadRequest, says: "not a Penstock archive"},
		"CutOff":         {reason: "found at the end", raw: sample(t).String()[:900], want: http.StatusBadRequest, says: "reading an archive"},
		"OtherChain":     {reason: "the name is what rights are for", change: func(a *archived) { a.chain.Name = "f" }, want: http.StatusBadRequest, says: "has extension f"},
		"Query":          {reason: "a misspelt check would write", query: "?check=yes", want: http.StatusBadRequest, says: "want true or false"},
		"Bare":           {reason: "so would one that says nothing", query: "?check", want: http.StatusBadRequest, says: "want true or false"},
		"DryRun":         {reason: "it has another name here", query: "?dryRun=All", want: http.StatusBadRequest, says: "dryRun"},
		"UnknownField":   {reason: "a newer Penstock's", change: last(replace(`"revision":2`, `"revision":2,"more":1`)), want: http.StatusBadRequest, says: "unknown field"},
		"OtherNumber":    {reason: "spec says another number", change: last(replace(`"revision":2`, `"revision":7`)), want: http.StatusBadRequest, says: "number 7 in its spec"},
		"Invalid":        {reason: "the older revision, which comes last", change: last(replace(`"Archived"`, `"Gone"`)), want: http.StatusUnprocessableEntity, says: "lifecycleState"},
		"NoManifest":     {reason: "a digest that nobody brings", change: func(a *archived) { a.items[1].Objects = a.items[1].Objects[1:] }, want: http.StatusBadRequest, says: "no manifest of ConfigMap"},
		"StrayManifest":  {reason: "a manifest that nobody names", change: func(a *archived) { a.items[1].Objects = append(a.items[1].Objects, a.items[0].Objects[0]) }, want: http.StatusBadRequest, says: "belong to no phase"},
		"OtherObject":    {reason: "the entry says another name", change: last(replace(`"name":"a"`, `"name":"b"`)), want: http.StatusUnprocessableEntity, says: "the manifest has"},
		"ForeignChain":   {reason: "a label that leads elsewhere", change: last(func(r *archive.Revision) { r.Labels = map[string]string{"penstock.dev/chain": "f"} }), want: http.StatusUnprocessableEntity, says: "penstock.dev/chain"},
		"InlineManifest": {reason: "past the checks of the archive", change: last(replace(`"kind":"ConfigMap"`, `"object":{"a":1},"kind":"ConfigMap"`)), want: http.StatusBadRequest, says: "no manifest of ConfigMap"},
	}
	s := newServer(t, settings{})
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := s.subtest(t)
			body := tc.raw
			if body == "" {
				a := sample(t)
				if tc.change != nil {
					tc.change(a)
				}
				body = a.String()
			}
			got := s.imported("e", tc.query, body).want(t, tc.want)
			if !strings.Contains(got.raw, tc.says) {
				t.Errorf("%s: %s", tc.reason, got.raw)
			}
			if list := s.do(call{path: revisions}).body["items"].([]any); len(list) > 0 {
				t.Errorf("%s: %d revisions were written", tc.reason, len(list))
			}
			if _, found, err := s.heads.Get(t.Context(), "e"); found || err != nil {
				t.Errorf("%s: the chain is known (error %v)", tc.reason, err)
			}
		})
	}
	s.imported("e", "", sample(t)).want(t, http.StatusCreated)
}

func TestImportRights(t *testing.T) {
	s := newServer(t, settings{})
	s.rules.deny("bob", "create clusterextensionrevisions")
	got := s.imported("e", "", sample(t)).want(t, http.StatusForbidden)
	if !strings.Contains(got.raw, "create clusterextensionrevisions") {
		t.Errorf("it says %s", got.raw)
	}
	s.rules.deny("eve", "create revisionhistories/import e")
	s.do(call{method: http.MethodPost, path: histories + "/e/import", body: sample(t).String(), user: "eve"}).want(t, http.StatusForbidden)

	// Every revision is admitted like a create by the caller, manifests included.
	s.do(call{method: http.MethodPost, path: histories + "/e/import", body: sample(t).String(), user: "alice"}).want(t, http.StatusCreated)
	var seen []string
	for _, a := range s.policy.seen {
		revision, ok := a.GetObject().(*hub.ClusterExtensionRevision)
		if !ok {
			continue
		}
		entry := revision.Spec.Phases[0].Objects[1]
		if a.GetOperation() != admission.Create || a.GetUserInfo().GetName() != "alice" || entry.Object == nil || !strings.Contains(string(entry.Object.Raw), "password") {
			t.Errorf("admission saw %s of %s by %s, with the Secret as %+v", a.GetOperation(), a.GetName(), a.GetUserInfo().GetName(), entry)
		}
		seen = append(seen, a.GetName())
	}
	if diff := cmp.Diff([]string{"e-3", "e-2"}, slices.Compact(seen)); diff != "" {
		t.Errorf("admitted (-want +got):\n%s", diff)
	}
}

// TestImportBegins: without the right to begin an extension, an archive uses up no numbers of its
// name.
func TestImportBegins(t *testing.T) {
	s := newServer(t, settings{})
	s.rules.deny("bob", "begin extensions e", "bypass privilegechecks e")
	for name, tc := range map[string]struct {
		archive *archived
		code    int
	}{
		"Nothing":    {newArchived(t).deleted(1), http.StatusForbidden},
		"Numbers":    {newArchived(t).revision(5000, "Active", nil, configMap("a", "1")), http.StatusForbidden},
		"BeyondLast": {newArchived(t).deleted(1 << 40), http.StatusBadRequest},
	} {
		t.Run(name, func(t *testing.T) {
			s.unchanged(func() { s.imported("e", "", tc.archive).want(t, tc.code) })
		})
	}
	s.imported("e", "", sample(t)).want(t, http.StatusCreated)
	// With the right to begin or to bypass, an archive with numbers only is imported, and the
	// answer reports it.
	for _, lacks := range []string{"bypass privilegechecks e", "begin extensions e"} {
		numbers := newArchived(t)
		numbers.chain.Highest = 1
		other := newServer(t, settings{})
		other.rules.deny("bob", lacks)
		other.imported("e", "", numbers).want(t, http.StatusCreated)
	}
}

func TestImportDeniedByPolicy(t *testing.T) {
	s := newServer(t, settings{})
	s.policy.deny = true
	s.imported("e", "", sample(t)).want(t, http.StatusForbidden)
	if _, found, err := s.heads.Get(t.Context(), "e"); found || err != nil {
		t.Errorf("the chain is known (error %v)", err)
	}
}

// TestImportTwice: only a chain that the store never had can be imported. Importing the same
// archive again is no error.
func TestImportTwice(t *testing.T) {
	s := newServer(t, settings{})
	s.imported("e", "", sample(t)).want(t, http.StatusCreated)
	before := s.get("e-3")
	s.unchanged(func() {
		s.imported("e", "", sample(t)).want(t, http.StatusOK)
		s.imported("e", "?check=true", sample(t)).want(t, http.StatusOK)
		other := newArchived(t).revision(1, "Active", nil, configMap("a", "1"))
		s.imported("e", "", other).want(t, http.StatusConflict)
	})
	if diff := cmp.Diff(before, s.get("e-3")); diff != "" {
		t.Errorf("it changed (-before +after):\n%s", diff)
	}

	existing := newServer(t, settings{})
	existing.create(file("e-1", inline(configMap("a", "1")))).want(t, http.StatusCreated)
	existing.unchanged(func() {
		got := existing.imported("e", "", sample(t)).want(t, http.StatusConflict)
		if !strings.Contains(got.raw, "only extensions that it never had") {
			t.Errorf("it says %s", got.raw)
		}
	})
}

// TestImportInterrupted: an import that was interrupted after any of its writes is finished by the
// same archive, and not by another archive.
func TestImportInterrupted(t *testing.T) {
	whole := newServer(t, settings{})
	whole.imported("e", "", sample(t)).want(t, http.StatusCreated)
	want, _, err := whole.heads.Get(t.Context(), "e")
	if err != nil {
		t.Fatal(err)
	}
	uids := map[string]any{}
	for _, name := range []string{"e-2", "e-3"} {
		uids[name] = at(whole.get(name), "metadata", "uid")
	}
	for name, written := range map[string][]string{"Head": nil, "Newest": {"e-3"}, "All": {"e-3", "e-2"}} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, settings{})
			s.imported("e", "", sample(t)).want(t, http.StatusCreated)
			s.interrupt(want, written)

			other := newArchived(t).revision(1, "Active", nil, configMap("a", "1"))
			got := s.imported("e", "", other).want(t, http.StatusConflict)
			if !strings.Contains(got.raw, "import that one again") {
				t.Errorf("another archive: %s", got.raw)
			}
			s.imported("e", "?check=true", sample(t)).want(t, http.StatusOK)
			s.imported("e", "", sample(t)).want(t, http.StatusCreated)
			for name, uid := range uids {
				if got := at(s.get(name), "metadata", "uid"); got != uid {
					t.Errorf("%s has uid %v, want %v", name, got, uid)
				}
			}
			got2, _, err := s.heads.Get(t.Context(), "e")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got2); diff != "" {
				t.Errorf("head (-whole +interrupted):\n%s", diff)
			}
		})
	}
}

// TestImportInterruptedPaused: an interrupted import with paused revisions cannot be continued with
// active revisions, and vice versa.
func TestImportInterruptedPaused(t *testing.T) {
	for query, other := range map[string]string{"?paused=true": "", "": "?paused=true"} {
		s := newServer(t, settings{})
		s.imported("e", query, sample(t)).want(t, http.StatusCreated)
		head, _, err := s.heads.Get(t.Context(), "e")
		if err != nil {
			t.Fatal(err)
		}
		if query != "" {
			head.ImportedFrom += " paused"
		}
		s.interrupt(head, []string{"e-2"})
		got := s.imported("e", other, sample(t)).want(t, http.StatusConflict)
		if want := fmt.Sprintf("begun with paused=%t and is not finished: it cannot continue with paused=%t", query != "", other != ""); !strings.Contains(got.raw, want) {
			t.Errorf("begun with %q: got %s, want %q", query, got.raw, want)
		}
		s.imported("e", query, sample(t)).want(t, http.StatusCreated)
		if state := at(s.get("e-3"), "spec", "lifecycleState"); state == "Paused" != (query != "") {
			t.Errorf("begun with %q: e-3 is %v", query, state)
		}
	}
}

// TestImportSlowSender: a client that stops sending does not block other imports.
func TestImportSlowSender(t *testing.T) {
	s := newServer(t, settings{patience: 50 * time.Millisecond})
	body, sender := io.Pipe()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+histories+"/e/import", body)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Test-User", "bob")
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		// TestPatience checks the answer; here the connection may end first.
		if res, err := http.DefaultClient.Do(req); err == nil {
			_ = res.Body.Close()
		}
	}()
	text := newArchived(t).revision(1, "Active", nil, configMap("a", "1")).String()
	if _, err := sender.Write([]byte(text[:len(text)/2])); err != nil {
		t.Fatal(err)
	}
	s.imported("e", "", sample(t)).want(t, http.StatusCreated)
	_ = sender.Close()
	<-answered
}

// interrupt resets the store to the state in which an import had written some revisions.
func (s *server) interrupt(head chain.Head, written []string) {
	s.t.Helper()
	for _, name := range []string{"e-2", "e-3"} {
		if !slices.Contains(written, name) {
			s.remove(name)
		}
	}
	if _, err := s.etcd.Delete(s.t.Context(), prefix+"/chains/e/head"); err != nil {
		s.t.Fatal(err)
	}
	head.Importing, head.ImportedFrom = head.ImportedFrom, ""
	if _, err := s.heads.Import(s.t.Context(), head); err != nil {
		s.t.Fatal(err)
	}
}

// TestImportIsAStream: the body is streamed, with one revision in memory at a time.
func TestImportIsAStream(t *testing.T) {
	s := newServer(t, settings{maxBodyBytes: 1 << 10})
	a := newArchived(t)
	random := strings.Builder{}
	for i := range 2000 {
		fmt.Fprintf(&random, "%x", i*i*7919)
	}
	a.revision(1, "Active", nil, configMap("a", random.String()))
	if len(a.String()) < 2<<10 {
		t.Fatal("the archive is too small for this test")
	}
	s.imported("e", "", a).want(t, http.StatusCreated)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+histories+"/f/import", io.LimitReader(endless{}, 1<<30))
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return // a closed connection is accepted too
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusBadRequest {
		t.Errorf("something endless: status %d", res.StatusCode)
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}
