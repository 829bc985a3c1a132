//go:build integration

package client_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/penstock-project/penstock/pkg/rollout/targetclient"
	"github.com/penstock-project/penstock/test/framework/plane"
	"github.com/penstock-project/penstock/test/framework/poll"
)

func TestHost(t *testing.T) {
	w := start(t)
	t.Run("Writes", func(t *testing.T) { hostWrites(t, w.in(t)) })
	t.Run("Counts", func(t *testing.T) { hostCounts(t, w.in(t)) })
	t.Run("KindComesAndGoes", func(t *testing.T) { hostKinds(t, w.in(t)) })
}

// hostWrites: Delete and Release check UID and resourceVersion as Apply does.
func hostWrites(t *testing.T, w targetCluster) {
	h, ns, kind := w.host(t, "host"), w.namespace(t), kinds()["ConfigMap"]
	ref := kind.ref(ns, "x")
	created, err := h.Apply(t.Context(), ref, kind.manifest(t, ref), targetclient.ApplyOptions{FieldManager: manager, CreateOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	if created.Kind != "ConfigMap" || created.APIVersion != "v1" {
		t.Errorf("the answer has kind %v", created.TypeMeta)
	}
	marks := targetclient.Marks{FieldManager: manager, Labels: []string{names().ChainLabel}, Annotations: []string{names().AppliedAnnotation}}
	const nobody = types.UID("6f4b2a1c-0000-0000-0000-000000000000")
	cases := map[string]struct {
		reason string
		do     func() error
		want   []func(error) bool
	}{
		"DeleteOlder": {"it changed since it was judged", func() error {
			return h.Delete(t.Context(), ref, targetclient.Precondition{UID: created.UID, ResourceVersion: "2"})
		}, []func(error) bool{apierrors.IsConflict}},
		"DeleteAnother": {"another one has the name", func() error {
			return h.Delete(t.Context(), ref, targetclient.Precondition{UID: nobody, ResourceVersion: created.ResourceVersion})
		}, []func(error) bool{apierrors.IsConflict}},
		"DeleteMissing": {"there is none", func() error {
			return h.Delete(t.Context(), kind.ref(ns, "none"), targetclient.Precondition{UID: created.UID, ResourceVersion: "2"})
		}, []func(error) bool{apierrors.IsNotFound}},
		"ReleaseOlder": {"it changed since it was judged", func() error {
			return h.Release(t.Context(), ref, targetclient.Precondition{UID: created.UID, ResourceVersion: "2"}, marks)
		}, []func(error) bool{apierrors.IsConflict}},
		"ReleaseAnother": {"another one has the name", func() error {
			return h.Release(t.Context(), ref, targetclient.Precondition{UID: nobody, ResourceVersion: created.ResourceVersion}, marks)
		}, []func(error) bool{apierrors.IsConflict, apierrors.IsInvalid}},
		"ReleaseMissing": {"there is none", func() error {
			return h.Release(t.Context(), kind.ref(ns, "none"), targetclient.Precondition{UID: created.UID, ResourceVersion: "2"}, marks)
		}, []func(error) bool{apierrors.IsNotFound}},
		"ApplyNoSuchPlace": {"its namespace does not exist", func() error {
			lost := kind.ref("no-such-namespace", "x")
			_, err := h.Apply(t.Context(), lost, kind.manifest(t, lost), targetclient.ApplyOptions{FieldManager: manager, CreateOnly: true})
			return err
		}, []func(error) bool{apierrors.IsNotFound}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := tc.do()
			for _, is := range tc.want {
				if is(err) {
					return
				}
			}
			t.Errorf("%s: got %v", tc.reason, err)
		})
	}
	live, err := h.Read(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	if live.GetResourceVersion() != created.ResourceVersion {
		t.Fatalf("a refused request changed the object: it is at %s instead of %s", live.GetResourceVersion(), created.ResourceVersion)
	}

	judged := targetclient.Precondition{UID: created.UID, ResourceVersion: created.ResourceVersion}
	if err := h.Release(t.Context(), ref, judged, marks); err != nil {
		t.Fatal(err)
	}
	released, err := h.Read(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	if len(released.GetLabels()) != 0 || len(released.GetAnnotations()) != 0 {
		t.Errorf("marks are left: labels %v, annotations %v", released.GetLabels(), released.GetAnnotations())
	}
	if entries := released.GetManagedFields(); len(entries) != 0 {
		t.Errorf("managed fields are left: %v", entries)
	}
	if diff := cmp.Diff(live.Object["data"], released.Object["data"]); diff != "" {
		t.Errorf("other data changed (-before +after):\n%s", diff)
	}
	if err := h.Delete(t.Context(), ref, targetclient.Precondition{UID: released.GetUID(), ResourceVersion: released.GetResourceVersion()}); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Read(t.Context(), ref); !apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		t.Errorf("want NotFound for the object, not for its kind: %v", err)
	}
}

// hostCounts: the client counts the same requests as kube-apiserver.
func hostCounts(t *testing.T, w targetCluster) {
	ns, kind := w.namespace(t), kinds()["ConfigMap"]
	mark := w.Audit().Mark()
	h := w.host(t, "host-counts")
	ref := kind.ref(ns, "x")
	options := targetclient.ApplyOptions{FieldManager: manager, CreateOnly: true}
	if _, err := h.Apply(t.Context(), ref, kind.manifest(t, ref), options); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Apply(t.Context(), ref, kind.manifest(t, ref), options); !apierrors.IsConflict(err) {
		t.Fatal(err)
	}
	if _, err := h.Instances(t.Context(), ref, 1); err != nil {
		t.Fatal(err)
	}
	seen := w.Audit().Since(mark, plane.ByAgent("host-counts"))
	verbs := map[string]int{}
	for _, r := range seen {
		verbs[r.Verb]++
	}
	if diff := cmp.Diff(map[string]int{"get": 1, "patch": 2, "list": 1}, verbs); diff != "" {
		t.Errorf("the requests (-want +got):\n%s\n%s", diff, seen)
	}
	if h.Requests() != int64(len(seen)) {
		t.Errorf("counted %d, kube-apiserver saw %d", h.Requests(), len(seen))
	}
	if len(seen) > 0 && seen[len(seen)-1].URI != "/api/v1/configmaps?limit=1" {
		t.Errorf("the list is not limited: %s", seen[len(seen)-1].URI)
	}
}

// hostKinds: a kind is not served, then served, then removed again.
func hostKinds(t *testing.T, w targetCluster) {
	h, ns, kind := w.host(t, "host-kinds"), w.namespace(t), kinds()["CustomResource"]
	ref := kind.ref(ns, "x")
	options := targetclient.ApplyOptions{FieldManager: manager, CreateOnly: true}
	for range 3 {
		if _, err := h.Apply(t.Context(), ref, kind.manifest(t, ref), options); !meta.IsNoMatchError(err) {
			t.Fatalf("before its CustomResourceDefinition, want an unknown kind: %v", err)
		}
	}
	if h.Requests() != 1 {
		t.Errorf("got %d requests, want one for all", h.Requests())
	}
	w.installWidgets()
	poll.Eventually(t, "discovery to know widgets", func() (bool, string) {
		_, err := h.Discover(t.Context(), widgets())
		return err == nil, "not served"
	})
	created, err := h.Apply(t.Context(), ref, kind.manifest(t, ref), options)
	if err != nil {
		t.Fatal(err)
	}

	crds := w.outsider.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	if err := crds.Delete(t.Context(), "widgets.example.com", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	poll.Eventually(t, "the host to notice that the kind is gone", func() (bool, string) {
		_, err := h.Read(t.Context(), ref)
		return meta.IsNoMatchError(err), fmt.Sprint("still served: ", err)
	})
	if err := h.Delete(t.Context(), ref, targetclient.Precondition{UID: created.UID, ResourceVersion: created.ResourceVersion}); !meta.IsNoMatchError(err) {
		t.Errorf("a delete must report an unknown kind: %v", err)
	}
}
