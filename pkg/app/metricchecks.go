package app

import (
	"fmt"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/utils/clock"

	metricchecks "github.com/penstock-project/penstock/pkg/controller/metriccheck"
	"github.com/penstock-project/penstock/pkg/metriccheck"
	"github.com/penstock-project/penstock/pkg/outbound"
	"github.com/penstock-project/penstock/pkg/server/leadership"
)

// metricChecks adds the controller of MetricChecks to a term. The controller calls notify when an
// answer arrives.
func metricChecks(term leadership.Term, notify func(string)) (*metricchecks.Controller, error) {
	config := component(term.Host, "metric-checks")
	options := metricchecks.Options{
		Namespace: term.Namespace, Dialer: outbound.Dialer{Hosts: hosts(term.Host.Host)}, Clock: clock.RealClock{}, Notify: notify,
	}
	core, err := kubernetes.NewForConfig(config)
	if err == nil {
		options.Secrets = core
		options.Checks, err = dynamic.NewForConfig(config)
	}
	if err == nil {
		options.Definitions, err = metadata.NewForConfig(config)
	}
	if err != nil {
		return nil, fmt.Errorf("connecting to the host for MetricChecks: %w", err)
	}
	controller := metricchecks.New(options)
	if err := controller.Register(term.Metrics); err != nil {
		return nil, err
	}
	return controller, term.Manager.Add(whenWatchable(core, metriccheck.DefinitionName, metriccheck.Resource,
		"MetricChecks: rollouts that name one do not succeed", controller.Run))
}
