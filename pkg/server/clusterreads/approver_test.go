package clusterreads_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/server/clusterreads"
)

// kinds serves objects of x.io, or answers with an error.
type kinds struct{ err error }

func (k kinds) Served(_ context.Context, kind schema.GroupVersionKind) (*meta.RESTMapping, error) {
	if k.err != nil {
		return nil, k.err
	}
	return &meta.RESTMapping{Resource: kind.GroupVersion().WithResource("things")}, nil
}

type may struct {
	verbs []string
	err   error
}

func (m may) Authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	if a.GetUser().GetName() == "bob" && slices.Contains(m.verbs, a.GetVerb()) {
		return authorizer.DecisionAllow, "", nil
	}
	return authorizer.DecisionNoOpinion, "", m.err
}

func TestLacks(t *testing.T) {
	item := func(name string, action v1alpha1.ItemAction) v1alpha1.PlanItem {
		return v1alpha1.PlanItem{Name: name, Action: action, TargetRef: v1alpha1.TargetRef{APIVersion: "x.io/v1", Kind: "Thing", Name: name}}
	}
	plan := &v1alpha1.ConfigurationPlan{}
	plan.Name = "a"
	plan.Status.Items = []v1alpha1.PlanItem{
		item("made", v1alpha1.ItemCreate), item("changed", v1alpha1.ItemUpdate), item("gone", v1alpha1.ItemDelete), item("same", v1alpha1.ItemNone),
	}
	ctx := request.WithUser(t.Context(), &user.DefaultInfo{Name: "bob"})
	for name, tc := range map[string]struct {
		reason string
		rights clusterreads.ApproverRights
		want   []string
		is     func(error) bool
	}{
		"All": {reason: "nothing is missing", rights: clusterreads.ApproverRights{Kinds: kinds{}, Authorizer: may{verbs: []string{"approve", "create", "patch", "delete"}}}},
		"Some": {
			reason: "each missing right is named", rights: clusterreads.ApproverRights{Kinds: kinds{}, Authorizer: may{verbs: []string{"approve", "patch"}}},
			want: []string{"create things.x.io made", "delete things.x.io gone"},
		},
		"NotServed": {
			reason: "nobody can be asked about a kind that is not there", is: apierrors.IsConflict,
			rights: clusterreads.ApproverRights{Kinds: kinds{err: &meta.NoKindMatchError{}}, Authorizer: may{}},
		},
		"ClusterSilent": {
			reason: "a missing answer is no", is: apierrors.IsServiceUnavailable,
			rights: clusterreads.ApproverRights{Kinds: kinds{err: errors.New("no answer")}, Authorizer: may{}},
		},
		"AuthorizerSilent": {
			reason: "a missing answer is no", is: apierrors.IsServiceUnavailable,
			rights: clusterreads.ApproverRights{Kinds: kinds{}, Authorizer: may{err: errors.New("no answer")}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := tc.rights.Lacks(ctx, plan)
			if tc.is == nil && err != nil || tc.is != nil && !tc.is(err) {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
