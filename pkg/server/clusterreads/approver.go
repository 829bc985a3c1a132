package clusterreads

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/authz"
	"github.com/penstock-project/penstock/pkg/planwork"
)

// ApproverRights finds the rights that the caller of a request lacks to approve a plan. The
// controller checks them again before the first write, because rights may be withdrawn.
type ApproverRights struct {
	Authorizer authorizer.UnconditionalAuthorizer
	Kinds      planwork.Kinds
}

// Lacks describes the rights that the plan needs and the caller does not have. Errors are API
// errors: 409 for a kind that is not served, 503 if the answer is unknown.
func (r *ApproverRights) Lacks(ctx context.Context, plan *v1alpha1.ConfigurationPlan) ([]string, error) {
	caller, ok := request.UserFrom(ctx)
	if !ok {
		return nil, apierrors.NewInternalError(fmt.Errorf("asking who may approve %s: the request has no user", plan.Name))
	}
	rights, err := planwork.Rights(ctx, r.Kinds, plan)
	switch {
	case meta.IsNoMatchError(err):
		return nil, apierrors.NewConflict(v1alpha1.Resource("configurationplans"), plan.Name, fmt.Errorf("%w: retry the plan when its kind is served", err))
	case err != nil:
		return nil, authz.Unknown(err)
	}
	var lacks []string
	for _, asked := range rights {
		decision, _, err := r.Authorizer.Authorize(ctx, asked.Of(caller))
		switch {
		case decision == authorizer.DecisionAllow:
		case err != nil:
			return nil, authz.Unknown(err)
		default:
			lacks = append(lacks, asked.String())
		}
	}
	return lacks, nil
}
