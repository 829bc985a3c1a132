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

// Packs stores manifests. *pack.Store implements it.
type Packs interface {
	Put(ctx context.Context, objects []manifest.Object) (string, error)
	Read(ctx context.Context, root string) (map[manifest.Digest][]byte, error)
	Objects(ctx context.Context, root string) ([]manifest.Object, error)
}

// Claims stores the holders of profiles. *claim.Claims implements it.
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

// Rights checks the rights of a user in the cluster.
type Rights interface {
	// Lacks describes the rights that a user lacks; empty if the user has all of them.
	Lacks(ctx context.Context, who v1alpha1.PlanApproval, rights []authz.Right) ([]string, error)
}

// Facts returns the known facts of the cluster. *FactWatch implements it.
type Facts interface {
	Facts() (profile.Facts, error)
}

// Freezes reports whether the cluster is frozen. Plans write nothing to a frozen cluster.
type Freezes interface {
	// Frozen returns the reason of the freeze, or nil if there is none. An error means that the
	// answer is unknown.
	Frozen() (*rollout.Freeze, error)
}

// Options of the controller. All are required, except Schema and Redactor.
type Options struct {
	// Client accesses Penstock's own API, and reads from a cache.
	Client client.Client
	// Reader reads Penstock's own API without the cache.
	Reader client.Reader
	// Engine writes as the identity of plans. The owner of its work is a profile.
	Engine   *rollout.Engine
	Watched  Facts
	Profiles []profile.Profile
	Packs    Packs
	Claims   Claims
	Runs     Runs
	Rights   Rights
	// Freezes suspends runs.
	Freezes Freezes
	// Events records events for users. It knows the kinds of Penstock's own API.
	Events record.EventRecorder
	Clock  clock.PassiveClock
	// Skew returns how far Clock is ahead of the host's clock.
	Skew func() time.Duration
	// Version is the version of this program.
	Version string
	// Schema has the types of fields for diffs.
	Schema   diffschema.Schema
	Redactor *redact.Redactor
	// Identities holds the identities of profiles that users define.
	Identities Identities
	// Changed receives the name of a profile after an event that may concern its plans. An empty
	// name means all profiles.
	Changed <-chan event.TypedGenericEvent[string]
	// Poke enqueues all plans.
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

type reconciler struct {
	Options
	expressions wait.Expressions

	mu          sync.Mutex
	memories    map[string]*memory
	definitions map[string]*cel.Profile
}

// memory holds facts of a plan while this process leads. Each of them can be computed again.
type memory struct {
	uid string
	// profile is the profile that the plan holds, needed after the plan is deleted.
	profile v1alpha1.ProfileName
	// holds is true if the plan holds its profile. Only then is the engine's work of this profile
	// its own.
	holds bool
	// tidied is true after the open runs of deleted plans with the same name were ended.
	tidied    bool
	inventory rollout.Inventory
	// work identifies the run or phase of the inventory. New work starts with an empty inventory.
	work string
	// allowed is the run for which the approvers were found to have the rights.
	allowed int64
	// pausedSince is the time since when a wait is paused.
	pausedSince time.Time
	// complaint is the last error in status, written at complained.
	complaint  string
	complained time.Time
	// trials holds the dry-run answers about targets from the last computation.
	trials map[manifest.ID]trial
}

func newReconciler(options Options) *reconciler {
	return &reconciler{Options: options, memories: map[string]*memory{}}
}

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

// plansOf returns the plans that a change may concern.
func (r *reconciler) plansOf(ctx context.Context, name string) []reconcile.Request {
	var plans v1alpha1.ConfigurationPlanList
	if err := r.Client.List(ctx, &plans); err != nil {
		return nil // the term has ended, and the cache with it
	}
	var requests []reconcile.Request
	for _, plan := range plans.Items {
		if name == "" || string(plan.Spec.Profile) == strings.TrimPrefix(name, targetsPrefix) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&plan)})
		}
	}
	return requests
}

func (r *reconciler) event(plan *v1alpha1.ConfigurationPlan, warning bool, reason, message string) {
	kind := corev1.EventTypeNormal
	if warning {
		kind = corev1.EventTypeWarning
	}
	r.Events.Event(plan, kind, reason, governance.Clip(message))
}
