// Package accessreview asks the host what this process may do there.
package accessreview

import (
	"context"
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
)

// Access is one verb on a resource of the host, or on one object of it.
type Access struct {
	Verb     string
	Resource schema.GroupVersionResource
	// Namespace and Name of the object; both are empty for all objects.
	Namespace, Name string
}

// String spells it as a rule that an administrator can grant.
func (a Access) String() string {
	name := a.Resource.Resource
	if a.Resource.Group != "" {
		name += "." + a.Resource.Group
	}
	if a.Name != "" {
		name += " " + a.Namespace + "/" + a.Name
	}
	return a.Verb + " " + name
}

// Allowed asks the host whether the user of a client has this access. An error means
// that it is not known.
func Allowed(ctx context.Context, client kubernetes.Interface, question Access) (bool, error) {
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb:      question.Verb,
			Group:     question.Resource.Group,
			Version:   question.Resource.Version,
			Resource:  question.Resource.Resource,
			Namespace: question.Namespace,
			Name:      question.Name,
		},
	}}
	review, err := client.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return false, fmt.Errorf("asking the host whether this process may %s: %w", question, err)
	}
	return review.Status.Allowed, nil
}

// MayWatch tells whether the user of a client may list and watch an object. If not, it says
// which feature that costs. When that is not known, one tries.
func MayWatch(ctx context.Context, client kubernetes.Interface, object Access, feature string) bool {
	for _, object.Verb = range []string{"list", "watch"} {
		allowed, err := Allowed(ctx, client, object)
		switch {
		case ctx.Err() != nil:
			return false
		case err != nil:
			klog.FromContext(ctx).Error(err, "Watching all the same", "feature", feature)
		case !allowed:
			klog.FromContext(ctx).Info("Going without a feature", "feature", feature, "reason", "the right is missing to "+object.String())
			return false
		}
	}
	return true
}
