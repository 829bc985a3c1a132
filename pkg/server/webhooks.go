package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/penstock-project/penstock/pkg/admission/webhook"
	"github.com/penstock-project/penstock/pkg/admission/webhook/chartkind"
	"github.com/penstock-project/penstock/pkg/admission/webhook/extension"
	"github.com/penstock-project/penstock/pkg/admission/webhook/extensionset"
	"github.com/penstock-project/penstock/pkg/admission/webhook/governed"
	"github.com/penstock-project/penstock/pkg/admission/webhook/imagetemplate"
	"github.com/penstock-project/penstock/pkg/admission/webhook/installlevel"
	"github.com/penstock-project/penstock/pkg/admission/webhook/maintenancewindow"
	"github.com/penstock-project/penstock/pkg/admission/webhook/owners"
	"github.com/penstock-project/penstock/pkg/authz"
	clusterextension "github.com/penstock-project/penstock/pkg/extension"
	"github.com/penstock-project/penstock/pkg/extension/author"
	"github.com/penstock-project/penstock/pkg/extension/order"
	"github.com/penstock-project/penstock/pkg/imagetemplate/lookup"
	"github.com/penstock-project/penstock/pkg/server/accessreview"
	"github.com/penstock-project/penstock/pkg/server/registration"
	"github.com/penstock-project/penstock/pkg/server/serviceaccounts"
)

// Webhooks returns the webhooks for the host's kinds. key returns the key that signs the stamps of
// authors, access asks the host, and extensions lists ClusterExtensions. They may be nil if no
// review is answered.
func (o *Options) Webhooks(key func() (author.Key, error), access imagetemplate.Access, extensions extension.Extensions) ([]webhook.Webhook, error) {
	resources, err := parseEach("--guard-install-levels", o.GuardInstallLevels, installlevel.ParseResource)
	if err != nil {
		return nil, err
	}
	all := governed.Webhooks(
		serviceaccount.MakeUsername(o.Namespace, serviceaccounts.Engine().Name),
		serviceaccount.MakeUsername(o.Namespace, registration.ServiceAccount),
	)
	all = append(all, owners.Webhook())
	if len(resources) > 0 {
		all = append(all, installlevel.Webhook(resources))
	}
	all = append(all, extension.Webhooks(key, time.Now, o.writesForOthers, o.isPenstock, extensions, access)...)
	all = append(all, extensionset.Webhooks(key, time.Now, o.writesForOthers)...)
	all = append(all, chartkind.Webhooks(key, time.Now, o.writesForOthers)...)
	all = append(all, maintenancewindow.Webhook())
	return append(all, imagetemplate.Webhooks(key, time.Now, o.writesForOthers, access)...), nil
}

// writesForOthers reports whether a user is a ServiceAccount of Penstock. Its writes execute
// revisions and plans, whose authors may have fewer rights.
func (o *Options) writesForOthers(username string) bool {
	namespace, _, err := serviceaccount.SplitUsername(username)
	return err == nil && namespace == o.Namespace
}

// isPenstock reports whether a user is the ServiceAccount of this process.
func (o *Options) isPenstock(username string) bool {
	return username == serviceaccount.MakeUsername(o.Namespace, registration.ServiceAccount)
}

// templateAccess asks the host for the rights of templates' authors, in the name of this process.
type templateAccess struct {
	*lookup.Reader
	client kubernetes.Interface
}

func (s *Server) newTemplateAccess() (*templateAccess, error) {
	config := s.host.ConfigFor("webhooks")
	reader, err := lookup.New(config)
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connecting to the host for webhooks: %w", err)
	}
	return &templateAccess{reader, client}, nil
}

// May implements imagetemplate.Access.
func (a *templateAccess) May(ctx context.Context, who user.Info, asked authz.Right) (bool, error) {
	return accessreview.May(ctx, a.client, who, asked)
}

func (s *Server) listExtensions() (extension.Extensions, error) {
	client, err := dynamic.NewForConfig(s.host.ConfigFor("webhooks"))
	if err != nil {
		return nil, fmt.Errorf("connecting to the host for webhooks: %w", err)
	}
	return func(ctx context.Context) ([]order.Extension, error) {
		list, err := client.Resource(clusterextension.Resource).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
		if err != nil {
			return nil, err
		}
		all := make([]order.Extension, len(list.Items))
		for i := range list.Items {
			all[i] = order.Of(&list.Items[i])
		}
		return all, nil
	}, nil
}

func (s *Server) stampKey() (author.Key, error) {
	if reason := s.decision.Degraded; reason != "" {
		return author.Key{}, errors.New(reason)
	}
	return author.NewKey(s.decision.Identity.SecretKey[:]), nil
}

// authenticated selects webhooks that only kube-apiserver may call.
func authenticated(w webhook.Webhook) bool { return w.Authenticated }

// anonymous selects all other webhooks.
func anonymous(w webhook.Webhook) bool { return !w.Authenticated }

// withWebhooks answers reviews at their exact paths. Anonymous reviews are answered before all
// other handlers: there is no user to authenticate. Otherwise priority and fairness would queue
// every review of the cluster with the requests of anonymous users. Authenticated reviews are
// answered after authentication. They need only data in memory, so they come before the checks of
// the store.
func withWebhooks(next http.Handler, webhooks map[string]http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if handler, ok := webhooks[r.URL.Path]; ok {
			handler.ServeHTTP(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}
