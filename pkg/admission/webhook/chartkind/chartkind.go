// Package chartkind has the webhooks of ChartKinds: the one that notes who writes one, as a
// signed stamp, those that check the stamp and the spec, and the one that refuses whoever may not
// impersonate the ServiceAccount. Nobody but kube-apiserver is answered.
package chartkind

import (
	"context"
	"fmt"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/penstock-project/penstock/pkg/admission/webhook"
	"github.com/penstock-project/penstock/pkg/admission/webhook/authored"
	"github.com/penstock-project/penstock/pkg/chartkind"
	"github.com/penstock-project/penstock/pkg/chartkind/mapping"
	"github.com/penstock-project/penstock/pkg/extension"
	"github.com/penstock-project/penstock/pkg/extension/author"
)

// mayImpersonate is whether who writes a ChartKind may impersonate its ServiceAccount.
// kube-apiserver finds it out: it knows, and answers nobody else.
const mayImpersonate = "authorizer.group('').resource('serviceaccounts').namespace(object.spec.serviceAccount.namespace)" +
	".name(object.spec.serviceAccount.name).check('impersonate').allowed()"

// Webhooks are those of ChartKinds. Key returns the key of the store, or why there is none now;
// forOthers tells users who may not write any.
func Webhooks(key func() (author.Key, error), now func() time.Time, forOthers func(username string) bool) []webhook.Webhook {
	s := stamps{authored.Stamps{Subject: chartkind.Author(), Key: key, Now: now, ForOthers: forOthers}}
	refused := registration()
	refused.Conditions = append(refused.Conditions, admissionregistrationv1.MatchCondition{Name: "account", Expression: "!" + mayImpersonate})
	return []webhook.Webhook{
		{
			Name: "chartkind-author", Mutating: true, Authenticated: true,
			Decide:       func(_ context.Context, r webhook.Review) webhook.Answer { return s.note(r) },
			Registration: registration(),
		},
		{
			Name: "chartkind", Authenticated: true,
			Decide:       func(_ context.Context, r webhook.Review) webhook.Answer { return s.check(r) },
			Registration: registration(),
		},
		// It is asked about those who may not.
		{
			Name: "chartkind-account", Authenticated: true,
			Decide:       func(_ context.Context, r webhook.Review) webhook.Answer { return s.refuseAccount(r) },
			Registration: refused,
		},
	}
}

// registration asks about writes that change the spec or the stamp. While we do not answer,
// nobody makes such a write.
func registration() webhook.Registration {
	stamp := func(object string) string {
		return "(has(" + object + ".metadata.annotations) && '" + extension.AuthorAnnotation + "' in " + object + ".metadata.annotations ? " +
			object + ".metadata.annotations['" + extension.AuthorAnnotation + "'] : '')"
	}
	spec := func(object string) string { return "(has(" + object + ".spec) ? dyn(" + object + ".spec) : dyn(null))" }
	return webhook.Registration{
		Rules: []admissionregistrationv1.RuleWithOperations{{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
			Rule: admissionregistrationv1.Rule{
				APIGroups: []string{chartkind.Resource.Group}, APIVersions: []string{chartkind.Resource.Version},
				Resources: []string{chartkind.Resource.Resource}, Scope: ptr.To(admissionregistrationv1.ClusterScope)},
		}},
		Conditions: []admissionregistrationv1.MatchCondition{{
			Name:       "changes-what-an-author-answers-for",
			Expression: "request.operation == 'CREATE' || " + spec("object") + " != " + spec("oldObject") + " || " + stamp("object") + " != " + stamp("oldObject"),
		}},
		FailurePolicy:  admissionregistrationv1.Fail,
		TimeoutSeconds: authored.TimeoutSeconds,
		Again:          true,
	}
}

type stamps struct{ authored.Stamps }

// note stamps a write. What Penstock writes for somebody else is refused: nobody would be known to
// have lent the ServiceAccount.
func (s stamps) note(r webhook.Review) webhook.Answer {
	w, refused := s.Read(r)
	if refused != nil {
		return *refused
	}
	if w.ForOthers && w.MakesStamp() {
		return webhook.Refuse(fmt.Sprintf("%s would have %s as its author, who writes for others: whoever wants it writes it, and not by a revision or a plan", r, r.User.Username))
	}
	return w.Stamp(r, false)
}

// check is the last look at a write: whether the spec means something, and whether the stamp is
// that of whoever writes, for what is written.
func (s stamps) check(r webhook.Review) webhook.Answer {
	w, refused := s.Read(r)
	if refused != nil {
		return *refused
	}
	if errs := validate(w.Object, w.Old); len(errs) > 0 {
		return invalid(r, errs)
	}
	if !w.Changes() && !w.ChangesStamp() || w.IsStamped(w.Object.GetGeneration()) {
		return webhook.Answer{}
	}
	return webhook.Refuse(fmt.Sprintf("%s has no stamp of %s for what they write (annotation %s): mutatingwebhookconfigurations penstock must be registered, and no other webhook may change the spec or this annotation after it",
		r, r.User.Username, extension.AuthorAnnotation))
}

// validate says what is wrong with a ChartKind. Old is nil at a creation.
func validate(object, old *unstructured.Unstructured) field.ErrorList {
	unreadable := func(err error) field.ErrorList {
		return field.ErrorList{field.Invalid(field.NewPath("spec"), field.OmitValueType{}, err.Error())}
	}
	kind, err := chartkind.From(object)
	if err != nil {
		return unreadable(err)
	}
	if old == nil {
		return mapping.Validate(&kind.Spec, nil)
	}
	before, err := chartkind.From(old)
	if err != nil {
		return unreadable(err)
	}
	return mapping.Validate(&kind.Spec, &before.Spec)
}

// refuseAccount refuses whoever may not impersonate the ServiceAccount: what a chart makes of a
// custom resource cannot be judged beforehand, so they need all of its rights.
func (s stamps) refuseAccount(r webhook.Review) webhook.Answer {
	w, refused := s.Read(r)
	if refused != nil {
		return *refused
	}
	kind, err := chartkind.From(w.Object)
	if err != nil {
		return webhook.Refuse(fmt.Sprintf("%s cannot be read: %s", r, err))
	}
	return invalid(r, field.ErrorList{field.Invalid(field.NewPath("spec", "serviceAccount"), kind.Spec.ServiceAccount.String(),
		fmt.Sprintf("must be a ServiceAccount that %s may impersonate (verb impersonate on serviceaccounts): custom resources of the kind are installed in its name", r.User.Username))})
}

func invalid(r webhook.Review, errs field.ErrorList) webhook.Answer {
	status := apierrors.NewInvalid(chartkind.Kind.GroupKind(), r.Name, errs).Status()
	return webhook.Answer{Refusal: &status}
}
