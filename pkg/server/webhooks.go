package server

import (
	"net/http"

	"k8s.io/apiserver/pkg/authentication/serviceaccount"

	"github.com/penstock-project/penstock/pkg/admission/webhook"
	"github.com/penstock-project/penstock/pkg/admission/webhook/governed"
	"github.com/penstock-project/penstock/pkg/admission/webhook/installlevel"
	"github.com/penstock-project/penstock/pkg/server/registration"
	"github.com/penstock-project/penstock/pkg/server/serviceaccounts"
)

// Webhooks are those for the host's kinds.
func (o *Options) Webhooks() ([]webhook.Webhook, error) {
	resources, err := parseEach("--guard-install-levels", o.GuardInstallLevels, installlevel.ParseResource)
	if err != nil {
		return nil, err
	}
	all := []webhook.Webhook{governed.Webhook(
		serviceaccount.MakeUsername(o.Namespace, serviceaccounts.Engine().Name),
		serviceaccount.MakeUsername(o.Namespace, registration.ServiceAccount),
	)}
	if len(resources) > 0 {
		all = append(all, installlevel.Webhook(resources))
	}
	return all, nil
}

// withWebhooks answers reviews before anything else is done with a request. Whoever
// asks brings no credentials, so there is nothing to find out about them; and priority
// and fairness would have every review of the cluster queue with the requests of
// strangers. The paths are exact.
func withWebhooks(next http.Handler, webhooks map[string]http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if handler, ok := webhooks[r.URL.Path]; ok {
			handler.ServeHTTP(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}
