// Package extension has the webhooks of ClusterExtensions: those that note who writes one, as
// a signed stamp, and the one that checks the stamp last, beside the annotations.
//
// The stamp is worth something: a revision is made in the name that it has. So nobody but
// kube-apiserver is answered, and it asks with its own credentials.
package extension

import (
	"context"
	"fmt"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/penstock-project/penstock/pkg/admission/webhook"
	"github.com/penstock-project/penstock/pkg/admission/webhook/authored"
	"github.com/penstock-project/penstock/pkg/extension"
	"github.com/penstock-project/penstock/pkg/extension/author"
)

// Webhooks are those of ClusterExtensions. Key returns the key of the store, or why there is
// none now; forOthers tells users who may not write any.
func Webhooks(key func() (author.Key, error), now func() time.Time, forOthers func(username string) bool) []webhook.Webhook {
	s := stamps{authored.Stamps{Subject: author.ClusterExtensions(), Key: key, Now: now, ForOthers: forOthers}}
	return []webhook.Webhook{
		{
			Name: "extension-author", Mutating: true, Authenticated: true,
			Decide:       func(_ context.Context, r webhook.Review) webhook.Answer { return s.note(r, false) },
			Registration: registration("!" + mayBypass),
		},
		// Whether the author may bypass, kube-apiserver finds out: it knows, and answers
		// nobody else.
		{
			Name: "extension-author-bypass", Mutating: true, Authenticated: true,
			Decide:       func(_ context.Context, r webhook.Review) webhook.Answer { return s.note(r, true) },
			Registration: registration(mayBypass),
		},
		{
			Name: "extension", Authenticated: true,
			Decide:       func(_ context.Context, r webhook.Review) webhook.Answer { return s.check(r) },
			Registration: registration(""),
		},
	}
}

const mayBypass = "authorizer.group('policy.penstock.dev').resource('privilegechecks').name(request.name).check('bypass').allowed()"

// registration asks about writes that change the spec or an annotation of ours, and about no
// subresource and no deletion. While we do not answer, nobody makes such a write: what was
// written without a stamp would act for nobody anyway.
func registration(who string) webhook.Registration {
	annotations := func(object string) string {
		return "(has(" + object + ".metadata.annotations) ? dyn(" + object + ".metadata.annotations) : dyn({}))"
	}
	spec := func(object string) string { return "(has(" + object + ".spec) ? dyn(" + object + ".spec) : dyn(null))" }
	is, was := annotations("object"), annotations("oldObject")
	conditions := []admissionregistrationv1.MatchCondition{{
		Name: "changes-what-an-author-answers-for",
		Expression: "request.operation == 'CREATE' || " + spec("object") + " != " + spec("oldObject") + " || " +
			"!" + is + ".all(k, !k.startsWith('" + extension.AnnotationPrefix + "') || k in " + was + " && " + was + "[k] == " + is + "[k]) || " +
			"!" + was + ".all(k, !k.startsWith('" + extension.AnnotationPrefix + "') || k in " + is + ")",
	}}
	if who != "" {
		conditions = append(conditions, admissionregistrationv1.MatchCondition{Name: "author", Expression: who})
	}
	return webhook.Registration{
		Rules: []admissionregistrationv1.RuleWithOperations{{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
			Rule: admissionregistrationv1.Rule{
				APIGroups: []string{extension.Resource.Group}, APIVersions: []string{extension.Resource.Version},
				Resources: []string{extension.Resource.Resource}, Scope: ptr.To(admissionregistrationv1.ClusterScope)},
		}},
		Conditions:     conditions,
		FailurePolicy:  admissionregistrationv1.Fail,
		TimeoutSeconds: authored.TimeoutSeconds,
		Again:          true,
	}
}

type stamps struct{ authored.Stamps }

// note stamps a write. What Penstock writes for somebody else is refused: it would be installed
// with the rights of Penstock, or in nobody's name.
func (s stamps) note(r webhook.Review, bypass bool) webhook.Answer {
	w, refused := s.Read(r)
	if refused != nil {
		return *refused
	}
	if w.ForOthers && w.MakesStamp() {
		return webhook.Refuse(fmt.Sprintf("%s would have %s as its author, who writes for others: whoever wants it writes it, and not by a revision or a plan", r, r.User.Username))
	}
	return w.Stamp(r, bypass)
}

// check is the last look at a write: whether the annotations mean something, and whether the
// stamp is that of whoever writes, for what is written. Another webhook may have changed
// both.
func (s stamps) check(r webhook.Review) webhook.Answer {
	w, refused := s.Read(r)
	if refused != nil {
		return *refused
	}
	var old map[string]string
	if w.Old != nil {
		old = w.Old.GetAnnotations()
	}
	if errs := extension.ValidateAnnotations(w.Object.GetAnnotations(), old, w.Old == nil); len(errs) > 0 {
		return invalid(r, errs)
	}
	if !w.Changes() && !w.ChangesStamp() || w.IsStamped(w.Object.GetGeneration()) {
		return webhook.Answer{}
	}
	return webhook.Refuse(fmt.Sprintf("%s has no stamp of %s for what they write (annotation %s): mutatingwebhookconfigurations penstock must be registered, and no other webhook may change the spec or this annotation after it",
		r, r.User.Username, extension.AuthorAnnotation))
}

// invalid is the answer to annotations that mean nothing.
func invalid(r webhook.Review, errs field.ErrorList) webhook.Answer {
	status := apierrors.NewInvalid(extension.Kind.GroupKind(), r.Name, errs).Status()
	return webhook.Answer{Refusal: &status}
}
