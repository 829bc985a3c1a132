package plan

import (
	"context"
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"

	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/authz"
	"github.com/penstock-project/penstock/pkg/governance"
	"github.com/penstock-project/penstock/pkg/planwork"
)

// lacks returns the first approver who lacks rights that the plan needs, with these rights.
func (s *scope) lacks(ctx context.Context) (who string, lacks []string, err error) {
	rights, err := planwork.Rights(ctx, s.Engine.Reader, s.plan)
	if err != nil {
		return "", nil, err
	}
	for _, approval := range governance.Each(*s.plan.Status.Approval) {
		lacks, err := s.Rights.Lacks(ctx, approval, rights)
		if err != nil || len(lacks) > 0 {
			return approval.Username, lacks, err
		}
	}
	return "", nil, nil
}

// Reviews implements Rights with SubjectAccessReviews.
type Reviews struct {
	Client authorizationclient.SubjectAccessReviewInterface
}

var _ Rights = Reviews{}

// Lacks implements Rights. If the cluster does not answer, it returns an error, so that no right is
// granted.
func (r Reviews) Lacks(ctx context.Context, who v1alpha1.PlanApproval, rights []authz.Right) ([]string, error) {
	// Some authorizers read Extra, for example the scopes of a token. Without Extra they would
	// allow more than the approver may do.
	var extra map[string]authorizationv1.ExtraValue
	for key, values := range who.Extra {
		if extra == nil {
			extra = map[string]authorizationv1.ExtraValue{}
		}
		extra[key] = authorizationv1.ExtraValue(values)
	}
	var lacks []string
	for _, asked := range rights {
		review, err := r.Client.Create(ctx, &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: who.Username, UID: who.UID, Groups: who.Groups, Extra: extra,
			ResourceAttributes: asked.Attributes(),
		}}, metav1.CreateOptions{})
		if err != nil {
			return nil, fmt.Errorf("asking whether %s may %s: %w", who.Username, asked, err)
		}
		if !review.Status.Allowed {
			lacks = append(lacks, asked.String())
		}
	}
	return lacks, nil
}
