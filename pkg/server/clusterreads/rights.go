package clusterreads

import (
	"context"
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/penstock-project/penstock/pkg/authz"
)

// targetRights decides which objects of another cluster a user of the host may see. Users with the
// right to use the target see all its objects; other users see none. For the user of the
// kubeconfig, the cluster itself decides.
type targetRights struct {
	host   authorizer.UnconditionalAuthorizer
	target kubernetes.Interface
	// name is the name of the cluster in RBAC rules.
	name string
	// self is the user of the kubeconfig.
	self user.Info
}

var _ authorizer.UnconditionalAuthorizer = &targetRights{}

func newTargetRights(host authorizer.UnconditionalAuthorizer, name string, config *rest.Config) (*targetRights, error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client for rights in the target cluster: %w", err)
	}
	return &targetRights{host: host, target: client, name: name, self: &user.DefaultInfo{Name: "of the kubeconfig of target " + name}}, nil
}

// Authorize implements authorizer.UnconditionalAuthorizer.
func (r *targetRights) Authorize(ctx context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	if a.GetUser() != r.self {
		return r.host.Authorize(ctx, authz.Use(r.name).Of(a.GetUser()))
	}
	asked := authz.Right{
		Verb: a.GetVerb(), Group: a.GetAPIGroup(), Version: a.GetAPIVersion(), Resource: a.GetResource(),
		Namespace: a.GetNamespace(), Name: a.GetName(),
	}
	review, err := r.target.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{
		Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: asked.Attributes()},
	}, metav1.CreateOptions{})
	switch {
	case err != nil:
		return authorizer.DecisionNoOpinion, "", fmt.Errorf("asking the target cluster what its kubeconfig may do: %w", err)
	case review.Status.Allowed:
		return authorizer.DecisionAllow, review.Status.Reason, nil
	default:
		return authorizer.DecisionNoOpinion, review.Status.Reason, nil
	}
}
