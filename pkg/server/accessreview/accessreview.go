// Package accessreview asks the host for the rights of this process.
package accessreview

import (
	"context"
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"github.com/penstock-project/penstock/pkg/authz"
)

// Allowed asks the host whether the user of a client has a right. After an error the answer is
// unknown.
func Allowed(ctx context.Context, client kubernetes.Interface, asked authz.Right) (bool, error) {
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: asked.Attributes()}}
	review, err := client.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return false, fmt.Errorf("asking the host whether this process may %s: %w", asked, err)
	}
	return review.Status.Allowed, nil
}

// May asks the host whether a user has a right. After an error the answer is unknown: callers must
// then deny.
func May(ctx context.Context, client kubernetes.Interface, who user.Info, asked authz.Right) (bool, error) {
	extra := map[string]authorizationv1.ExtraValue{}
	for key, values := range who.GetExtra() {
		extra[key] = values
	}
	review, err := client.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: who.GetName(), UID: who.GetUID(), Groups: who.GetGroups(), Extra: extra, ResourceAttributes: asked.Attributes(),
	}}, metav1.CreateOptions{})
	if err != nil {
		return false, fmt.Errorf("asking whether %s may %s: %w", who.GetName(), asked, err)
	}
	return review.Status.Allowed, nil
}

// MayWatch reports whether the user of a client may list and watch an object. Without the right, it
// logs the feature that is unavailable. If the right cannot be checked, it returns true, so that
// the caller tries.
func MayWatch(ctx context.Context, client kubernetes.Interface, resource schema.GroupVersionResource, namespace, name, feature string) bool {
	for _, verb := range []string{"list", "watch"} {
		asked := authz.On(resource, verb, namespace, name)
		allowed, err := Allowed(ctx, client, asked)
		switch {
		case ctx.Err() != nil:
			return false
		case err != nil:
			klog.FromContext(ctx).Error(err, "The right to watch could not be checked; watching anyway", "feature", feature)
		case !allowed:
			klog.FromContext(ctx).Info("Going without a feature", "feature", feature, "reason", "the right is missing to "+asked.String())
			return false
		}
	}
	return true
}
