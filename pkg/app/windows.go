package app

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
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

// startWindows adds the watch of MaintenanceWindows to a term. The loops that begin upgrades use
// it.
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
	return term.Manager.Add(whenWatchable(core, maintenancewindow.DefinitionName, maintenancewindow.Resource,
		"MaintenanceWindows: no upgrade begins by itself", controller.Run))
}

// whenWatchable runs the watch of a kind once Penstock may watch the definition and the objects of
// the kind. It notices a right that is granted later. feature names, for the log, the function that
// does not work until then.
func whenWatchable(access kubernetes.Interface, definition string, resource schema.GroupVersionResource, feature string, run func(context.Context) error) manager.RunnableFunc {
	return func(ctx context.Context) error {
		err := wait.PollUntilContextCancel(ctx, time.Minute, true, func(ctx context.Context) (bool, error) {
			return accessreview.MayWatch(ctx, access, objectwatch.Definitions, "", definition, feature) &&
				accessreview.MayWatch(ctx, access, resource, "", "", feature), nil
		})
		if err != nil {
			return nil //nolint:nilerr // the term has ended
		}
		return run(ctx)
	}
}
