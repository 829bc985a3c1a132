package clusterextensionrevision

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"

	admissionrequest "github.com/penstock-project/penstock/pkg/admission/request"
	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
)

func TestWarnings(t *testing.T) {
	s := &strategy{nameWarning: func() string { return "" }}
	full := &olm.ClusterExtensionRevision{Spec: olm.ClusterExtensionRevisionSpec{Phases: []olm.RevisionPhase{{Objects: make([]olm.RevisionObject, 1)}}}}
	finalized := func(policy olm.TeardownPolicy, finalizers ...string) *olm.ClusterExtensionRevision {
		return &olm.ClusterExtensionRevision{
			ObjectMeta: metav1.ObjectMeta{Finalizers: finalizers},
			Spec:       olm.ClusterExtensionRevisionSpec{TeardownPolicy: policy},
		}
	}
	as := func(name string) context.Context {
		return request.WithUser(t.Context(), &user.DefaultInfo{Name: name})
	}
	ours := finalized(olm.TeardownPolicyDelete, v1alpha1.TeardownFinalizer)
	for name, tc := range map[string]struct {
		reason string
		got    []string
		want   bool
	}{
		"Empty":      {"an empty revision deletes what came before it", s.WarningsOnCreate(t.Context(), &olm.ClusterExtensionRevision{}), true},
		"Full":       {"nothing to say", s.WarningsOnCreate(t.Context(), full), false},
		"TakenOff":   {"the objects stay behind", s.WarningsOnUpdate(as("alice"), finalized(olm.TeardownPolicyDelete), ours), true},
		"Kept":       {"nothing happened", s.WarningsOnUpdate(as("alice"), ours, ours), false},
		"Orphans":    {"they should stay behind", s.WarningsOnUpdate(as("alice"), finalized(olm.TeardownPolicyOrphan), ours), false},
		"Controller": {"its work is done", s.WarningsOnUpdate(as(user.APIServerUser), finalized(olm.TeardownPolicyDelete), ours), false},
	} {
		if got := len(tc.got) > 0; got != tc.want {
			t.Errorf("%s: %s: warnings %q", name, tc.reason, tc.got)
		}
	}
}

func TestExpressionsAreCompiled(t *testing.T) {
	compiled := 0
	s := &strategy{checkCEL: func(expression string) error {
		compiled++
		if expression == "bad" {
			return errors.New("syntax error")
		}
		return nil
	}}
	revision := &olm.ClusterExtensionRevision{
		ObjectMeta: metav1.ObjectMeta{Name: "e-1", Labels: map[string]string{v1alpha1.ChainLabel: "e"}},
		Spec: olm.ClusterExtensionRevisionSpec{
			Revision: 1, LifecycleState: olm.LifecycleStateActive, TeardownPolicy: olm.TeardownPolicyDelete, AdoptedTeardownPolicy: olm.TeardownPolicyOrphan, CollisionProtection: olm.CollisionProtectionNone,
			OnFailure: olm.OnFailureNone,
			ProgressionProbes: []olm.ProgressionProbe{{
				Selector:   olm.ProbeSelector{GroupKind: &metav1.GroupKind{Kind: "Pod"}},
				Assertions: []olm.ProbeAssertion{{CEL: &olm.CELAssertion{Expression: "good"}}, {CEL: &olm.CELAssertion{Expression: "bad"}}},
			}},
		},
	}
	var fields []string
	for _, err := range s.Validate(t.Context(), revision) {
		fields = append(fields, err.Field)
	}
	if diff := cmp.Diff([]string{"spec.progressionProbes[0].assertions[1].cel.expression"}, fields); diff != "" {
		t.Errorf("fields (-want +got):\n%s", diff)
	}

	compiled = 0
	revision.Spec.TeardownPolicy = "Perhaps"
	if errs := s.Validate(t.Context(), revision); compiled != 0 || len(errs) != 1 || errs[0].Field != "spec.teardownPolicy" {
		t.Errorf("%d expressions were compiled of a revision that is refused anyway: %v", compiled, errs)
	}
}

// stands is a chain without writes.
type stands struct{}

func (stands) Get(context.Context, string) (int64, error) { return 0, nil }

// TestUnreadableChain: an unreadable chain does not count as empty.
func TestUnreadableChain(t *testing.T) {
	unreadable := errors.New("etcd is away")
	s := &strategy{chainVersions: stands{}, chain: func(context.Context, string) ([]olm.ClusterExtensionRevision, error) { return nil, unreadable }}
	ctx, held := withStaged(t.Context())
	s.PrepareForCreate(ctx, &olm.ClusterExtensionRevision{ObjectMeta: metav1.ObjectMeta{Name: "e-1"}})
	r := &REST{contents: &contents{}}
	err := r.takeContents(nil, packAnnotation, false)(ctx, &olm.ClusterExtensionRevision{})
	if !errors.Is(held.failed(), unreadable) || err == nil {
		t.Errorf("the create went on, error %v", err)
	}
}

// TestStatusManagersAreForgotten: entries of updates to status are removed when the controllers
// write status. Entries of applies and of other fields stay.
func TestStatusManagersAreForgotten(t *testing.T) {
	entries := []metav1.ManagedFieldsEntry{
		{Manager: "kubectl", Operation: metav1.ManagedFieldsOperationApply},
		{Manager: "somebody", Operation: metav1.ManagedFieldsOperationApply, Subresource: "status"},
		{Manager: "penstock", Operation: metav1.ManagedFieldsOperationUpdate, Subresource: "status"},
		{Manager: "penstock", Operation: metav1.ManagedFieldsOperationUpdate},
	}
	for requester, want := range map[string][]metav1.ManagedFieldsEntry{
		user.APIServerUser: {entries[0], entries[1], entries[3]},
		"alice":            entries,
	} {
		revision := &olm.ClusterExtensionRevision{ObjectMeta: metav1.ObjectMeta{ManagedFields: slices.Clone(entries)}}
		ctx := request.WithUser(t.Context(), &user.DefaultInfo{Name: requester})
		statusStrategy{&strategy{}}.PrepareForUpdate(ctx, revision, &olm.ClusterExtensionRevision{})
		if diff := cmp.Diff(want, revision.ManagedFields); diff != "" {
			t.Errorf("a write of status by %s (-want +got):\n%s", requester, diff)
		}
	}
}

// TestArchivedByPenstockIsObserved: when Penstock archives an up-to-date revision, its
// observedGeneration rises with its generation. Helm's wait fails otherwise.
func TestArchivedByPenstockIsObserved(t *testing.T) {
	own := &user.DefaultInfo{Name: user.APIServerUser}
	for name, tc := range map[string]struct {
		who            user.Info
		observed, want int64
	}{
		"Penstock": {own, 3, 4},
		"Behind":   {own, 2, 2},
		"User":     {&user.DefaultInfo{Name: "alice"}, 3, 3},
	} {
		t.Run(name, func(t *testing.T) {
			stored := &olm.ClusterExtensionRevision{
				ObjectMeta: metav1.ObjectMeta{Name: "e-1", Generation: 3},
				Spec:       olm.ClusterExtensionRevisionSpec{Revision: 1, LifecycleState: olm.LifecycleStateActive},
				Status:     olm.ClusterExtensionRevisionStatus{ObservedGeneration: tc.observed},
			}
			revision := stored.DeepCopy()
			revision.Spec.LifecycleState = olm.LifecycleStateArchived
			admissionrequest.MarkInternal(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				ctx, _ := withStaged(request.WithUser(r.Context(), tc.who))
				(&strategy{}).PrepareForUpdate(ctx, revision, stored)
			}), "token").ServeHTTP(httptest.NewRecorder(), sentBy(t, "token"))
			if revision.Generation != 4 || revision.Status.ObservedGeneration != tc.want {
				t.Errorf("generation %d, observed %d, want 4 and %d", revision.Generation, revision.Status.ObservedGeneration, tc.want)
			}
		})
	}
}

// sentBy returns a request with a token.
func sentBy(t *testing.T, token string) *http.Request {
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPatch, "/", nil)
	r.Header.Set("Authorization", "Bearer "+token)
	return r
}
