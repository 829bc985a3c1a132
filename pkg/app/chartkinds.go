package app

import (
	"context"
	"fmt"
	"io/fs"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/catalog/image"
	kinds "github.com/penstock-project/penstock/pkg/chartkind"
	"github.com/penstock-project/penstock/pkg/controller/chartkind"
	"github.com/penstock-project/penstock/pkg/controller/maker"
	"github.com/penstock-project/penstock/pkg/controller/metrics"
	"github.com/penstock-project/penstock/pkg/extension/author"
	"github.com/penstock-project/penstock/pkg/generated/clientset/versioned"
	"github.com/penstock-project/penstock/pkg/objectwatch"
	"github.com/penstock-project/penstock/pkg/server/accessreview"
	"github.com/penstock-project/penstock/pkg/server/leadership"
)

func (s *Settings) startChartKinds(ctx context.Context, term leadership.Term) error {
	options, err := s.chartKindOptions(ctx, term)
	if err != nil {
		return err
	}
	core, err := kubernetes.NewForConfig(component(term.Host, "chartkinds"))
	if err != nil {
		return fmt.Errorf("connecting to the host for ChartKinds: %w", err)
	}
	options.Rights = hostRights{core}
	return term.Manager.Add(manager.RunnableFunc(func(ctx context.Context) error {
		if !accessreview.MayWatch(ctx, core, kinds.Resource, "", "", "ChartKinds") ||
			!accessreview.MayWatch(ctx, core, objectwatch.Definitions, "", kinds.DefinitionName, "ChartKinds") {
			<-ctx.Done()
			return nil
		}
		controller := chartkind.New(options)
		err := metrics.AddCharts(term.Metrics, func() (all []metrics.Charts) {
			for _, one := range controller.Counts() {
				all = append(all, metrics.Charts(one))
			}
			return all
		})
		if err != nil {
			return err
		}
		return controller.Run(ctx)
	}))
}

func (s *Settings) chartKindOptions(ctx context.Context, term leadership.Term) (chartkind.Options, error) {
	host := component(term.Host, "chartkinds")
	own, err := dynamic.NewForConfig(host)
	if err != nil {
		return chartkind.Options{}, fmt.Errorf("connecting to the host for ChartKinds: %w", err)
	}
	names, err := metadata.NewForConfig(host)
	if err != nil {
		return chartkind.Options{}, fmt.Errorf("connecting to the host for ChartKinds: %w", err)
	}
	workloads, err := dynamic.NewForConfig(component(term.Target, "chartkinds"))
	if err != nil {
		return chartkind.Options{}, fmt.Errorf("connecting to the target cluster for workloads of ChartKinds: %w", err)
	}
	var releases dynamic.Interface
	if term.TargetName == "" {
		releases = workloads // otherwise the engine writes to another cluster
	}
	informer, err := term.Manager.GetCache().GetInformer(ctx, &olmv1alpha1.ClusterExtensionRevision{})
	if err != nil {
		return chartkind.Options{}, fmt.Errorf("watching revisions for ChartKinds: %w", err)
	}
	definitions, err := newDefinitionReader(term)
	if err != nil {
		return chartkind.Options{}, err
	}
	definitions.usual = own // always of the host, also for other targets
	loopback := component(term.Manager.GetConfig(), "chartkinds")
	revisions, err := versioned.NewForConfig(loopback)
	if err != nil {
		return chartkind.Options{}, fmt.Errorf("connecting to our own API for ChartKinds: %w", err)
	}
	return chartkind.Options{
		Kinds: own, Metadata: names, Workloads: workloads, Releases: releases, Definitions: definitions, Capabilities: definitions,
		Account: func(account kinds.ServiceAccount) (out chartkind.Account, err error) {
			config := component(term.Account(account.Namespace, account.Name), "chartkinds")
			if out.Objects, err = dynamic.NewForConfig(config); err == nil {
				out.Metadata, err = metadata.NewForConfig(config)
			}
			if err != nil {
				return out, fmt.Errorf("connecting to the host in the name of ServiceAccount %s: %w", account, err)
			}
			return out, nil
		},
		Packs: term.Packs,
		Store: maker.Store{Informer: informer, Reader: term.Manager.GetClient(), Live: term.Manager.GetAPIReader(), Heads: term.Heads, Own: revisions.OlmV1alpha1().ClusterExtensionRevisions(), As: impersonation{loopback}.as},
		Key:   author.NewKey(term.Digester.SecretKey), Charts: charts{catalogImages{s.Catalogs}}, Pool: s.pool, Clock: clock.RealClock{},
	}, nil
}

type charts struct{ images catalogImages }

// Chart implements chartkind.Charts.
func (c charts) Chart(ctx context.Context, reference string) (*chartkind.Pulled, error) {
	pulled, err := c.images.Pull(ctx, "ChartKind of "+reference, "", reference)
	if err != nil {
		return nil, err
	}
	defer pulled.Close()
	if pulled.Kind != image.Chart {
		return nil, &image.Refused{Image: pulled.Reference, Reason: fmt.Sprintf("it is a %s, and must be a Helm chart", pulled.Kind)}
	}
	archive, err := fs.ReadFile(pulled.FS, image.ChartFile)
	if err != nil {
		return nil, fmt.Errorf("reading chart %s: %w", pulled.Reference, err)
	}
	return &chartkind.Pulled{Archive: archive, Reference: pulled.Reference, Signed: pulled.Signed}, nil
}
