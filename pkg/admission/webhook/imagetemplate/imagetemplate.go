// Package imagetemplate has the webhook of objects whose image follows a template. It stamps the
// template with its author, signed. It refuses a template that names an object which the author
// cannot read, because Penstock would read the object for the author.
//
// It fails open, so that users can write catalogs while Penstock is down. Penstock reads no object
// for an unsigned template, and the controller checks the rights of the author again.
package imagetemplate

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/penstock-project/penstock/pkg/admission/webhook"
	"github.com/penstock-project/penstock/pkg/admission/webhook/authored"
	"github.com/penstock-project/penstock/pkg/authz"
	"github.com/penstock-project/penstock/pkg/extension"
	"github.com/penstock-project/penstock/pkg/extension/author"
	"github.com/penstock-project/penstock/pkg/imagetemplate"
	"github.com/penstock-project/penstock/pkg/imagetemplate/annotated"
	"github.com/penstock-project/penstock/pkg/imagetemplate/lookup"
)

// Access finds objects and checks rights at the host.
type Access interface {
	// Find returns the resource of an object.
	Find(ctx context.Context, object imagetemplate.Object) (lookup.Resource, error)
	// May reports whether a user has a right. It returns an error if there is no answer.
	May(ctx context.Context, who user.Info, asked authz.Right) (bool, error)
}

// Webhooks returns the webhooks of templates, for each kind. key returns the key of the store, or
// an error while it is unavailable. forOthers reports users whose writes get no stamp.
func Webhooks(key func() (author.Key, error), now func() time.Time, forOthers func(username string) bool, access Access) []webhook.Webhook {
	var all []webhook.Webhook
	for _, kind := range annotated.Kinds() {
		d := door{authored.Stamps{Subject: kind.Subject(), Key: key, Now: now, ForOthers: forOthers}, access}
		all = append(all, webhook.Webhook{
			Name: "template-author-" + strings.ToLower(kind.Kind), Mutating: true, Authenticated: true,
			Decide: d.decide, Registration: registration(kind),
		})
	}
	return all
}

// registration registers for writes that change a template or the stamp, and for no other writes of
// catalogs.
func registration(kind annotated.Kind) webhook.Registration {
	scope := admissionregistrationv1.ClusterScope
	if kind.Namespaced {
		scope = admissionregistrationv1.NamespacedScope
	}
	var differ []string
	for _, name := range []string{annotated.OLMAnnotation, annotated.OwnAnnotation, extension.AuthorAnnotation} {
		of := func(object string) string {
			return "(" + object + " != null && has(" + object + ".metadata.annotations) && '" + name + "' in " + object + ".metadata.annotations ? " + object + ".metadata.annotations['" + name + "'] : '')"
		}
		differ = append(differ, of("object")+" != "+of("oldObject"))
	}
	return authored.Registration(kind.Resource, scope, admissionregistrationv1.Ignore,
		admissionregistrationv1.MatchCondition{Name: "changes-a-template", Expression: strings.Join(differ, " || ")})
}

type door struct {
	stamps authored.Stamps
	access Access
}

// decide admits a write with the stamp of its author, or refuses it.
func (d door) decide(ctx context.Context, r webhook.Review) webhook.Answer {
	w, refused := d.stamps.Read(r)
	switch {
	case refused != nil && refused.Refusal.Code == http.StatusServiceUnavailable:
		return webhook.Answer{Warnings: []string{refused.Refusal.Message}} // as while Penstock is down
	case refused != nil:
		return *refused
	}
	var warnings []string
	if w.MakesStamp() {
		for name := range annotated.Annotations() {
			text := w.Object.GetAnnotations()[name]
			template := imagetemplate.Parse(text)
			if text != "" && template.Problem != nil {
				warnings = append(warnings, fmt.Sprintf("annotation %s is no template: %s", name, template.Problem))
			}
			more, reason := d.mayRead(ctx, r.Info(), template)
			if reason != "" {
				return webhook.Refuse(fmt.Sprintf("annotation %s of %s: %s", name, r, reason))
			}
			warnings = append(warnings, more...)
		}
	}
	answer := w.Stamp(r, false)
	answer.Warnings = append(answer.Warnings, warnings...)
	return answer
}

// mayRead returns the reason why a user must not write a template. A check without an answer gives
// a warning only, because the controller checks again before it reads an object.
func (d door) mayRead(ctx context.Context, who user.Info, template *imagetemplate.Template) (warnings []string, reason string) {
	for _, variable := range template.Variables() {
		if variable.Field == nil {
			continue
		}
		resource, err := d.access.Find(ctx, variable.Field.Object)
		if missing, is := lookup.IsMissing(err); is && !missing.Kind {
			return nil, fmt.Sprintf("variable %s: %s", variable.Text, missing.Detail)
		}
		allowed := false
		if err == nil {
			allowed, err = d.access.May(ctx, who, resource.Right(variable.Field.Object))
		}
		switch {
		case err != nil:
			warnings = append(warnings, fmt.Sprintf("variable %s is not resolved yet: %s", variable.Text, err))
		case !allowed:
			return nil, fmt.Sprintf("%s cannot %s, and needs that right to write variable %s", who.GetName(), resource.Right(variable.Field.Object), variable.Text)
		}
	}
	return warnings, ""
}
