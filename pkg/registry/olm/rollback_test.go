package olm_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"

	hub "github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/store/chain"
)

// owners is a fake reader of owners.
type owners struct {
	generation int64
	err        error
}

func (o *owners) Generation(context.Context, metav1.OwnerReference) (int64, error) {
	return o.generation, o.err
}

// storedVersions holds the stored versions of definitions by name. Versions of other definitions
// cannot be read.
type storedVersions map[string][]string

func (s storedVersions) StoredVersions(_ context.Context, _, name string) ([]string, error) {
	versions, ok := s[name]
	if !ok {
		return nil, errors.New("the cluster is away")
	}
	return versions, nil
}

func (s *server) rollback(name, query, user string, body any) response {
	s.t.Helper()
	if body == nil {
		body = object{}
	}
	return s.do(call{method: http.MethodPost, path: revisions + "/" + name + "/rollback" + query, user: user, body: body})
}

var owned = []any{object{"apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterExtension", "name": "e", "uid": "owner", "controller": true}}

func TestRollback(t *testing.T) {
	s := newServer(t, settings{owners: &owners{generation: 7}})
	first := with(file("e-1", inline(configMap("a", "1"), secret("s", "x"))), object{
		"olm.operatorframework.io/bundle-version": "v1", "penstock.dev/allow-crd-deletion": "x.y", "kubernetes.io/change-cause": "first",
		"penstock.dev/rollback-of": "e-0", "kubectl.kubernetes.io/last-applied-configuration": "{}",
	}, "metadata", "annotations")
	first = with(first, "IfNoController", "spec", "collisionProtection")
	s.create(first).want(t, http.StatusCreated)
	second := with(file("e-2", inline(configMap("a", "2"))), owned, "metadata", "ownerReferences")
	for key, value := range (object{"progressDeadlineMinutes": 5, "successDelaySeconds": 7, "onFailure": "Rollback"}) {
		second = with(second, value, "spec", key)
	}
	s.create(second).want(t, http.StatusCreated)
	if forged := at(s.get("e-1"), "metadata", "annotations", "penstock.dev/rollback-of"); forged != nil {
		t.Errorf("a client made its revision a rollback of %v", forged)
	}

	s.policy.mutate(func(revision *hub.ClusterExtensionRevision) {
		metav1.SetMetaDataAnnotation(&revision.ObjectMeta, "mutated", "yes")
	})
	got := s.rollback("e-1", "", "bob", object{"spec": object{"cause": "e-2 is slow"}}).want(t, http.StatusCreated).body
	uid := at(got, "status", "revisionUID")
	want := object{
		"apiVersion": "olm.operatorframework.io/v1alpha1", "kind": "RevisionRollback",
		"metadata": object{"name": "e-1"}, "spec": object{"cause": "e-2 is slow"},
		"status": object{"revision": "e-3", "revisionUID": uid, "from": "e-2"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("answer (-want +got):\n%s", diff)
	}

	created := s.get("e-3")
	metadata := created["metadata"].(object)
	for _, volatile := range []string{"resourceVersion", "creationTimestamp"} {
		delete(metadata, volatile)
	}
	wantRevision := with(s.get("e-1"), object{
		"name": "e-3", "uid": uid, "generation": 1.0,
		"labels": object{"penstock.dev/chain": "e"}, "finalizers": []any{"penstock.dev/teardown"},
		"ownerReferences": owned,
		"annotations": object{
			"olm.operatorframework.io/bundle-version": "v1", "kubernetes.io/change-cause": "e-2 is slow",
			"penstock.dev/rollback-of": "e-1", "mutated": "yes",
		},
	}, "metadata")
	wantRevision = with(wantRevision, 3.0, "spec", "revision")
	for key, value := range (object{"progressDeadlineMinutes": 5.0, "successDelaySeconds": 7.0, "onFailure": "Rollback"}) {
		wantRevision = with(wantRevision, value, "spec", key)
	}
	wantRevision = with(wantRevision, []any{object{"name": "e-2", "uid": at(s.get("e-2"), "metadata", "uid")}, object{"name": "e-1", "uid": at(s.get("e-1"), "metadata", "uid")}}, "spec", "previous")
	wantRevision = with(wantRevision, object{"requestedBy": object{
		"username": "bob", "uid": "uid-bob", "groups": []any{"devs", "system:authenticated"}, "extra": object{"scope": []any{"all"}},
	}, "conditions": []any{object{
		"type": "Ready", "status": "Unknown", "reason": "Pending", "message": "Penstock has not looked at it yet",
		"lastTransitionTime": at(s.get("e-3"), "metadata", "creationTimestamp"),
	}}}, "status")
	if diff := cmp.Diff(wantRevision, created); diff != "" {
		t.Errorf("the new revision (-want +got):\n%s", diff)
	}
	contents := s.do(call{method: http.MethodGet, path: revisions + "/e-3/manifests"}).want(t, http.StatusOK)
	if diff := cmp.Diff([]any{configMap("a", "1"), secret("s", "x")}, contents.body["items"]); diff != "" {
		t.Errorf("its manifests (-want +got):\n%s", diff)
	}

	history := s.do(call{method: http.MethodGet, path: histories + "/e"}).want(t, http.StatusOK).body
	if diff := cmp.Diff([]any{"e-1", "bob", "e-2 is slow"}, []any{at(history, "revisions", 2, "rollbackOf"), at(history, "revisions", 2, "requestedBy"), at(history, "revisions", 2, "cause")}); diff != "" {
		t.Errorf("history (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(object{"revision": "e-3", "ownerGeneration": 7.0}, history["hold"]); diff != "" {
		t.Errorf("hold (-want +got):\n%s", diff)
	}
	table := s.do(call{method: http.MethodGet, accept: asTable, path: histories + "/e"}).want(t, http.StatusOK)
	if cause := at(table.body, "rows", 2, "cells", 9); cause != "rollback to e-1: e-2 is slow" {
		t.Errorf("the table says %q", cause)
	}
	head, _, err := s.heads.Get(t.Context(), "e")
	if err != nil || head.Rows[2].RollbackOf != 1 {
		t.Errorf("the head has %+v, error %v; want a rollback of 1", head.Rows[2], err)
	}

	// No client can remove or change the mark.
	s.patch("e-3", mergePatch, object{"metadata": object{"annotations": object{"penstock.dev/rollback-of": nil}}}).want(t, http.StatusOK)
	if of := at(s.get("e-3"), "metadata", "annotations", "penstock.dev/rollback-of"); of != "e-1" {
		t.Errorf("after a patch it is a rollback of %v", of)
	}
}

// TestRollbackAdmission: policies for creates see the same object as in a create, and policies for
// rollbacks see the rollback.
func TestRollbackAdmission(t *testing.T) {
	s := newServer(t, settings{})
	s.create(file("e-1", inline(configMap("a", "1")))).want(t, http.StatusCreated)
	s.create(file("e-2", inline(configMap("a", "2")))).want(t, http.StatusCreated)
	s.policy.seen = nil
	s.rollback("e-1", "?dryRun=All", "bob", object{}).want(t, http.StatusCreated)
	if len(s.policy.seen) != 2 {
		t.Fatalf("admission was asked %d times, want for the rollback and for the create", len(s.policy.seen))
	}
	type asked struct {
		Operation           admission.Operation
		Resource, Sub, Name string
		User                string
		DryRun              bool
	}
	var got []asked
	for _, a := range s.policy.seen {
		got = append(got, asked{a.GetOperation(), a.GetResource().Resource, a.GetSubresource(), a.GetName(), a.GetUserInfo().GetName(), a.IsDryRun()})
	}
	want := []asked{
		{admission.Create, "clusterextensionrevisions", "rollback", "e-1", "bob", true},
		{admission.Create, "clusterextensionrevisions", "", "e-3", "bob", true},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("admission (-want +got):\n%s", diff)
	}
	seen := s.policy.last().GetObject().(*hub.ClusterExtensionRevision)
	if body := seen.Spec.Phases[0].Objects[0].Object; body == nil || !strings.Contains(string(body.Raw), `"1"`) {
		t.Errorf("policies see no manifest: %+v", seen.Spec.Phases[0].Objects[0])
	}

	s.policy.mutate(func(revision *hub.ClusterExtensionRevision) {
		entries := revision.Spec.Phases[0].Objects
		revision.Spec.Phases[0].Objects = append(entries, hub.RevisionObject{Object: &hub.Manifest{Raw: []byte(toText(configMap("b", "1")))}})
	})
	s.unchanged(func() { s.rollback("e-1", "", "", object{}).want(t, http.StatusUnprocessableEntity) })
	s.policy.mutate(nil)
	s.policy.set(true)
	s.unchanged(func() { s.rollback("e-1", "", "", object{}).want(t, http.StatusForbidden) })
}

// TestRollbackDryRun: a dry-run stores nothing, and returns the effect.
func TestRollbackDryRun(t *testing.T) {
	s := newServer(t, settings{})
	s.create(file("e-1", inline(configMap("a", "1"), configMap("gone", "1"), secret("s", "hunter1")))).want(t, http.StatusCreated)
	s.create(file("e-2", inline(configMap("a", "2"), configMap("new", "1"), secret("s", "hunter2")))).want(t, http.StatusCreated)
	s.rules.set("bob", nil)
	s.rules.deny("carol", "get clusterextensionrevisions/diff e-2")
	s.unchanged(func() {
		got := s.rollback("e-1", "?dryRun=All", "", nil).want(t, http.StatusCreated)
		diffed := response{body: at(got.body, "status", "diff").(object)}
		if diff := cmp.Diff([]string{"Changed ConfigMap a", "Added ConfigMap gone", "Changed Secret s", "Removed ConfigMap new"}, changes(diffed)); diff != "" {
			t.Errorf("diff (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]any{"e-2", "e-3", "e-3", nil}, []any{diffed.body["from"], diffed.body["to"], at(got.body, "status", "revision"), at(got.body, "status", "revisionUID")}); diff != "" {
			t.Errorf("answer (-want +got):\n%s", diff)
		}
		if strings.Contains(got.raw, "hunter") {
			t.Errorf("what is secret is in %s", got.raw)
		}
		bobs := s.rollback("e-1", "?dryRun=All", "bob", nil).want(t, http.StatusCreated)
		if got := at(bobs.body, "status", "diff", "summary", "withheld"); got != 1.0 || strings.Contains(bobs.raw, "Secret") {
			t.Errorf("%v objects are withheld from bob: %s", got, bobs.raw)
		}
		carols := s.rollback("e-1", "?dryRun=All", "carol", nil).want(t, http.StatusCreated)
		if at(carols.body, "status", "diff") != nil || !strings.Contains(strings.Join(carols.warnings, ";"), "without a diff") {
			t.Errorf("carol gets a diff: %s; warnings %q", carols.raw, carols.warnings)
		}
	})
}

func TestRollbackRefused(t *testing.T) {
	definition := func(versions ...string) object {
		list := []any{}
		for _, version := range versions {
			list = append(list, object{"name": version})
		}
		return object{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": object{"name": "things.x.io"},
			"spec": object{"group": "x.io", "versions": list}}
	}
	stored := storedVersions{"things.x.io": {"v1", "v2"}}
	s := newServer(t, settings{stored: stored})
	s.create(file("e-1", inline(definition("v1")))).want(t, http.StatusCreated)
	s.create(file("e-2", inline(definition("v1", "v2")))).want(t, http.StatusCreated)
	s.create(file("e-3", inline(definition("v1", "v2", "v3")))).want(t, http.StatusCreated)
	s.create(file("f-1", nil)).want(t, http.StatusCreated)
	s.rules.deny("carol", "create clusterextensionrevisions")
	s.rules.deny("dave", "create clusterextensionrevisions/rollback e-2")
	s.rules.deny("eve", "get clusterextensionrevisions/manifests e-1")

	for name, tc := range map[string]struct {
		reason string
		target string
		user   string
		body   any
		code   int
		want   string
		not    string
	}{
		"Newest":        {reason: "nothing to roll back", target: "e-3", code: 409, want: "newest"},
		"Only":          {reason: "nothing to roll back", target: "f-1", code: 409, want: "newest"},
		"NotFound":      {reason: "no such revision", target: "e-9", code: 404, want: "e-9"},
		"NoCreate":      {reason: "who cannot create revisions cannot do it this way", target: "e-2", user: "carol", code: 403, want: "create clusterextensionrevisions"},
		"NoRollback":    {reason: "the subresource has a right of its own", target: "e-2", user: "dave", code: 403, want: "rollback"},
		"StoredVersion": {reason: "nobody could read the objects stored as v2", target: "e-1", code: 409, want: "things.x.io has objects stored as v2, and e-1 defines only v1"},
		"StoredHidden":  {reason: "who cannot read manifests is not told what is in them", target: "e-1", user: "eve", code: 409, not: "things", want: "a CustomResourceDefinition of e-1 lacks a version in which objects are stored"},
		"Overtaken":     {reason: "what was to be rolled back is not the newest any more", target: "e-1", body: object{"spec": object{"from": "e-2"}}, code: 409, want: "e-2 is not the newest revision of its extension any more: e-3 is"},
		"LongCause":     {reason: "history keeps 1024 bytes", target: "e-2", body: object{"spec": object{"cause": strings.Repeat("x", 1025)}}, code: 422, want: "spec.cause"},
		"WrongKind":     {reason: "the body is a rollback or empty", target: "e-2", body: file("e-2", nil), code: 400},
	} {
		t.Run(name, func(t *testing.T) {
			s := s.subtest(t)
			s.unchanged(func() {
				got := s.rollback(tc.target, "", tc.user, tc.body).want(t, tc.code)
				if message, _ := got.body["message"].(string); !strings.Contains(message, tc.want) {
					t.Errorf("%s: the answer does not say %q: %s", tc.reason, tc.want, message)
				}
				if tc.not != "" && strings.Contains(got.raw, tc.not) {
					t.Errorf("%s: the answer says %q: %s", tc.reason, tc.not, got.raw)
				}
			})
		})
	}
	s.rollback("e-2", "", "", object{"spec": object{"from": "e-3"}}).want(t, http.StatusCreated)
	delete(stored, "things.x.io")
	s.unchanged(func() { s.rollback("e-1", "", "", nil).want(t, http.StatusInternalServerError) })
}

// TestRollbackHold: with an unknown generation the owner is held until it is released. Without an
// owner there is no hold.
func TestRollbackHold(t *testing.T) {
	for name, tc := range map[string]struct {
		owners *owners
		owner  []any
		want   *chain.Hold
	}{
		"Owner":   {owners: &owners{generation: 3}, owner: owned, want: &chain.Hold{Revision: 3, OwnerGeneration: 3}},
		"Away":    {owners: &owners{err: errors.New("the host is away")}, owner: owned, want: &chain.Hold{Revision: 3}},
		"NoOwner": {owners: &owners{generation: 3}, owner: []any{}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, settings{owners: tc.owners})
			s.create(file("e-1", nil)).want(t, http.StatusCreated)
			s.create(with(file("e-2", nil), tc.owner, "metadata", "ownerReferences")).want(t, http.StatusCreated)
			s.rollback("e-1", "", "", nil).want(t, http.StatusCreated)
			head, _, err := s.heads.Get(t.Context(), "e")
			if err != nil {
				t.Fatal(err)
			}
			if head.Hold != nil {
				head.Hold.UID = ""
			}
			if diff := cmp.Diff(tc.want, head.Hold); diff != "" {
				t.Errorf("hold (-want +got):\n%s", diff)
			}
		})
	}
}

// TestRollbacksAtOnce: one of two concurrent rollbacks succeeds, and the other gets a conflict.
func TestRollbacksAtOnce(t *testing.T) {
	s := newServer(t, settings{})
	s.create(file("e-1", inline(configMap("a", "1")))).want(t, http.StatusCreated)
	s.create(file("e-2", inline(configMap("a", "2")))).want(t, http.StatusCreated)
	const n = 6
	codes := make([]int, n)
	var wait sync.WaitGroup
	for i := range n {
		wait.Go(func() { codes[i] = s.rollback("e-1", "", "", nil).code })
	}
	wait.Wait()
	made := 0
	for _, code := range codes {
		switch code {
		case http.StatusCreated:
			made++
		case http.StatusConflict:
		default:
			t.Errorf("a rollback was answered with %d", code)
		}
	}
	list := s.do(call{method: http.MethodGet, path: revisions}).want(t, http.StatusOK)
	if made == 0 || len(names(list.body)) != 2+made {
		t.Errorf("%d rollbacks were made, and there are %v", made, names(list.body))
	}
}
