package app

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"os"

	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	hcov1alpha1 "github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	controller "github.com/penstock-project/penstock/pkg/controller/notify"
	"github.com/penstock-project/penstock/pkg/extension"
	"github.com/penstock-project/penstock/pkg/notify"
	"github.com/penstock-project/penstock/pkg/outbound"
	"github.com/penstock-project/penstock/pkg/rollout/targetclient"
	"github.com/penstock-project/penstock/pkg/server/leadership"
)

// startNotifications adds the loop of notification receivers to a term.
func (s *Settings) startNotifications(ctx context.Context, term leadership.Term) error {
	secrets, err := kubernetes.NewForConfig(component(term.Host, "notifications"))
	if err != nil {
		return fmt.Errorf("connecting to the host for receivers of notifications: %w", err)
	}
	events, err := recorder(ctx, term, &targetclient.Counter{})
	if err != nil {
		return err
	}
	revisions, err := term.Manager.GetCache().GetInformer(ctx, &olmv1alpha1.ClusterExtensionRevision{})
	if err != nil {
		return fmt.Errorf("watching revisions for notifications: %w", err)
	}
	plans, err := term.Manager.GetCache().GetInformer(ctx, &hcov1alpha1.ConfigurationPlan{})
	if err != nil {
		return fmt.Errorf("watching plans for notifications: %w", err)
	}
	loop := controller.New(controller.Options{
		Secrets: secrets, Namespace: term.Namespace, Revisions: revisions, Plans: plans, Reader: term.Manager.GetClient(),
		Outbox: term.Outbox, Source: notify.Source(term.Visitor.Store), Dialer: outbound.Dialer{Hosts: hosts(term.Host.Host)},
		Events: events, Clock: clock.RealClock{},
	})
	s.looked = func(e *extension.Extension) { loop.Note(notify.OfExtension(e)) }
	if err := loop.Register(term.Metrics); err != nil {
		return err
	}
	return term.Manager.Add(manager.RunnableFunc(loop.Run))
}

// hosts returns the addresses of the host's API: the used address, and the address that Pods get.
func hosts(used string) []string {
	var all []string
	if at, err := url.Parse(used); err == nil && at.Hostname() != "" {
		port := at.Port()
		if port == "" {
			port = "443"
		}
		all = append(all, net.JoinHostPort(at.Hostname(), port))
	}
	if host, port := os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT"); host != "" && port != "" {
		all = append(all, net.JoinHostPort(host, port))
	}
	return all
}
