package plan

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/authz"
	diffschema "github.com/penstock-project/penstock/pkg/diff/schema"
	"github.com/penstock-project/penstock/pkg/governance"
	"github.com/penstock-project/penstock/pkg/governance/profile"
	"github.com/penstock-project/penstock/pkg/governance/profile/cel"
	"github.com/penstock-project/penstock/pkg/governance/wait"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/redact"
	"github.com/penstock-project/penstock/pkg/rollout"
	"github.com/penstock-project/penstock/pkg/store/run"
)

// Packs keeps manifests, as a *pack.Store.
type Packs interface {
	Put(ctx context.Context, objects []manifest.Object) (string, error)
	Read(ctx context.Context, root string) (map[manifest.Digest][]byte, error)
	Objects(ctx context.Context, root string) ([]manifest.Object, error)
}

// Claims has the holders of profiles, as a *claim.Claims.
type Claims interface {
	Acquire(ctx context.Context, key, holder string) error
	TakeOver(ctx context.Context, key, from, to string) error
	Release(ctx context.Context, key, holder string) error
	Holder(ctx context.Context, key string) (string, error)
}

// Runs reads and writes the record of runs. *run.Runs implements it.
type Runs interface {
	List(ctx context.Context, name string) ([]run.Row, error)
	Names(ctx context.Context) ([]string, error)
	Put(ctx context.Context, name string, row run.Row, packs ...string) error
}

// Rights asks the cluster for the rights of a user.
type Rights interface {
	// Lacks names in words which of some rights a person lacks; none when they have
	// all of them.
	Lacks(ctx context.Context, who v1alpha1.PlanApproval, rights []authz.Right) ([]string, error)
}

// Facts has the known facts of the cluster, as a *FactWatch.
type Facts interface {
	Facts() (profile.Facts, error)
}

// Freezes reports whether the cluster is frozen. Nothing is written to a frozen cluster.
type Freezes interface {
	// Frozen returns why, nil for not frozen. An error means that it is not known yet.
	Frozen() (*rollout.Freeze, error)
}

// Options of the controller. All are required, but for Schema and Redactor.
type Options struct {
	// Client for our own API; it reads from a cache.
	Client client.Client
	// Reader reads our own API past the cache.
	Reader client.Reader
	// Engine writes under the identity of plans. Its owner is a profile.
	Engine   *rollout.Engine
	Watched  Facts
	Profiles []profile.Profile
	Packs    Packs
	Claims   Claims
	Runs     Runs
	Rights   Rights
	// Freezes stop a run.
	Freezes Freezes
	// Events records events for users. It knows the kinds of our own API.
	Events record.EventRecorder
	Clock  clock.PassiveClock
	// Skew is by how much Clock is ahead of the clock of the host.
	Skew func() time.Duration
	// Version of this program.
	Version string
	// Schema has the types of fields for diffs.
	Schema   diffschema.Schema
	Redactor *redact.Redactor
	// Identities are the identities of profiles that users define.
	Identities Identities
	// Changed receives a profile when something happened that may concern its
	// plans; empty is all of them.
	Changed <-chan event.TypedGenericEvent[string]
	// Poke has all plans looked at again.
	Poke func()
}

// Add registers the controller with a manager.
func Add(mgr manager.Manager, options Options) error {
	r := newReconciler(options)
	changed := source.TypedChannel[string, reconcile.Request](options.Changed, handler.TypedEnqueueRequestsFromMapFunc(r.plansOf))
	err := builder.ControllerManagedBy(mgr).
		Named("plan").
		For(&v1alpha1.ConfigurationPlan{}).
		Watches(&v1alpha1.ConfigurationPlan{}, handler.EnqueueRequestsFromMapFunc(r.neighboursOf)).
		Watches(&v1alpha1.ConfigurationProfileDefinition{}, handler.EnqueueRequestsFromMapFunc(r.plansOfDefinition)).
		WatchesRawSource(changed).
		WatchesRawSource(source.Func(r.sweep)).
		WithOptions(controller.Options{MaxConcurrentReconciles: 4, SkipNameValidation: ptr.To(true)}).
		Complete(r)
	if err != nil {
		return fmt.Errorf("setting up the plan controller: %w", err)
	}
	return nil
}

// reconciler reconciles one plan for each key.
type reconciler struct {
	Options
	// expressions of profiles.
	expressions wait.Expressions

	mu       sync.Mutex
	memories map[string]*memory
	// definitions of users that were compiled, by name and digest.
	definitions map[string]*cel.Profile
}

// memory has the facts of a plan that this process keeps while it leads. All of it can be found out
// again.
type memory struct {
	uid string
	// profile that the plan holds, for when it is gone.
	profile v1alpha1.ProfileName
	// holds is true if the plan holds its profile: only then the engine's owner is its own.
	holds bool
	// tidied is true if no run of a plan of the same name that is gone is left open.
	tidied bool
	// inventory of the engine.
	inventory rollout.Inventory
	// for what it is: another run or phase starts anew.
	work string
	// allowed is the run whose approver was found to have the rights.
	allowed int64
	// pausedSince is the time at which a wait was found to be paused.
	pausedSince time.Time
	// complaint is the error that status showed last, since complained.
	complaint  string
	complained time.Time
	// trials are the cluster's answers about targets when a plan was computed last.
	trials map[manifest.ID]trial
}

func newReconciler(options Options) *reconciler {
	return &reconciler{Options: options, memories: map[string]*memory{}}
}

// memoryOf returns what is remembered of a plan.
func (r *reconciler) memoryOf(plan *v1alpha1.ConfigurationPlan) *memory {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := r.memories[plan.Name]
	if m == nil || m.uid != string(plan.UID) {
		m = &memory{uid: string(plan.UID)}
		r.memories[plan.Name] = m
	}
	m.profile = plan.Spec.Profile
	return m
}

// plansOf are the plans that a change may concern.
func (r *reconciler) plansOf(ctx context.Context, name string) []reconcile.Request {
	var plans v1alpha1.ConfigurationPlanList
	if err := r.Client.List(ctx, &plans); err != nil {
		return nil // the cache is gone, and so is this process' term
	}
	var requests []reconcile.Request
	for _, plan := range plans.Items {
		if name == "" || string(plan.Spec.Profile) == strings.TrimPrefix(name, targetsPrefix) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&plan)})
		}
	}
	return requests
}

// event records an event about a plan.
func (r *reconciler) event(plan *v1alpha1.ConfigurationPlan, warning bool, reason, message string) {
	kind := corev1.EventTypeNormal
	if warning {
		kind = corev1.EventTypeWarning
	}
	r.Events.Event(plan, kind, reason, governance.Clip(message))
}
