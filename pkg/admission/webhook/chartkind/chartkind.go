// Package chartkind has the webhooks of ChartKinds. The first stamps a ChartKind with its author,
// the second checks the stamp and the spec, and the third refuses users who cannot impersonate the
// ServiceAccount. They answer only kube-apiserver.
package chartkind

import (
	"context"
	"fmt"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/penstock-project/penstock/pkg/admission/webhook"
	"github.com/penstock-project/penstock/pkg/admission/webhook/authored"
	"github.com/penstock-project/penstock/pkg/chartkind"
	"github.com/penstock-project/penstock/pkg/chartkind/mapping"
	"github.com/penstock-project/penstock/pkg/extension/author"
)

// mayImpersonate is a CEL expression: the author of a ChartKind can impersonate its ServiceAccount.
// kube-apiserver evaluates it with its own authorizer.
const mayImpersonate = "authorizer.group('').resource('serviceaccounts').namespace(object.spec.serviceAccount.namespace)" +
	".name(object.spec.serviceAccount.name).check('impersonate').allowed()"

// Webhooks returns the webhooks of ChartKinds. key returns the key of the store, or an error while
// it is unavailable. forOthers reports users who write on behalf of others; their ChartKinds are
// refused.
func Webhooks(key func() (author.Key, error), now func() time.Time, forOthers func(username string) bool) []webhook.Webhook {
	s := stamps{authored.Stamps{Subject: chartkind.Author(), Key: key, Now: now, ForOthers: forOthers}}
	refused := authored.SpecRegistration(chartkind.Resource)
	refused.Conditions = append(refused.Conditions, admissionregistrationv1.MatchCondition{Name: "account", Expression: "!" + mayImpersonate})
	return []webhook.Webhook{
		{
			Name: "chartkind-author", Mutating: true, Authenticated: true,
			Decide:       func(_ context.Context, r webhook.Review) webhook.Answer { return s.StampForThemselves(r, false) },
			Registration: authored.SpecRegistration(chartkind.Resource),
		},
		{
			Name: "chartkind", Authenticated: true,
			Decide:       func(_ context.Context, r webhook.Review) webhook.Answer { return s.Check(r, validate) },
			Registration: authored.SpecRegistration(chartkind.Resource),
		},
		// kube-apiserver calls this webhook only for users who cannot impersonate the account.
		{
			Name: "chartkind-account", Authenticated: true,
			Decide:       func(_ context.Context, r webhook.Review) webhook.Answer { return s.refuseAccount(r) },
			Registration: refused,
		},
	}
}

type stamps struct{ authored.Stamps }

func validate(w *authored.Write) field.ErrorList {
	unreadable := func(err error) field.ErrorList {
		return field.ErrorList{field.Invalid(field.NewPath("spec"), field.OmitValueType{}, err.Error())}
	}
	kind, err := chartkind.From(w.Object)
	if err != nil {
		return unreadable(err)
	}
	if w.Old == nil {
		return mapping.Validate(&kind.Spec, nil)
	}
	before, err := chartkind.From(w.Old)
	if err != nil {
		return unreadable(err)
	}
	return mapping.Validate(&kind.Spec, &before.Spec)
}

// refuseAccount refuses users who cannot impersonate the ServiceAccount. They need all of its
// rights, because the objects that a chart creates for a custom resource are unknown in advance.
func (s stamps) refuseAccount(r webhook.Review) webhook.Answer {
	w, refused := s.Read(r)
	if refused != nil {
		return *refused
	}
	kind, err := chartkind.From(w.Object)
	if err != nil {
		return webhook.Refuse(fmt.Sprintf("%s cannot be read: %s", r, err))
	}
	return s.Invalid(r, field.ErrorList{field.Invalid(field.NewPath("spec", "serviceAccount"), kind.Spec.ServiceAccount.String(),
		fmt.Sprintf("must be a ServiceAccount that %s may impersonate (verb impersonate on serviceaccounts): custom resources of the kind are installed in its name", r.User.Username))})
}
