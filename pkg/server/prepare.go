package server

import (
	"context"
	"fmt"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/component-base/metrics"
	"k8s.io/klog/v2"

	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/registry/olm/clusterextensionrevision"
	"github.com/penstock-project/penstock/pkg/server/clusterreads"
	"github.com/penstock-project/penstock/pkg/server/crdconflict"
	"github.com/penstock-project/penstock/pkg/server/database"
	"github.com/penstock-project/penstock/pkg/server/host"
	"github.com/penstock-project/penstock/pkg/server/serviceaccounts"
	"github.com/penstock-project/penstock/pkg/server/snapshots"
	"github.com/penstock-project/penstock/pkg/server/storeguard"
	"github.com/penstock-project/penstock/pkg/server/storehealth"
	"github.com/penstock-project/penstock/pkg/server/storehealth/volume"
	"github.com/penstock-project/penstock/pkg/server/targetcluster"
	"github.com/penstock-project/penstock/pkg/store/chain"
	"github.com/penstock-project/penstock/pkg/store/identity"
	"github.com/penstock-project/penstock/pkg/target"
)

func newStoreHealth(o *Options, db *database.Database) *storehealth.Health {
	options := storehealth.Options{Client: db.Client, Full: clusterextensionrevision.StoreFull}
	if db.Embedded != nil {
		options.Down, options.Volume, options.Quota = db.Down, volume.Of(o.DataDir), o.DataQuota.Value()
	}
	return storehealth.New(options)
}

func newSnapshots(o *Options, db *database.Database, registry metrics.KubeRegistry) (*snapshots.Snapshots, error) {
	if o.SnapshotDir == "" {
		return nil, nil
	}
	return snapshots.New(snapshots.Options{Dir: o.SnapshotDir, Interval: o.SnapshotInterval, Keep: o.SnapshotKeep, Save: db.Embedded.Save, Metrics: registry})
}

// switchOff disables the features that this host does not support, and logs them.
func switchOff(ctx context.Context, o *Options, client kubernetes.Interface) error {
	disabled := o.Recommended.Admission.DisablePlugins
	if !o.Recommended.Features.EnablePriorityAndFairness {
		disabled = append(disabled, host.PriorityAndFairness)
	}
	without, err := host.Without(ctx, client, disabled)
	if err != nil {
		return err
	}
	for _, off := range without {
		klog.FromContext(ctx).Info("Going without a feature", "feature", off.Name, "reason", off.Reason)
		if off.Name == host.PriorityAndFairness {
			o.Recommended.Features.EnablePriorityAndFairness = false
			continue
		}
		o.Recommended.Admission.DisablePlugins = append(o.Recommended.Admission.DisablePlugins, off.Name)
	}
	return nil
}

// establish compares the store of this process with the host's record.
func establish(ctx context.Context, o *Options, h *host.Host, db *database.Database) (storeguard.Decision, error) {
	client, err := kubernetes.NewForConfig(h.ConfigFor("identity"))
	if err != nil {
		return storeguard.Decision{}, fmt.Errorf("making a client for the store's witness: %w", err)
	}
	return storeguard.New(storeguard.Options{
		Store:      identity.NewStore(db.Client, database.Prefix),
		ConfigMaps: client.CoreV1().ConfigMaps(o.Namespace),
		Namespace:  o.Namespace,
		Forget:     chain.NewInventories(db.Client, database.Prefix).ForgetAll,
		Down:       db.Down,
		Accept:     o.AcceptIdentity,
	}).Establish(ctx)
}

func (s *Server) findTarget(ctx context.Context) error {
	if s.decision.Degraded != "" {
		return nil // a degraded server rolls nothing out
	}
	o := s.options
	var err error
	if s.targetClients, err = clusterreads.NewTargetClients(s.host, o.Namespace, s.visitor()); err != nil {
		return err
	}
	if o.TargetKubeconfig != "" {
		s.target, err = targetcluster.New(targetcluster.Options{
			File: o.TargetKubeconfig, Accept: o.ConfirmTargetChange, Visitor: s.visitor(),
			Inventories: s.records.Inventories, UserAgent: s.host.UserAgent,
		})
		return err
	}
	if err := targetcluster.CheckHost(ctx, s.records.Inventories, o.ConfirmTargetChange); err != nil {
		s.decision = storeguard.Decision{Degraded: storeguard.DegradedMessage(err.Error(), "start it again with one of these")}
	}
	return nil
}

func (s *Server) visitor() target.Visitor {
	return target.Visitor{Store: s.decision.Identity.ID, UserAgent: s.host.UserAgent("target")}
}

// newCRDConflict returns a watch for definitions of the host with the name of our revisions.
func newCRDConflict(h *host.Host, registry metrics.KubeRegistry) (*crdconflict.Watch, error) {
	config := h.ConfigFor("names")
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client for names of resources: %w", err)
	}
	definitions, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client for names of resources: %w", err)
	}
	return crdconflict.New(client, definitions, v1alpha1.SchemeGroupVersion.WithResource("clusterextensionrevisions"), registry)
}

func newAccounts(o *Options, h *host.Host) (*serviceaccounts.Accounts, error) {
	client, err := kubernetes.NewForConfig(h.ConfigFor("identities"))
	if err != nil {
		return nil, fmt.Errorf("making a client for the identities of jobs: %w", err)
	}
	return serviceaccounts.New(serviceaccounts.Options{
		Client: client, Config: h.Config(), UserAgent: h.UserAgent, Namespace: o.Namespace, Create: o.Register,
	}), nil
}
