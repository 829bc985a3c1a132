package app

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/penstock-project/penstock/pkg/redact"
	"github.com/penstock-project/penstock/pkg/revision"
	"github.com/penstock-project/penstock/pkg/rollout"
	"github.com/penstock-project/penstock/pkg/rollout/cause/gather"
	"github.com/penstock-project/penstock/pkg/rollout/observe"
	"github.com/penstock-project/penstock/pkg/rollout/targetclient"
	"github.com/penstock-project/penstock/pkg/server/leadership"
	"github.com/penstock-project/penstock/pkg/target"
)

type engineParts struct {
	config *rest.Config
	// requests and metrics count all clusters together. Users choose the names of clusters, so
	// these names must not be labels of metrics.
	requests *targetclient.Counter
	metrics  rollout.Metrics
	notify   func(chain string)
	redactor *redact.Redactor
}

// open creates an engine for a cluster, with its client and observer. It also returns the functions
// that must run while the engine is used.
func (s *Settings) open(ctx context.Context, p engineParts) (*rollout.Engine, []func(context.Context) error, error) {
	opened, err := targetclient.New(targetclient.Options{Config: component(p.config, "rollout"), Counter: p.requests, Redactor: p.redactor})
	if err != nil {
		return nil, nil, fmt.Errorf("connecting to the target cluster: %w", err)
	}
	targetClient := targetclient.Accounted{Client: opened}
	names := revision.Names()
	watches, err := observe.New(observe.Options{
		Config:  countedFor(component(p.config, "watch"), p.requests, targetclient.Watch),
		Mapping: targetClient.Discover,
		Names:   names,
		Notify:  p.notify,
	})
	if err != nil {
		return nil, nil, fmt.Errorf("setting up watches of the target cluster: %w", err)
	}
	parts := []func(context.Context) error{watches.Run}
	if again := selfTest(ctx, targetClient, trialBackoff()); again != nil {
		parts = append(parts, again)
	}
	return rollout.New(rollout.Options{
		Writer: targetClient, Reader: targetClient, Explainer: gather.New(targetClient), NamespaceContents: targetClient, Lister: targetClient, Observer: watches, Names: names, Clock: clock.RealClock{},
		Jitter:        func(d time.Duration) time.Duration { return wait.Jitter(d, 0.2) },
		Redactor:      p.redactor,
		Metrics:       p.metrics,
		SkipPreflight: !s.Preflight,
	}), parts, nil
}

func targetsOf(ctx context.Context, term leadership.Term, notify func(string),
	open func(context.Context, *rest.Config) (*rollout.Engine, []func(context.Context) error, error),
) (*target.Targets, error) {
	client, err := kubernetes.NewForConfig(component(term.Host, "targets"))
	if err != nil {
		return nil, fmt.Errorf("connecting to the host for kubeconfigs of targets: %w", err)
	}
	targets := target.New(ctx, target.Options{
		Client: client, Namespace: term.Namespace, Notify: notify,
		Enter: func(ctx context.Context, config *rest.Config) (string, error) {
			return term.Visitor.Enter(ctx, config, nil)
		},
		Open: func(ctx context.Context, config *rest.Config) (*rollout.Engine, func(context.Context) error, error) {
			config.UserAgent = term.Host.UserAgent
			engine, parts, err := open(ctx, config)
			return engine, together(parts), err
		},
	})
	// The term waits for the targets to stop.
	err = term.Manager.Add(manager.RunnableFunc(func(ctx context.Context) error {
		<-ctx.Done()
		targets.Wait()
		return nil
	}))
	if err != nil {
		return nil, fmt.Errorf("adding the targets of extensions: %w", err)
	}
	return targets, nil
}

// together runs all parts and waits until they have ended.
func together(parts []func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		group, ctx := errgroup.WithContext(ctx)
		for _, part := range parts {
			group.Go(func() error { return part(ctx) })
		}
		return group.Wait()
	}
}
