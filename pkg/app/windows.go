package app

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	windows "github.com/penstock-project/penstock/pkg/controller/maintenancewindow"
	"github.com/penstock-project/penstock/pkg/maintenancewindow"
	"github.com/penstock-project/penstock/pkg/objectwatch"
	"github.com/penstock-project/penstock/pkg/server/accessreview"
	"github.com/penstock-project/penstock/pkg/server/leadership"
)

// startWindows adds what follows MaintenanceWindows to a term. The loops that begin upgrades ask it.
func (s *Settings) startWindows(_ context.Context, term leadership.Term) error {
	config := component(term.Host, "maintenance-windows")
	options := windows.Options{Clock: clock.RealClock{}, Skew: term.Skew}
	core, err := kubernetes.NewForConfig(config)
	if err == nil {
		options.Windows, err = dynamic.NewForConfig(config)
	}
	if err == nil {
		options.Definitions, err = metadata.NewForConfig(config)
	}
	if err != nil {
		return fmt.Errorf("connecting to the host for MaintenanceWindows: %w", err)
	}
	controller := windows.New(options)
	s.windows = controller
	return term.Manager.Add(manager.RunnableFunc(func(ctx context.Context) error {
		const feature = "MaintenanceWindows: no upgrade begins by itself"
		// Until then nothing comes by itself: a right that is granted later counts.
		err := wait.PollUntilContextCancel(ctx, time.Minute, true, func(ctx context.Context) (bool, error) {
			return accessreview.MayWatch(ctx, core, objectwatch.Definitions, "", maintenancewindow.DefinitionName, feature) &&
				accessreview.MayWatch(ctx, core, maintenancewindow.Resource, "", "", feature), nil
		})
		if err != nil {
			return nil //nolint:nilerr // the term is over
		}
		return controller.Run(ctx)
	}))
}
