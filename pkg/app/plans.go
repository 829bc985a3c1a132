package app

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"
	ctrlevent "sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	hcov1alpha1 "github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/controller/metrics"
	"github.com/penstock-project/penstock/pkg/controller/plan"
	"github.com/penstock-project/penstock/pkg/controller/profiledefinition"
	diffschema "github.com/penstock-project/penstock/pkg/diff/schema"
	"github.com/penstock-project/penstock/pkg/governance/profile"
	"github.com/penstock-project/penstock/pkg/governance/profile/highdensityswap"
	"github.com/penstock-project/penstock/pkg/governance/profile/loadawarerebalancing"
	"github.com/penstock-project/penstock/pkg/governance/profile/nodehealthremediation"
	"github.com/penstock-project/penstock/pkg/planwork"
	"github.com/penstock-project/penstock/pkg/rollout"
	"github.com/penstock-project/penstock/pkg/rollout/observe"
	"github.com/penstock-project/penstock/pkg/rollout/targetclient"
	"github.com/penstock-project/penstock/pkg/server/leadership"
)

// Profiles returns all built-in profiles.
func Profiles() []profile.Profile {
	return []profile.Profile{loadawarerebalancing.Profile{}, highdensityswap.Profile{}, nodehealthremediation.Profile{}}
}

// startPlans adds the loop of plans to a term. The executor makes all requests to the cluster,
// except reviews of approvers and events.
func (s *Settings) startPlans(ctx context.Context, term leadership.Term) error {
	targetClient, err := targetclient.New(targetclient.Options{Config: component(term.Executor, "plans"), Redactor: term.Redactor})
	if err != nil {
		return fmt.Errorf("connecting to the cluster for plans: %w", err)
	}
	changed := make(chan ctrlevent.TypedGenericEvent[string], pendingChanges)
	notify := notifier(ctx, changed)
	watches, err := observe.New(observe.Options{
		Config: component(term.Executor, "plan-targets"), Mapping: targetClient.Discover, Names: planwork.Names(), Notify: notify,
	})
	if err != nil {
		return fmt.Errorf("setting up watches of plans' targets: %w", err)
	}
	facts, err := dynamic.NewForConfig(component(term.Executor, "plan-facts"))
	if err != nil {
		return fmt.Errorf("connecting to the cluster for the facts of plans: %w", err)
	}
	factWatch := plan.NewFactWatch(facts, Profiles(), func() { notify("") })
	for _, runnable := range []manager.RunnableFunc{watches.Run, factWatch.Run} {
		if err := term.Manager.Add(runnable); err != nil {
			return fmt.Errorf("adding the watches of plans: %w", err)
		}
	}
	reviews, err := kubernetes.NewForConfig(component(term.Host, "approvers"))
	if err != nil {
		return fmt.Errorf("connecting to the host for reviews of approvers: %w", err)
	}
	frozen, err := freezeOf(ctx, term, "plan-freeze")
	if err != nil {
		return err
	}
	go frozen.Follow(ctx, func() { notify("") })
	recorder, err := recorder(ctx, term, targetClient.Counter())
	if err != nil {
		return err
	}
	types, err := diffschema.NewBuiltin()
	if err != nil {
		return fmt.Errorf("reading the types of Kubernetes: %w", err)
	}
	if err := addPlanMetrics(ctx, term); err != nil {
		return err
	}
	own := newIdentities(ctx, term, notify)
	err = profiledefinition.Add(term.Manager, profiledefinition.Options{Client: term.Manager.GetClient(), Identities: term.Profiles, Gone: own.drop})
	if err != nil {
		return err
	}
	return plan.Add(term.Manager, plan.Options{
		Client: term.Manager.GetClient(), Reader: term.Manager.GetAPIReader(),
		Engine: rollout.New(rollout.Options{
			Writer: targetClient, Reader: targetClient, Observer: watches, Trier: targetClient, Names: planwork.Names(), Clock: clock.RealClock{},
			Jitter:   func(d time.Duration) time.Duration { return wait.Jitter(d, 0.2) },
			Redactor: term.Redactor,
		}),
		Watched: factWatch, Profiles: Profiles(),
		Packs: term.Packs, Claims: term.Claims, Runs: term.Runs,
		Rights:  plan.Reviews{Client: reviews.AuthorizationV1().SubjectAccessReviews()},
		Freezes: frozen, Events: recorder, Clock: clock.RealClock{}, Skew: term.Skew, Version: s.Version,
		Schema: types, Redactor: term.Redactor,
		Identities: own,
		Changed:    changed, Poke: func() { notify("") },
	})
}

func addPlanMetrics(ctx context.Context, term leadership.Term) error {
	informer, err := term.Manager.GetCache().GetInformer(ctx, &hcov1alpha1.ConfigurationPlan{})
	if err != nil {
		return fmt.Errorf("watching plans for metrics: %w", err)
	}
	return metrics.AddPlans(metrics.PlanOptions{
		Registry: term.Metrics, Informer: informer, Reader: term.Manager.GetClient(), Clock: clock.RealClock{},
	})
}
