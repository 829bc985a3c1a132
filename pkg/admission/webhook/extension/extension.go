// Package extension has the webhooks of ClusterExtensions. The mutating webhooks stamp an extension
// with its author, signed. The validating webhook runs last, and checks the stamp and the annotations.
//
// Penstock creates revisions in the name of the stamp's user, so a false stamp would give that user's
// rights. Therefore the webhooks answer only kube-apiserver, which calls them with its own
// credentials.
package extension

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/penstock-project/penstock/pkg/admission/webhook"
	"github.com/penstock-project/penstock/pkg/admission/webhook/authored"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/apis/olm/validation"
	"github.com/penstock-project/penstock/pkg/extension"
	"github.com/penstock-project/penstock/pkg/extension/author"
)

// Webhooks returns the webhooks of ClusterExtensions. key returns the key of the store, or an error
// while it is unavailable. forOthers reports users who write on behalf of others. penstock reports
// the user of this process; only that user writes the children of ClusterExtensionSets. all lists
// the extensions. rights checks rights at the host.
func Webhooks(key func() (author.Key, error), now func() time.Time, forOthers, penstock func(username string) bool, all Extensions, rights Rights) []webhook.Webhook {
	s := authored.Stamps{Subject: author.ClusterExtensions(), Key: key, Now: now, ForOthers: forOthers, Brings: penstock}
	return []webhook.Webhook{
		{
			Name: "extension-author", Mutating: true, Authenticated: true,
			Decide:       func(_ context.Context, r webhook.Review) webhook.Answer { return s.StampForThemselves(r, false) },
			Registration: registration("!" + mayBypass),
		},
		// The match condition checks whether the author can bypass. kube-apiserver calls this
		// webhook only if the condition holds, so the call proves the right.
		{
			Name: "extension-author-bypass", Mutating: true, Authenticated: true,
			Decide:       func(_ context.Context, r webhook.Review) webhook.Answer { return s.StampForThemselves(r, true) },
			Registration: registration(mayBypass),
		},
		{
			Name: "extension", Authenticated: true,
			Decide: func(ctx context.Context, r webhook.Review) webhook.Answer {
				return s.Check(r, func(w *authored.Write) field.ErrorList {
					return slices.Concat(validate(w), drift(w, now()), child(w), all.cycle(ctx, w), mayGet(ctx, rights, r, w))
				})
			},
			Registration: registration(""),
		},
		{Name: "extension-dependents", Authenticated: true, Decide: func(ctx context.Context, r webhook.Review) webhook.Answer { return all.mayDelete(ctx, r, penstock) }, Registration: deletions()},
	}
}

const mayBypass = "authorizer.group('policy.penstock.dev').resource('privilegechecks').name(request.name).check('bypass').allowed()"

// registration registers for writes that change the spec, an annotation of Penstock, or a label of
// a set's child. It excludes subresources and deletions. While Penstock is unavailable,
// kube-apiserver refuses such writes; without a stamp they would have no effect.
func registration(who string) webhook.Registration {
	annotations := func(object string) string {
		return "(has(" + object + ".metadata.annotations) ? dyn(" + object + ".metadata.annotations) : dyn({}))"
	}
	labels := func(object string) string {
		return "(has(" + object + ".metadata.labels) ? dyn(" + object + ".metadata.labels) : dyn({}))"
	}
	is, was := annotations("object"), annotations("oldObject")
	conditions := []admissionregistrationv1.MatchCondition{{
		Name: "changes-what-an-author-answers-for",
		Expression: "request.operation == 'CREATE' || " + authored.Spec("object") + " != " + authored.Spec("oldObject") + " || " +
			"!" + is + ".all(k, !k.startsWith('" + extension.AnnotationPrefix + "') || k in " + was + " && " + was + "[k] == " + is + "[k]) || " +
			"!" + was + ".all(k, !k.startsWith('" + extension.AnnotationPrefix + "') || k in " + is + ") || " +
			"'" + extension.SetAnnotation + "' in " + was + " && " + labels("object") + " != " + labels("oldObject"),
	}}
	if who != "" {
		conditions = append(conditions, admissionregistrationv1.MatchCondition{Name: "author", Expression: who})
	}
	return authored.Registration(extension.Resource, admissionregistrationv1.ClusterScope, admissionregistrationv1.Fail, conditions...)
}

// child refuses changes of a child of a ClusterExtensionSet, and of the annotations that mark a
// child, by users other than Penstock.
func child(w *authored.Write) field.ErrorList {
	if w.Brings {
		return nil
	}
	var old map[string]string
	if w.Old != nil {
		old = w.Old.GetAnnotations()
	}
	annotations := w.Object.GetAnnotations()
	if set := old[extension.SetAnnotation]; set != "" && (w.Changes() || w.ChangesStamp() || !maps.Equal(w.Object.GetLabels(), w.Old.GetLabels())) {
		return field.ErrorList{field.Forbidden(field.NewPath("metadata", "annotations").Key(extension.SetAnnotation),
			fmt.Sprintf("only Penstock changes it: change ClusterExtensionSet %s", set))}
	}
	var errs field.ErrorList
	for _, name := range extension.SetAnnotations() {
		if annotations[name] != old[name] {
			errs = append(errs, field.Forbidden(field.NewPath("metadata", "annotations").Key(name), "only Penstock writes this annotation"))
		}
	}
	return errs
}

// drift refuses an end of reported drift that has passed or is too far ahead.
func drift(w *authored.Write, now time.Time) field.ErrorList {
	value := w.Object.GetAnnotations()[extension.ReportDriftUntilAnnotation]
	if value == "" || w.Old != nil && w.Old.GetAnnotations()[extension.ReportDriftUntilAnnotation] == value {
		return nil
	}
	if _, err := v1alpha1.ReportsDriftUntil(value, now); err != nil {
		return field.ErrorList{field.Invalid(field.NewPath("metadata", "annotations").Key(extension.ReportDriftUntilAnnotation), value, err.Error())}
	}
	return nil
}

func validate(w *authored.Write) field.ErrorList {
	var old map[string]string
	if w.Old != nil {
		old = w.Old.GetAnnotations()
	}
	annotations := w.Object.GetAnnotations()
	errs := extension.ValidateAnnotations(annotations, old, w.Old == nil)
	if value := annotations[extension.YieldAnnotation]; value != "" && value != old[extension.YieldAnnotation] {
		// extension.ValidateAnnotations reports an unreadable value.
		if rules, err := extension.ParseYield(value); err == nil {
			errs = append(errs, validation.Yield(rules, field.NewPath("metadata", "annotations").Key(extension.YieldAnnotation))...)
		}
	}
	if value := annotations[extension.MetricChecksAnnotation]; value != old[extension.MetricChecksAnnotation] {
		errs = append(errs, validation.MetricChecks(extension.ParseMetricChecks(value), field.NewPath("metadata", "annotations").Key(extension.MetricChecksAnnotation))...)
	}
	return errs
}
