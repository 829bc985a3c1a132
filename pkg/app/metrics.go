package app

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/controller/metrics"
	"github.com/penstock-project/penstock/pkg/generated/clientset/versioned"
	"github.com/penstock-project/penstock/pkg/registry/olm/upgradereadiness"
	"github.com/penstock-project/penstock/pkg/rollout/targetclient"
	"github.com/penstock-project/penstock/pkg/server/leadership"
)

// addMetrics sets up the metrics of a term. It returns an observer for the engine.
func addMetrics(ctx context.Context, term leadership.Term, requests *targetclient.Counter) (*metrics.Metrics, error) {
	informer, err := term.Manager.GetCache().GetInformer(ctx, &olmv1alpha1.ClusterExtensionRevision{})
	if err != nil {
		return nil, fmt.Errorf("watching revisions for metrics: %w", err)
	}
	own, err := versioned.NewForConfig(component(term.Manager.GetConfig(), "metrics"))
	if err != nil {
		return nil, fmt.Errorf("connecting to our own API for metrics: %w", err)
	}
	if err := metrics.AddReadiness(ctx, term.Metrics, clock.RealClock{}, func(ctx context.Context) (*olmv1alpha1.UpgradeReadiness, error) {
		return own.OlmV1alpha1().UpgradeReadinesses().Get(ctx, upgradereadiness.Next, metav1.GetOptions{})
	}); err != nil {
		return nil, err
	}
	return metrics.Add(metrics.Options{
		Registry: term.Metrics,
		Informer: informer,
		Reader:   term.Manager.GetClient(),
		Clock:    clock.RealClock{},
		Requests: requests,
	})
}

// countedFor returns a client configuration whose requests are counted for a reason.
func countedFor(config *rest.Config, requests *targetclient.Counter, reason targetclient.Reason) *rest.Config {
	config.Wrap(requests.WrapFor(reason))
	return config
}
