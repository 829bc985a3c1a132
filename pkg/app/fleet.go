package app

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/controller/extension"
	"github.com/penstock-project/penstock/pkg/controller/fleet"
	"github.com/penstock-project/penstock/pkg/controller/metrics"
	"github.com/penstock-project/penstock/pkg/extensionrollout"
	"github.com/penstock-project/penstock/pkg/extensionset"
	"github.com/penstock-project/penstock/pkg/generated/clientset/versioned"
	"github.com/penstock-project/penstock/pkg/objectwatch"
	"github.com/penstock-project/penstock/pkg/server/accessreview"
	"github.com/penstock-project/penstock/pkg/server/leadership"
)

func (s *Settings) addFleet(ctx context.Context, term leadership.Term, of extension.Options, extensions *extension.Controller) error {
	config := component(term.Host, "fleet")
	options := fleet.Options{
		Namespace: term.Namespace, Store: of.Store, Extensions: extensions, Catalogs: of.Inventory, Windows: s.windows, Key: of.Key, Rights: of.Rights,
		Look: term.Visitor.Look, Clock: clock.RealClock{},
	}
	var err error
	if options.Host, err = dynamic.NewForConfig(config); err == nil {
		options.Definitions, err = metadata.NewForConfig(config)
	}
	core, coreErr := kubernetes.NewForConfig(config)
	options.Core = core
	own, ownErr := versioned.NewForConfig(component(term.Manager.GetConfig(), "fleet"))
	for _, err := range []error{err, coreErr, ownErr} {
		if err != nil {
			return fmt.Errorf("connecting to the host for ClusterExtensionSets: %w", err)
		}
	}
	options.Rollouts = own.OlmV1alpha1().ClusterExtensionRollouts()
	frozen, err := freezeOf(ctx, term, "freeze")
	if err != nil {
		return err
	}
	options.Freezes = frozen
	return term.Manager.Add(manager.RunnableFunc(func(ctx context.Context) error {
		if !accessreview.MayWatch(ctx, core, extensionset.Resource, "", "", "ClusterExtensionSets") ||
			!accessreview.MayWatch(ctx, core, objectwatch.Definitions, "", extensionset.DefinitionName, "ClusterExtensionSets") {
			<-ctx.Done()
			return nil
		}
		controller := fleet.New(options)
		if err := metrics.AddFleets(term.Metrics, func() []metrics.Fleet { return fleetsOf(controller.Newest()) }); err != nil {
			return err
		}
		return controller.Run(ctx)
	}))
}

func fleetsOf(rollouts []*olmv1alpha1.ClusterExtensionRollout) []metrics.Fleet {
	var all []metrics.Fleet
	for _, one := range rollouts {
		of := metrics.Fleet{Set: one.Spec.Set.Name, States: map[string]int{}}
		at := extensionrollout.Progress(&one.Status).Clusters
		for _, cluster := range one.Spec.Clusters {
			of.States[cmp.Or(string(at[cluster.Name].State), "Pending")]++
		}
		for _, wait := range one.Status.Waits {
			if !slices.Contains(of.Waits, wait.Reason) {
				of.Waits = append(of.Waits, wait.Reason)
			}
		}
		all = append(all, of)
	}
	return all
}
