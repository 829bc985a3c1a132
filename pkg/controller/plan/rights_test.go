package plan

import (
	"context"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"

	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/authz"
)

// scoped is an authorizer that respects the scopes of a token.
type scoped struct {
	authorizationclient.SubjectAccessReviewInterface
}

func (scoped) Create(_ context.Context, review *authorizationv1.SubjectAccessReview, _ metav1.CreateOptions) (*authorizationv1.SubjectAccessReview, error) {
	scopes, limited := review.Spec.Extra["scopes"]
	review.Status.Allowed = !limited || slices.Contains(scopes, review.Spec.ResourceAttributes.Verb)
	return review, nil
}

// TestReviewsOfALimitedToken: the limits of a token at the approval also apply later.
func TestReviewsOfALimitedToken(t *testing.T) {
	approve, patch := authz.Right{Verb: "approve", Resource: "configurationplans", Name: "a"}, authz.Right{Verb: "patch", Resource: "knobs", Name: "k"}
	for name, c := range map[string]struct {
		reason string
		extra  map[string]v1alpha1.ExtraValue
		want   []string
	}{
		"unlimited": {"they have all of their rights", nil, nil},
		"limited":   {"their token was for approvals only", map[string]v1alpha1.ExtraValue{"scopes": {"approve"}}, []string{"patch knobs k"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Reviews{Client: scoped{}}.Lacks(t.Context(), v1alpha1.PlanApproval{Username: "alice", Extra: c.extra}, []authz.Right{approve, patch})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s: lacks (-want +got):\n%s", c.reason, diff)
			}
		})
	}
}
