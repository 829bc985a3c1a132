package extension

import (
	"context"
	"fmt"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/penstock-project/penstock/pkg/admission/webhook"
	"github.com/penstock-project/penstock/pkg/admission/webhook/authored"
	"github.com/penstock-project/penstock/pkg/extension"
	"github.com/penstock-project/penstock/pkg/extension/order"
)

// Extensions lists all ClusterExtensions of the host. Their order is not a security boundary: if
// they cannot be listed, a write is allowed.
type Extensions func(ctx context.Context) ([]order.Extension, error)

// cycle refuses requirements by which an extension would wait for itself. Two concurrent writes can
// still create a cycle, which the controller reports.
func (e Extensions) cycle(ctx context.Context, w *authored.Write) field.ErrorList {
	value := w.Object.GetAnnotations()[extension.RequiresAnnotation]
	requires, err := extension.ParseRequires(value)
	if err != nil || w.Old != nil && w.Old.GetAnnotations()[extension.RequiresAnnotation] == value {
		return nil
	}
	all, err := e(ctx)
	if err != nil {
		return nil
	}
	of := make(map[string][]extension.Requirement, len(all))
	for _, one := range all {
		of[one.Name] = one.Requires
	}
	cycle := order.Cycle(w.Object.GetName(), requires, func(name string) []extension.Requirement { return of[name] }, 0)
	if cycle == nil {
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath("metadata", "annotations").Key(extension.RequiresAnnotation), value,
		fmt.Sprintf("it would require itself by way of %d other extensions, so that none begins", len(cycle)-1))}
}

// mayDelete refuses the deletion of an extension that installed extensions require, unless an
// annotation acknowledges it. It also refuses the deletion of a child of a ClusterExtensionSet.
func (e Extensions) mayDelete(ctx context.Context, r webhook.Review, penstock func(username string) bool) webhook.Answer {
	if r.Operation != admissionv1.Delete || r.Kind != extension.Kind.Kind || r.SubResource != "" {
		return webhook.Refuse(fmt.Sprintf("this webhook does not handle %s of %s %s", r.Operation, r, r.SubResource))
	}
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(r.OldJSON); err != nil {
		return webhook.Refuse(fmt.Sprintf("%s cannot be read: %s", r, err))
	}
	// A child without the annotation of a rollout is in a cluster that the set does not select any
	// more.
	set, served := object.GetAnnotations()[extension.SetAnnotation], object.GetAnnotations()[extension.RolloutAnnotation] != ""
	if set != "" && served && !penstock(r.User.Username) {
		return webhook.Refuse(fmt.Sprintf("%s is not deleted: ClusterExtensionSet %s asks for it: change the selector of the set, or delete the set, first", r, set))
	}
	all, err := e(ctx)
	if err != nil {
		return webhook.Answer{Warnings: []string{fmt.Sprintf("whether other ClusterExtensions require this one is not known: %s", err)}}
	}
	if why := order.Breaks(order.Of(object), "", all, object.GetAnnotations()[extension.AcknowledgeDependentsAnnotation], hidden); why != "" {
		return webhook.Refuse(fmt.Sprintf("%s is not deleted: %s", r, why))
	}
	return webhook.Answer{}
}

// hidden hides no extension name, because the rights of the user on other extensions are unknown
// here.
func hidden(string) bool { return false }

// deletions registers for deletions. While Penstock is unavailable, deletions are allowed.
func deletions() webhook.Registration {
	asked := authored.Registration(extension.Resource, admissionregistrationv1.ClusterScope, admissionregistrationv1.Ignore)
	asked.Rules[0].Operations = []admissionregistrationv1.OperationType{admissionregistrationv1.Delete}
	asked.Again = false
	return asked
}
