package app

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"

	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/controller/plan"
	"github.com/penstock-project/penstock/pkg/governance/profile"
	"github.com/penstock-project/penstock/pkg/governance/profile/cel"
	"github.com/penstock-project/penstock/pkg/planwork"
	"github.com/penstock-project/penstock/pkg/rollout"
	"github.com/penstock-project/penstock/pkg/rollout/observe"
	"github.com/penstock-project/penstock/pkg/rollout/targetclient"
	"github.com/penstock-project/penstock/pkg/server/leadership"
)

// identities executes plans of profiles that users define. Each such profile has its own identity,
// engine and watches. They live until the term ends or the definition is deleted.
type identities struct {
	// begin returns a context that ends with the term.
	begin  func() (context.Context, context.CancelFunc)
	term   leadership.Term
	notify func(string)

	mu    sync.Mutex
	known map[v1alpha1.ProfileName]*identity
}

type identity struct {
	// begin returns a context that ends with the definition; stop ends all such contexts.
	begin  func() (context.Context, context.CancelFunc)
	stop   context.CancelFunc
	engine *rollout.Engine
	client dynamic.Interface
	facts  map[string]*following
}

// following is the running FactWatch of one definition. stop ends the watch.
type following struct {
	*plan.FactWatch
	stop context.CancelFunc
}

var _ plan.Identities = &identities{}

func newIdentities(ctx context.Context, term leadership.Term, notify func(string)) *identities {
	begin := func() (context.Context, context.CancelFunc) { return context.WithCancel(ctx) }
	return &identities{begin: begin, term: term, notify: notify, known: map[v1alpha1.ProfileName]*identity{}}
}

// Engine implements plan.Identities.
func (i *identities) Engine(name v1alpha1.ProfileName) (*rollout.Engine, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	found, err := i.of(name)
	if err != nil {
		return nil, err
	}
	return found.engine, nil
}

// of returns the identity of a profile. The caller holds mu.
func (i *identities) of(name v1alpha1.ProfileName) (*identity, error) {
	if found := i.known[name]; found != nil {
		return found, nil
	}
	config := component(i.term.Profiles.ConfigFor(string(name)), "plans")
	targetClient, err := targetclient.New(targetclient.Options{Config: config, Redactor: i.term.Redactor})
	if err != nil {
		return nil, fmt.Errorf("connecting to the cluster for plans of profile %s: %w", name, err)
	}
	watches, err := observe.New(observe.Options{Config: config, Mapping: targetClient.Discover, Names: planwork.Names(), Notify: i.notify})
	if err != nil {
		return nil, fmt.Errorf("setting up watches of the targets of profile %s: %w", name, err)
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connecting to the cluster for the facts of profile %s: %w", name, err)
	}
	made := &identity{client: client, facts: map[string]*following{}, engine: rollout.New(rollout.Options{
		Writer: targetClient, Reader: targetClient, Observer: watches, Trier: targetClient, Names: planwork.Names(), Clock: clock.RealClock{},
		Jitter:   func(d time.Duration) time.Duration { return wait.Jitter(d, 0.2) },
		Redactor: i.term.Redactor,
	})}
	ctx, stop := i.begin()
	made.stop, made.begin = stop, func() (context.Context, context.CancelFunc) { return context.WithCancel(ctx) }
	go func() { _ = watches.Run(ctx) }() // it returns when its context ends
	i.known[name] = made
	return made, nil
}

// Facts implements plan.Identities.
func (i *identities) Facts(name v1alpha1.ProfileName, definitions ...*cel.Profile) (map[string]plan.Facts, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	found, err := i.of(name)
	if err != nil {
		return nil, err
	}
	facts := map[string]plan.Facts{}
	for _, definition := range definitions {
		watch := found.facts[definition.Digest()]
		if watch == nil {
			ctx, stop := found.begin()
			watch = &following{stop: stop, FactWatch: plan.NewFactWatch(found.client, []profile.Profile{definition}, func() { i.notify(string(name)) })}
			go func() { _ = watch.Run(ctx) }() // it returns when its context ends
			found.facts[definition.Digest()] = watch
		}
		facts[definition.Digest()] = watch
	}
	for digest, watch := range found.facts {
		if facts[digest] == nil {
			watch.stop()
			delete(found.facts, digest)
		}
	}
	return facts, nil
}

func (i *identities) drop(name string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if found := i.known[v1alpha1.ProfileName(name)]; found != nil {
		found.stop()
		delete(i.known, v1alpha1.ProfileName(name))
	}
}
