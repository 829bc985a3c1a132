package app

import (
	"context"
	"fmt"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	hcov1alpha1 "github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/controller/metrics"
	"github.com/penstock-project/penstock/pkg/controller/upkeep"
	"github.com/penstock-project/penstock/pkg/server/leadership"
)

// startUpkeep adds the loop that deletes unreferenced records of the store, and checks the store.
func startUpkeep(ctx context.Context, term leadership.Term) error {
	measured, err := metrics.AddStore(term.Metrics)
	if err != nil {
		return err
	}
	loop := upkeep.New(upkeep.Options{
		Collector: func() upkeep.Collector { return term.Upkeep.Collector() },
		Check:     term.Upkeep.Check,
		Metrics:   measured,
		Clock:     clock.RealClock{},
		Raised:    term.Upkeep.Raised,
	})
	for _, example := range []client.Object{&olmv1alpha1.ClusterExtensionRevision{}, &hcov1alpha1.ConfigurationPlan{}} {
		informer, err := term.Manager.GetCache().GetInformer(ctx, example)
		if err != nil {
			return fmt.Errorf("watching %T for what nothing refers to any more: %w", example, err)
		}
		if _, err := informer.AddEventHandler(loop.Handler()); err != nil {
			return fmt.Errorf("watching %T for what nothing refers to any more: %w", example, err)
		}
	}
	if err := term.Manager.Add(manager.RunnableFunc(loop.Run)); err != nil {
		return fmt.Errorf("adding the loop that collects: %w", err)
	}
	return nil
}
