// Package extensionset has the webhooks of ClusterExtensionSets. The first stamps a set with its
// author, signed. The second checks the stamp and the spec. They answer only kube-apiserver.
package extensionset

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/penstock-project/penstock/pkg/admission/webhook"
	"github.com/penstock-project/penstock/pkg/admission/webhook/authored"
	"github.com/penstock-project/penstock/pkg/extension/author"
	"github.com/penstock-project/penstock/pkg/extensionset"
)

// Webhooks returns the webhooks of ClusterExtensionSets. key returns the key of the store, or an
// error while it is unavailable. forOthers reports users who write on behalf of others.
func Webhooks(key func() (author.Key, error), now func() time.Time, forOthers func(username string) bool) []webhook.Webhook {
	s := authored.Stamps{Subject: extensionset.Author(), Key: key, Now: now, ForOthers: forOthers}
	return []webhook.Webhook{
		{
			Name: "extensionset-author", Mutating: true, Authenticated: true,
			Decide:       func(_ context.Context, r webhook.Review) webhook.Answer { return s.StampForThemselves(r, false) },
			Registration: authored.SpecRegistration(extensionset.Resource),
		},
		{
			Name: "extensionset", Authenticated: true,
			Decide:       func(_ context.Context, r webhook.Review) webhook.Answer { return s.Check(r, validate) },
			Registration: authored.SpecRegistration(extensionset.Resource),
		},
	}
}

func validate(w *authored.Write) field.ErrorList {
	set, err := extensionset.From(w.Object)
	if err != nil {
		return field.ErrorList{field.Invalid(field.NewPath("spec"), w.Object.GetName(), err.Error())}
	}
	return extensionset.Validate(set)
}
