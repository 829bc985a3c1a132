package olm_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/registry/olm/clusterextensionrevision"
	"github.com/penstock-project/penstock/pkg/store/storetest"
)

// TestOwn: Own checks and writes status like a request of this process, and writes nothing else.
func TestOwn(t *testing.T) {
	s := newServer(t, settings{})
	s.create(file("e-1", inline(configMap("a", "1")))).want(t, http.StatusCreated)
	read := func() *v1alpha1.ClusterExtensionRevision {
		t.Helper()
		revision := &v1alpha1.ClusterExtensionRevision{}
		raw := s.do(call{method: http.MethodGet, path: revisions + "/e-1"}).want(t, http.StatusOK).raw
		if err := json.Unmarshal([]byte(raw), revision); err != nil {
			t.Fatal(err)
		}
		return revision
	}
	var refusal error
	own := &clusterextensionrevision.Own{Storage: s.storage, Admission: s.policy, Scheme: s.scheme, Refuse: func() error { return refusal }}
	before := read()
	revision := before.DeepCopy()
	revision.ManagedFields = nil
	revision.Labels["label"], revision.Spec.LifecycleState = "x", v1alpha1.LifecycleStateArchived
	revision.Status.RequestedBy = nil
	// Times are more precise than their stored form.
	at := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC))
	revision.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionSucceeded, Status: metav1.ConditionTrue, Reason: "RolledOut", LastTransitionTime: at}}
	stale := revision.DeepCopy()

	revisionOfStore := storetest.Revision(t, s.etcd)
	if err := own.UpdateStatus(t.Context(), revision); err != nil {
		t.Fatal(err)
	}
	if writes := storetest.Revision(t, s.etcd) - revisionOfStore; writes != 1 {
		t.Errorf("a status took %d writes, want 1 with what history keeps of it", writes)
	}
	stored := read()
	if diff := cmp.Diff(before.ManagedFields, stored.ManagedFields); diff != "" {
		t.Errorf("managedFields (-before +now):\n%s", diff)
	}
	want := before.DeepCopy()
	want.ResourceVersion, want.Annotations, want.Status.Conditions = stored.ResourceVersion, stored.Annotations, revision.Status.Conditions
	if diff := cmp.Diff(want, stored); diff != "" {
		t.Errorf("stored (-want +got):\n%s", diff)
	}
	answered := stored.DeepCopy()
	answered.ManagedFields, answered.TypeMeta = nil, metav1.TypeMeta{}
	if diff := cmp.Diff(answered, revision); diff != "" {
		t.Errorf("the caller has (-stored +got):\n%s", diff)
	}
	if head, _, err := s.heads.Get(t.Context(), "e"); err != nil || !head.Succeeded || head.Rows[0].Result != v1alpha1.ResultSucceeded {
		t.Errorf("history has %+v, %v", head, err)
	}
	if a := s.policy.last(); a.GetSubresource() != "status" || a.GetName() != "e-1" || a.GetUserInfo().GetName() != "system:apiserver" {
		t.Errorf("admission saw %s/%s of %s", a.GetName(), a.GetSubresource(), a.GetUserInfo().GetName())
	}

	if err := own.UpdateStatus(t.Context(), stale); !apierrors.IsConflict(err) {
		t.Errorf("a status of what has changed: %v", err)
	}
	s.policy.set(true)
	again := revision.DeepCopy()
	again.Status.Conditions[0].Message = "again"
	if err := own.UpdateStatus(t.Context(), again); !apierrors.IsForbidden(err) {
		t.Errorf("what admission refuses: %v", err)
	}
	s.policy.set(false)
	refusal = errors.New("no room")
	if err := own.UpdateStatus(t.Context(), again); !errors.Is(err, refusal) {
		t.Errorf("while nothing can be written: %v", err)
	}
	refusal = nil
	missing := revision.DeepCopy()
	missing.Name = "e-2"
	if err := own.UpdateStatus(t.Context(), missing); !apierrors.IsNotFound(err) {
		t.Errorf("a status of what is not there: %v", err)
	}
	if now := read(); now.ResourceVersion != stored.ResourceVersion {
		t.Error("what was refused was written")
	}
}

// TestOwnDeleted: Own removes the finalizer like a request of this process, in one write with the
// history.
func TestOwnDeleted(t *testing.T) {
	s := newServer(t, settings{})
	s.create(file("e-1", inline(configMap("a", "1")))).want(t, http.StatusCreated)
	s.do(call{method: http.MethodDelete, path: revisions + "/e-1"}).want(t, http.StatusOK)
	own := &clusterextensionrevision.Own{Storage: s.storage, Admission: s.policy, Scheme: s.scheme, Refuse: func() error { return nil }}
	revision := &v1alpha1.ClusterExtensionRevision{}
	if err := json.Unmarshal([]byte(s.do(call{method: http.MethodGet, path: revisions + "/e-1"}).want(t, http.StatusOK).raw), revision); err != nil {
		t.Fatal(err)
	}
	revision.ManagedFields, revision.Finalizers = nil, nil
	stale := revision.DeepCopy()
	stale.ResourceVersion = "1"
	if err := own.UpdateDeleted(t.Context(), stale); !apierrors.IsConflict(err) {
		t.Errorf("one that has changed: %v", err)
	}
	changed := revision.DeepCopy()
	changed.Spec.Revision = 2
	if err := own.UpdateDeleted(t.Context(), changed); !apierrors.IsInvalid(err) {
		t.Errorf("what an update cannot change: %v", err)
	}
	before := storetest.Revision(t, s.etcd)
	if err := own.UpdateDeleted(t.Context(), revision); err != nil {
		t.Fatal(err)
	}
	if writes := storetest.Revision(t, s.etcd) - before; writes != 1 {
		t.Errorf("it took %d writes, want 1", writes)
	}
	if revision.DeletionTimestamp.IsZero() || len(revision.Finalizers) > 0 {
		t.Errorf("the caller has %+v", revision.ObjectMeta)
	}
	s.do(call{method: http.MethodGet, path: revisions + "/e-1"}).want(t, http.StatusNotFound)
	if head, _, err := s.heads.Get(t.Context(), "e"); err != nil || head.Rows[0].DeletedAt.IsZero() {
		t.Errorf("history has %+v, %v", head, err)
	}
}
