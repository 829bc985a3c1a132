package rollout

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/redact"
	"github.com/penstock-project/penstock/pkg/rollout/cause"
	"github.com/penstock-project/penstock/pkg/rollout/observe"
	"github.com/penstock-project/penstock/pkg/rollout/targetclient"
)

// Writer changes objects of the target cluster (see package targetclient).
type Writer interface {
	Apply(ctx context.Context, ref manifest.Ref, body []byte, options targetclient.ApplyOptions) (*metav1.PartialObjectMetadata, error)
	Delete(ctx context.Context, ref manifest.Ref, precondition targetclient.Precondition) error
	// Reassign replaces the managedFields of an object.
	Reassign(ctx context.Context, ref manifest.Ref, precondition targetclient.Precondition, fields []metav1.ManagedFieldsEntry) (*metav1.PartialObjectMetadata, error)
	// Release removes the marks of a chain from an object, and keeps all other fields.
	Release(ctx context.Context, ref manifest.Ref, precondition targetclient.Precondition, marks targetclient.Marks) error
}

// Reader reads objects of the target cluster without a cache, in the version of the reference or,
// when that is not served, in another version.
type Reader interface {
	Read(ctx context.Context, ref manifest.Ref) (*unstructured.Unstructured, error)
	ReadMetadata(ctx context.Context, ref manifest.Ref) (*metav1.PartialObjectMetadata, error)
	// Mapping fails with a NoMatch error while the kind is not served in this version.
	Mapping(ctx context.Context, kind schema.GroupVersionKind) (*meta.RESTMapping, error)
	// Served returns the resource of a kind in a served version. A NoMatch error means that
	// no version is served.
	Served(ctx context.Context, kind schema.GroupVersionKind) (*meta.RESTMapping, error)
	// HasStatus reports whether a kind has the subresource status: the API server then ignores the
	// field status in an apply. It fails with a NoMatch error while the kind is not served in this
	// version.
	HasStatus(ctx context.Context, kind schema.GroupVersionKind) (bool, error)
	// Instances lists at most limit objects of a kind.
	Instances(ctx context.Context, kind manifest.Ref, limit int64) ([]metav1.PartialObjectMetadata, error)
}

// Observer returns the known state of objects (see package observe).
type Observer interface {
	// Want must not keep the interests: the caller uses the slice again.
	Want(owner string, interests ...observe.Interest)
	Get(id manifest.ID) (observe.Observation, observe.Presence)
	Drop(owner string)
	// Trouble returns why an object's presence is Unknown, or nil while the answer is on its way.
	Trouble(id manifest.ID) error
}

// Trier tries an apply to an object by dry-run (see package targetclient).
type Trier interface {
	Try(ctx context.Context, ref manifest.Ref, body []byte, options targetclient.TryOptions) (*unstructured.Unstructured, error)
}

// Explainer returns why an object is not ready (see package cause/gather), and false when unknown.
type Explainer interface {
	Explain(ctx context.Context, subject cause.Subject) (cause.Cause, bool, error)
}

// Lister lists metadata of Secrets.
type Lister interface {
	Secrets(ctx context.Context, namespace, selector string) ([]metav1.PartialObjectMetadata, error)
}

// Options of an engine. All but Trier, Explainer, NamespaceContents, Lister, Parallel, SkipPreflight, Jitter, Metrics
// and Redactor are required.
type Options struct {
	Writer   Writer
	Reader   Reader
	Observer Observer
	// Trier is for shared objects with fields of other managers.
	Trier Trier
	// Explainer is called for objects that have not been ready for a while. The default explains
	// nothing.
	Explainer Explainer
	// NamespaceContents is called for namespaces that a user deletes with their revision; the
	// default finds nothing in them.
	NamespaceContents NamespaceContents
	// Lister is for a CompetingOwner of a caller; the engine does not need it.
	Lister Lister
	// Names are the label, annotation and field managers that mark our objects.
	Names observe.Names
	Clock clock.PassiveClock
	// Parallel bounds the writes of one chain at a time; the default is 8.
	Parallel int
	// SkipPreflight omits the dry-runs of a phase. It saves a request for each write. But when an
	// object is refused, the phase stays half written until that is corrected.
	SkipPreflight bool
	// Jitter spreads retries; the default does not change them.
	Jitter func(time.Duration) time.Duration
	// Metrics records the work of the engine; the default records nothing.
	Metrics Metrics
	// Redactor hides content that must not be in messages and events; the default hides the content
	// of Secrets. Writer and Reader should have the same Redactor.
	Redactor *redact.Redactor
}

// Engine reconciles chains. Several goroutines may use it, one for each owner at a time.
type Engine struct {
	Options

	mu       sync.Mutex
	memories map[string]*memory
	// looking has an element for each look for a cause that is under way.
	looking chan struct{}
	// scratches are for passes to borrow.
	scratches sync.Pool
}

// New returns an engine.
func New(options Options) *Engine {
	if options.Parallel <= 0 {
		options.Parallel = 8
	}
	if options.Jitter == nil {
		options.Jitter = func(d time.Duration) time.Duration { return d }
	}
	if options.Metrics == nil {
		options.Metrics = noMetrics{}
	}
	return &Engine{Options: options, memories: map[string]*memory{}, looking: make(chan struct{}, looksAtOnce)}
}

// Identity returns the names under which the engine writes for an owner.
func (e *Engine) Identity(owner string) Identity {
	return Identity{Chain: owner, Manager: e.Names.ManagerPrefix + owner}
}

// Forget drops the memory and the watches of an owner. Nothing in the cluster changes.
func (e *Engine) Forget(owner string) {
	e.Observer.Drop(owner)
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.memories, owner)
}

// Reconcile does one pass over a chain. It does the possible work now, reports the objects that it
// waits for, and relies on the observer's next notification for the next pass. An error means that
// the pass could not be finished (the inventory could not be saved, the context ended); the report
// then has the progress so far.
//
// Objects that fail are in the report and give no error.
func (e *Engine) Reconcile(ctx context.Context, work Work) (Report, error) {
	p := e.begin(work)
	found, err := p.run(ctx)
	return p.report(ctx, found), err
}

// begin prepares a pass.
func (e *Engine) begin(work Work) *pass {
	e.mu.Lock()
	defer e.mu.Unlock()
	mem, ok := e.memories[work.Owner]
	if !ok {
		mem = newMemory()
		e.memories[work.Owner] = mem
	}
	mem.allowance.refill(e.Clock.Now())
	who := e.Identity(work.Owner)
	return &pass{
		setting: &setting{
			Work: work, engine: e, who: who, manifests: Manifests{Bodies: work.Bodies, Kinds: e.Reader, Names: e.Names, Chain: who.Chain},
		},
		ledger:   ledger{owner: work.Owner, store: work.Save, inventory: work.Inventory.clone(), saved: work.Inventory},
		places:   make(map[manifest.ID]place, len(work.Inventory.Entries)),
		outcomes: make(map[manifest.ID]outcome, len(work.Inventory.Entries)),
		memory:   mem,
	}
}
