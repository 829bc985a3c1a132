package extension

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/penstock-project/penstock/pkg/admission/webhook"
	"github.com/penstock-project/penstock/pkg/admission/webhook/authored"
	"github.com/penstock-project/penstock/pkg/authz"
	"github.com/penstock-project/penstock/pkg/extension"
	"github.com/penstock-project/penstock/pkg/extension/values"
)

// Rights checks at the host whether a user has a right.
type Rights interface {
	May(ctx context.Context, who user.Info, asked authz.Right) (bool, error)
}

// mayGet refuses a write whose author cannot get the objects from which the extension takes values.
// The controller checks again at each use.
func mayGet(ctx context.Context, rights Rights, r webhook.Review, w *authored.Write) field.ErrorList {
	sources, err := values.Parse(w.Object.GetAnnotations()[extension.ValuesFromAnnotation])
	if err != nil || w.ForOthers || w.Brings || !w.Changes() && !w.ChangesStamp() {
		return nil // there are no sources, another check reports the error, or no author is set
	}
	path := field.NewPath("metadata", "annotations").Key(extension.ValuesFromAnnotation)
	namespace, _, _ := unstructured.NestedString(w.Object.Object, "spec", "namespace")
	asked := map[authz.Right]bool{}
	for _, source := range sources {
		right := authz.On(corev1.SchemeGroupVersion.WithResource(strings.ToLower(source.Kind)+"s"), "get", namespace, source.Name)
		if asked[right] {
			continue
		}
		asked[right] = true
		may, err := rights.May(ctx, r.Info(), right)
		if err != nil {
			return field.ErrorList{field.InternalError(path, fmt.Errorf("finding out whether %s may %s: %w", r.User.Username, right, err))}
		}
		if !may {
			return field.ErrorList{field.Forbidden(path, fmt.Sprintf("%s cannot %s", r.User.Username, right))}
		}
	}
	return nil
}
