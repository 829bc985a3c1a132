package rollout_test

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/rollout"
	"github.com/penstock-project/penstock/pkg/rollout/observe"
	"github.com/penstock-project/penstock/pkg/rollout/probe"
	"github.com/penstock-project/penstock/pkg/rollout/stage"
	"github.com/penstock-project/penstock/pkg/rollout/targetclient"
)

type byDigest map[manifest.Digest][]byte

func (s byDigest) Body(_ context.Context, ref manifest.Ref) ([]byte, error) {
	return s[ref.Digest], nil
}

// install rolls out objects as one phase and returns when they are ready. It keeps the inventory
// only in memory. If a caller stores it, the next process continues where this one ended.
func install(ctx context.Context, config *rest.Config, owner string, manifests ...string) error {
	bodies, phase := byDigest{}, stage.Phase{Name: "all"}
	for _, text := range manifests {
		object, err := manifest.Digester{}.FromJSON([]byte(text))
		if err != nil {
			return err
		}
		bodies[object.Digest] = object.JSON
		phase.Steps = append(phase.Steps, stage.Step{Ref: object.Ref})
	}
	stages, err := stage.Compile([]stage.Phase{phase}, stage.Options{Probes: probe.Builtin()})
	if err != nil {
		return err
	}
	targetClient, err := targetclient.New(targetclient.Options{Config: config})
	if err != nil {
		return err
	}
	names := observe.Names{ChainLabel: "example.com/owner", AppliedAnnotation: "example.com/applied", ManagerPrefix: "example/"}
	changed := make(chan struct{}, 1)
	watches, err := observe.New(observe.Options{Config: config, Mapping: targetClient.Discover, Names: names, Notify: func(string) {
		select {
		case changed <- struct{}{}:
		default: // another pass is due
		}
	}})
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go watches.Run(ctx)

	engine := rollout.New(rollout.Options{Writer: targetClient, Reader: targetClient, Observer: watches, Names: names, Clock: clock.RealClock{}})
	work := rollout.Work{Owner: owner, Bodies: bodies, Layers: []rollout.Layer{{Key: "1", Revision: 1, Stages: stages}}}
	work.Save = func(_ context.Context, inventory rollout.Inventory) error { work.Inventory = inventory; return nil }
	for {
		report, err := engine.Reconcile(ctx, work)
		if err != nil || report.Layers[0].Complete {
			return err
		}
		var retry <-chan time.Time
		if report.RequeueAfter > 0 {
			retry = time.After(report.RequeueAfter)
		}
		select {
		case <-changed:
		case <-retry:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Example uses the engine without Penstock's API and store: it rolls out a namespace and a
// ConfigMap.
func Example() {
	config := &rest.Config{Host: "https://cluster.example.com"}
	err := install(context.Background(), config, "greeter",
		`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"greeter"}}`,
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"greeting","namespace":"greeter"},"data":{"text":"hello"}}`)
	if err != nil {
		fmt.Println(err)
	}
}
