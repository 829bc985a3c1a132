package main

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"
	ctrlevent "sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/penstock-project/penstock/pkg/controller/plan"
	"github.com/penstock-project/penstock/pkg/diff"
	"github.com/penstock-project/penstock/pkg/governance/profile"
	"github.com/penstock-project/penstock/pkg/governance/profile/loadawarerebalancing"
	"github.com/penstock-project/penstock/pkg/rollout"
	"github.com/penstock-project/penstock/pkg/rollout/host"
	"github.com/penstock-project/penstock/pkg/rollout/observe"
	"github.com/penstock-project/penstock/pkg/server"
)

// profiles are all that plans can be made of.
func profiles() []profile.Profile {
	return []profile.Profile{loadawarerebalancing.Profile{}}
}

// startPlans adds the loop of plans to a term. All it reads of and writes to the
// cluster is done by the executor, but for reviews of approvers and events.
func startPlans(ctx context.Context, term server.Term) error {
	door, err := host.New(host.Options{Config: component(term.Executor, "plans"), Redactor: term.Redactor})
	if err != nil {
		return fmt.Errorf("connecting to the cluster for plans: %w", err)
	}
	changed := make(chan ctrlevent.TypedGenericEvent[string], pendingChanges)
	notify := notifier(ctx, changed)
	watches, err := observe.New(observe.Options{
		Config: component(term.Executor, "plan-targets"), Mapping: door.Discover, Names: plan.Names(), Notify: notify,
	})
	if err != nil {
		return fmt.Errorf("setting up watches of plans' targets: %w", err)
	}
	facts, err := dynamic.NewForConfig(component(term.Executor, "plan-facts"))
	if err != nil {
		return fmt.Errorf("connecting to the cluster for the facts of plans: %w", err)
	}
	world := plan.NewWorld(facts, profiles(), func() { notify("") })
	for _, runnable := range []manager.RunnableFunc{watches.Run, world.Run} {
		if err := term.Manager.Add(runnable); err != nil {
			return fmt.Errorf("adding the watches of plans: %w", err)
		}
	}
	reviews, err := kubernetes.NewForConfig(component(term.Host, "approvers"))
	if err != nil {
		return fmt.Errorf("connecting to the host for reviews of approvers: %w", err)
	}
	recorder, err := recorder(ctx, term, door.Counter())
	if err != nil {
		return err
	}
	types, err := diff.NewBuiltin()
	if err != nil {
		return fmt.Errorf("reading the types of Kubernetes: %w", err)
	}
	drifts, err := newDrifts(term.Metrics)
	if err != nil {
		return err
	}
	return plan.Add(term.Manager, plan.Options{
		Client: term.Manager.GetClient(), Reader: term.Manager.GetAPIReader(),
		Engine: rollout.New(rollout.Options{
			Writer: door, Reader: door, Observer: watches, Trier: door, Names: plan.Names(), Clock: clock.RealClock{},
			Jitter:   func(d time.Duration) time.Duration { return wait.Jitter(d, 0.2) },
			Redactor: term.Redactor,
		}),
		World: world, Profiles: profiles(),
		Packs: term.Packs, Claims: term.Claims, Runs: term.Runs,
		Rights: plan.Reviews{Client: reviews.AuthorizationV1().SubjectAccessReviews()},
		Events: recorder, Clock: clock.RealClock{}, Version: programVersion(),
		Schema: types, Redactor: term.Redactor, Drifts: drifts,
		Changed: changed, Poke: func() { notify("") },
	})
}

// drifts is the metric of plans that are not in effect any more.
type drifts struct{ gauge *prometheus.GaugeVec }

func newDrifts(registry prometheus.Registerer) (drifts, error) {
	d := drifts{gauge: prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "penstock_plan_drifted",
		Help: "1 while somebody has changed what a ConfigurationPlan set, 0 otherwise.",
	}, []string{"plan", "profile"})}
	if err := registry.Register(d.gauge); err != nil {
		return drifts{}, fmt.Errorf("registering metrics of plans: %w", err)
	}
	return d, nil
}

// Drifted implements plan.Drifts.
func (d drifts) Drifted(name, profile string, drifted bool) {
	value := 0.0
	if drifted {
		value = 1
	}
	d.gauge.WithLabelValues(name, profile).Set(value)
}

// Gone implements plan.Drifts.
func (d drifts) Gone(name string) { d.gauge.DeletePartialMatch(prometheus.Labels{"plan": name}) }
