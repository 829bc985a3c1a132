package olm_test

import (
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"
	"sigs.k8s.io/yaml"

	hub "github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/store"
	"github.com/penstock-project/penstock/pkg/store/chain"
)

func TestCreate(t *testing.T) {
	s := newServer(t, settings{})
	s.create(file("e-1", inline(configMap("a", "1")))).want(t, http.StatusCreated)
	s.create(file("other-1", nil)).want(t, http.StatusCreated)
	third := with(file("e-3", inline(configMap("a", "1"), secret("b", "x"))), "mallory", "status", "requestedBy", "username")
	got := s.create(third).want(t, http.StatusCreated).body
	for _, volatile := range []string{"uid", "resourceVersion", "creationTimestamp", "managedFields"} {
		delete(got["metadata"].(object), volatile)
	}
	for _, i := range []int{0, 1} {
		delete(entry(got, i).(object), "digest")
	}
	want := object{
		"apiVersion": "olm.operatorframework.io/v1alpha1", "kind": "ClusterExtensionRevision",
		"metadata": object{
			"name": "e-3", "generation": float64(1),
			"labels":     object{"penstock.dev/chain": "e"},
			"finalizers": []any{"penstock.dev/teardown"},
		},
		"spec": object{
			"revision": float64(3), "lifecycleState": "Active", "collisionProtection": "Prevent", "teardownPolicy": "Delete", "adoptedTeardownPolicy": "Orphan", "onFailure": "None",
			"previous": []any{object{"name": "e-1", "uid": at(s.get("e-1"), "metadata", "uid")}},
			"phases": []any{object{"name": "one", "objects": []any{
				object{"apiVersion": "v1", "kind": "ConfigMap", "namespace": "default", "name": "a", "size": float64(101)},
				object{"apiVersion": "v1", "kind": "Secret", "namespace": "default", "name": "b"},
			}}},
		},
		"status": object{
			"requestedBy": object{
				"username": "alice", "uid": "uid-alice", "groups": []any{"devs", "system:authenticated"}, "extra": object{"scope": []any{"all"}},
			},
			"conditions": []any{object{
				"type": "Ready", "status": "Unknown", "reason": "Pending", "message": "Penstock has not looked at it yet",
				"lastTransitionTime": at(s.get("e-3"), "metadata", "creationTimestamp"),
			}},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("created (-want +got):\n%s", diff)
	}

	head, _, err := chain.NewHeads(s.etcd, prefix).Get(t.Context(), "e")
	if err != nil {
		t.Fatal(err)
	}
	if head.Highest != 3 || !head.Confirmed {
		t.Errorf("head is at %d, confirmed %v; want 3, confirmed", head.Highest, head.Confirmed)
	}
}

// TestPrevious: spec.previous lists the revisions that are not archived, newest first. A list from
// the client is kept.
func TestPrevious(t *testing.T) {
	s := newServer(t, settings{})
	for _, name := range []string{"e-1", "e-2", "e-3"} {
		s.create(file(name, nil)).want(t, http.StatusCreated)
	}
	s.patch("e-2", mergePatch, object{"spec": object{"lifecycleState": "Archived"}}).want(t, http.StatusOK)
	filled := s.create(file("e-4", nil)).want(t, http.StatusCreated)
	if got := []any{at(filled.body, "spec", "previous", 0, "name"), at(filled.body, "spec", "previous", 1, "name"), at(filled.body, "spec", "previous", 2)}; !cmp.Equal(got, []any{"e-3", "e-1", nil}) {
		t.Errorf("previous is %v, want e-3, e-1", got)
	}
	given := s.create(with(file("e-5", nil), []any{object{"name": "e-1"}}, "spec", "previous")).want(t, http.StatusCreated)
	if diff := cmp.Diff([]any{object{"name": "e-1"}}, at(given.body, "spec", "previous")); diff != "" {
		t.Errorf("previous as given (-want +got):\n%s", diff)
	}
}

// TestNothingIsStored: refused requests and dry-runs write nothing to etcd.
func TestNothingIsStored(t *testing.T) {
	s := newServer(t, settings{})
	s.create(file("e-2", inline(configMap("a", "1")))).want(t, http.StatusCreated)
	good := file("e-3", inline(configMap("a", "2")))
	nameless := configMap("", "1")

	for name, tc := range map[string]struct {
		reason string
		deny   bool
		send   func() response
		code   int
		causes []string
	}{
		"DryRunCreate": {
			reason: "dry-run answers and stores nothing",
			send: func() response {
				return s.do(call{method: http.MethodPost, path: revisions + "?dryRun=All", body: good})
			},
			code: http.StatusCreated,
		},
		"DryRunApply": {
			reason: "so does that of server-side apply",
			send:   func() response { return s.apply("kubectl&dryRun=All", good) },
			code:   http.StatusCreated,
		},
		"DeniedCreate": {reason: "the pack is written after the policies agreed", deny: true, send: func() response { return s.create(good) }, code: http.StatusForbidden},
		"DeniedApply":  {reason: "also for server-side apply", deny: true, send: func() response { return s.apply("kubectl", good) }, code: http.StatusForbidden},
		"BadManifest": {
			reason: "errors name phase, entry and field",
			send:   func() response { return s.create(file("e-3", inline(configMap("a", "1"), nameless))) },
			code:   http.StatusUnprocessableEntity,
			causes: []string{"spec.phases[0].objects[1].object.metadata.name"},
		},
		"BadManifestApply": {
			reason: "errors name phase, entry and field",
			send:   func() response { return s.apply("kubectl", file("e-3", inline(nameless))) },
			code:   http.StatusUnprocessableEntity,
			causes: []string{"spec.phases[0].objects[0].object.metadata.name"},
		},
		"Contradiction": {
			reason: "an entry cannot say one thing and its manifest another",
			send: func() response {
				return s.create(file("e-3", []any{object{"object": configMap("a", "1"), "name": "b"}}))
			},
			code:   http.StatusUnprocessableEntity,
			causes: []string{"spec.phases[0].objects[0].object"},
		},
		"NotHeld": {
			reason: "a digest must be one of the chain's",
			send: func() response {
				held := entry(s.get("e-2"), 0).(object)
				held["digest"] = "sha256:" + strings.Repeat("0", 64)
				return s.create(file("e-3", []any{held}))
			},
			code:   http.StatusUnprocessableEntity,
			causes: []string{"spec.phases[0].objects[0].digest"},
		},
		"HeldByAnotherChain": {
			reason: "another extension's content is not for the taking",
			send:   func() response { return s.create(file("f-1", []any{entry(s.get("e-2"), 0)})) },
			code:   http.StatusUnprocessableEntity,
			causes: []string{"spec.phases[0].objects[0].digest"},
		},
		"NumberTooLow": {
			reason: "numbers only grow",
			send:   func() response { return s.create(file("e-1", inline(configMap("a", "1")))) },
			code:   http.StatusUnprocessableEntity,
			causes: []string{"spec.revision"},
		},
		"NumberTooLowDryRun": {
			reason: "a dry-run answers as the real one would",
			send: func() response {
				return s.do(call{method: http.MethodPost, path: revisions + "?dryRun=All", body: file("e-1", nil)})
			},
			code:   http.StatusUnprocessableEntity,
			causes: []string{"spec.revision"},
		},
		"NumberTooLowDryRunApply": {
			reason: "also for server-side apply",
			send:   func() response { return s.apply("kubectl&dryRun=All", file("e-1", nil)) },
			code:   http.StatusUnprocessableEntity,
			causes: []string{"spec.revision"},
		},
		"ExistsDryRun": {
			reason: "the stock answer for a dry-run too",
			send: func() response {
				return s.do(call{method: http.MethodPost, path: revisions + "?dryRun=All", body: file("e-2", nil)})
			},
			code: http.StatusConflict,
		},
		"Exists":   {reason: "the stock answer, not one about numbers", send: func() response { return s.create(file("e-2", inline(configMap("a", "1")))) }, code: http.StatusConflict},
		"BadName":  {reason: "the name has the number", send: func() response { return s.create(with(good, "E_1", "metadata", "name")) }, code: http.StatusUnprocessableEntity, causes: []string{"metadata.name"}},
		"BadLabel": {reason: "the chain's label cannot be chosen", send: func() response { return s.create(with(good, object{"penstock.dev/chain": "x"}, "metadata", "labels")) }, code: http.StatusUnprocessableEntity, causes: []string{"metadata.labels[penstock.dev/chain]"}},
	} {
		t.Run(name, func(t *testing.T) {
			s.policy.set(tc.deny)
			defer s.policy.set(false)
			s.unchanged(func() {
				answer := tc.send().want(t, tc.code)
				if diff := cmp.Diff(tc.causes, causes(answer)); diff != "" {
					t.Errorf("%s: fields (-want +got):\n%s\n%s", tc.reason, diff, answer.raw)
				}
				if tc.code == http.StatusCreated && at(entry(answer.body, 0), "digest") == nil {
					t.Errorf("%s: the answer has no digests: %s", tc.reason, answer.raw)
				}
			})
		})
	}
}

// TestByDigest: content of the chain needs no manifest in the request.
func TestByDigest(t *testing.T) {
	s := newServer(t, settings{})
	s.create(file("e-1", inline(configMap("a", "1"), secret("b", "x")))).want(t, http.StatusCreated)
	s.create(file("e-2", inline(configMap("a", "2")))).want(t, http.StatusCreated)
	fromFirst := entry(s.get("e-1"), 1).(object)
	fromSecond := entry(s.get("e-2"), 0).(object)
	wantSize := fromSecond["size"]
	fromSecond["size"] = 99999

	third := s.create(file("e-3", append(inline(configMap("c", "3")), fromFirst, fromSecond))).want(t, http.StatusCreated)
	if got := at(entry(third.body, 2), "size"); got != wantSize {
		t.Errorf("size is %v, want that of the held manifest, %v", got, wantSize)
	}
	list := s.do(call{method: http.MethodGet, path: revisions + "/e-3/manifests"}).want(t, http.StatusOK)
	want := []any{configMap("c", "3"), secret("b", "x"), configMap("a", "2")}
	if diff := cmp.Diff(want, list.body["items"]); diff != "" {
		t.Errorf("manifests (-want +got):\n%s", diff)
	}

	s.do(call{method: http.MethodDelete, path: revisions + "/e-1"}).want(t, http.StatusOK)
	s.apply("kubectl", file("e-4", []any{fromFirst})).want(t, http.StatusCreated)

	s.bodies.lose = errLost
	answer := s.create(file("e-5", []any{fromFirst})).want(t, http.StatusInternalServerError)
	if digest := fromFirst["digest"].(string); !strings.Contains(answer.raw, digest) {
		t.Errorf("the answer does not name %s: %s", digest, answer.raw)
	}
}

// TestNumberAfterFailure: a create that fails after writing the head does not use up its number.
func TestNumberAfterFailure(t *testing.T) {
	s := newServer(t, settings{})
	if err := chain.NewHeads(s.etcd, prefix).Advance(t.Context(), chain.Head{Name: "e"}, 4, "uid-of-nobody"); err != nil {
		t.Fatal(err)
	}
	s.create(file("e-4", nil)).want(t, http.StatusCreated)
	answer := s.create(file("e-4", nil)).want(t, http.StatusConflict)
	if reason := answer.body["reason"]; reason != "AlreadyExists" {
		t.Errorf("reason %v, want AlreadyExists", reason)
	}
}

// TestOvertaken: a revision deletes objects of earlier revisions, and its requester's rights to do
// so are checked. If another revision is created meanwhile, the check starts again.
func TestOvertaken(t *testing.T) {
	s := newServer(t, settings{})
	s.create(file("e-1", inline(configMap("a", "1")))).want(t, http.StatusCreated)
	conflict := func(r response, says string) {
		t.Helper()
		if r = r.want(t, http.StatusConflict); r.body["reason"] != "Conflict" || !strings.Contains(r.raw, says) {
			t.Errorf("got %s, want a Conflict that says %q", r.raw, says)
		}
	}
	between := func(name string) func() {
		return func() { s.create(file(name, inline(configMap("b", "1")))).want(t, http.StatusCreated) }
	}
	s.policy.pause(between("e-2"))
	conflict(s.create(file("e-3", nil)), "e-2 was created meanwhile")
	s.create(file("e-3", nil)).want(t, http.StatusCreated)

	s.policy.pause(between("e-4"))
	conflict(s.apply("kubectl", file("e-5", nil)), "e-4 was created meanwhile")

	s.policy.pause(between("e-6"))
	conflict(s.do(call{method: http.MethodPost, path: revisions + "/e-1/rollback", body: object{}}), "e-6 was created meanwhile")

	// Both creates have the same name: the later client gets an AlreadyExists error.
	s.policy.pause(between("e-7"))
	if answer := s.create(file("e-7", nil)).want(t, http.StatusConflict); answer.body["reason"] != "AlreadyExists" {
		t.Errorf("reason %v, want AlreadyExists", answer.body["reason"])
	}
}

// TestOpenNumber: no client gets a number above a revision that is being written.
func TestOpenNumber(t *testing.T) {
	s := newServer(t, settings{})
	heads := chain.NewHeads(s.etcd, prefix)
	s.create(file("e-1", nil)).want(t, http.StatusCreated)
	take := func(number int64) {
		t.Helper()
		seen, _, err := heads.Get(t.Context(), "e")
		if err != nil {
			t.Fatal(err)
		}
		if err := heads.Advance(t.Context(), seen, number, "uid-of-nobody"); err != nil {
			t.Fatal(err)
		}
	}
	take(2)
	for _, query := range []string{"", "?dryRun=All"} {
		answer := s.do(call{method: http.MethodPost, path: revisions + query, body: file("e-3", nil)}).want(t, http.StatusConflict)
		if want := "e-2 is being created, or its creation was never finished: try again, or create e-2"; !strings.Contains(answer.raw, want) {
			t.Errorf("%s: got %s, want %q", query, answer.raw, want)
		}
	}
	s.create(file("e-2", nil)).want(t, http.StatusCreated)
	s.create(file("e-3", nil)).want(t, http.StatusCreated)

	// The revision exists, and only its confirmation is missing.
	before, err := s.etcd.Get(t.Context(), store.NewKeys(prefix).Head("e"))
	if err != nil {
		t.Fatal(err)
	}
	s.create(file("e-4", nil)).want(t, http.StatusCreated)
	if _, err := s.etcd.Put(t.Context(), store.NewKeys(prefix).Head("e"), string(before.Kvs[0].Value)); err != nil {
		t.Fatal(err)
	}
	take(4)
	s.do(call{method: http.MethodPost, path: revisions + "?dryRun=All", body: file("e-5", nil)}).want(t, http.StatusCreated)
	s.create(file("e-5", nil)).want(t, http.StatusCreated)
	if head, _, err := heads.Get(t.Context(), "e"); err != nil || head.Highest != 5 || len(head.Rows) != 5 {
		t.Errorf("the head is %+v, error %v", head, err)
	}
}

// TestAdmissionSeesManifests: the cluster's policies see the manifests that will be applied.
func TestAdmissionSeesManifests(t *testing.T) {
	s := newServer(t, settings{maxBodyBytes: 32 << 20})
	for name, tc := range map[string]struct {
		reason string
		value  string
		want   bool
	}{
		"Small": {reason: "manifests are inline", value: "1", want: true},
		"Large": {reason: "beyond 3 MiB there are digests only", value: strings.Repeat("x", 4<<20)},
	} {
		t.Run(name, func(t *testing.T) {
			name := strings.ToLower(name) + "-1"
			s.create(file(name, inline(configMap("a", tc.value)))).want(t, http.StatusCreated)
			seen := s.policy.last().GetObject().(*hub.ClusterExtensionRevision)
			entry := seen.Spec.Phases[0].Objects[0]
			if got := entry.Object != nil; got != tc.want || entry.Digest == "" {
				t.Errorf("%s: inline %v, want %v; digest %q", tc.reason, got, tc.want, entry.Digest)
			}
		})
	}
}

// TestLostPackIsHealed: sending the manifests again restores a lost pack.
func TestLostPackIsHealed(t *testing.T) {
	s := newServer(t, settings{})
	f := file("e-1", inline(configMap("a", "1")))
	s.create(f).want(t, http.StatusCreated)
	if _, err := s.etcd.Delete(t.Context(), prefix+"/packs/", clientv3.WithPrefix()); err != nil {
		t.Fatal(err)
	}
	s.do(call{method: http.MethodGet, path: revisions + "/e-1/manifests"}).want(t, http.StatusInternalServerError)
	s.put("e-1", f).want(t, http.StatusOK)
	s.do(call{method: http.MethodGet, path: revisions + "/e-1/manifests"}).want(t, http.StatusOK)
}

// TestWhoWasFirst: two concurrent creates have the same number. The error of the second create
// names the requester of the first. A user who repeats their own create gets the plain error.
func TestWhoWasFirst(t *testing.T) {
	s := newServer(t, settings{})
	create := func(user, name string) response {
		return s.do(call{method: http.MethodPost, path: revisions, user: user, body: file(name, nil)})
	}
	create("alice", "e-1").want(t, http.StatusCreated)
	create("alice", "e-3").want(t, http.StatusCreated)
	if message := at(create("bob", "e-3").want(t, http.StatusConflict).body, "message").(string); !strings.Contains(message, `"e-3" already exists: alice created it at 20`) {
		t.Errorf("bob is told %s", message)
	}
	if message := at(create("alice", "e-3").want(t, http.StatusConflict).body, "message").(string); !strings.HasSuffix(message, `"e-3" already exists`) {
		t.Errorf("alice is told %s", message)
	}
	if message := at(create("bob", "e-2").want(t, http.StatusUnprocessableEntity).body, "message").(string); !strings.Contains(message, "3 is the highest that e has used, alice created it at 20") {
		t.Errorf("bob is told %s", message)
	}
}

// TestFieldBackup: revisions in a backup contain only digests. They are refused, and the error says
// where the manifests are.
func TestFieldBackup(t *testing.T) {
	raw, err := os.ReadFile("../../../../shared/data/field-cases/plans/09-revision-backup/backup.yaml")
	if err != nil {
		t.Skipf("the cases of the field are kept beside the repository: %v", err)
	}
	var list struct{ Items []object }
	if err := yaml.Unmarshal(raw, &list); err != nil || len(list.Items) == 0 {
		t.Fatalf("%d items, %v", len(list.Items), err)
	}
	s := newServer(t, settings{})
	for _, item := range list.Items {
		for _, given := range []string{"uid", "resourceVersion"} {
			delete(item["metadata"].(object), given) // a restore omits these fields
		}
		got := s.create(item).want(t, http.StatusUnprocessableEntity)
		if message, _ := at(got.body, "message").(string); !strings.Contains(message, "penstock export and snapshots have the manifests") {
			t.Errorf("%v: %s", at(item, "metadata", "name"), message)
		}
	}
}
