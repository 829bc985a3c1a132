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

// Reader reads objects of the target cluster without a cache. It uses the version of the reference
// or, if that is not served, another version.
type Reader interface {
	Read(ctx context.Context, ref manifest.Ref) (*unstructured.Unstructured, error)
	ReadMetadata(ctx context.Context, ref manifest.Ref) (*metav1.PartialObjectMetadata, error)
	// Mapping returns the resource of a kind in this version. It fails with a NoMatch error while
	// the kind is not served in this version.
	Mapping(ctx context.Context, kind schema.GroupVersionKind) (*meta.RESTMapping, error)
	// Served returns the resource of a kind in a served version. A NoMatch error means that
	// no version is served.
	Served(ctx context.Context, kind schema.GroupVersionKind) (*meta.RESTMapping, error)
	// HasStatus reports whether a kind has the status subresource: the API server then ignores the
	// field status in an apply. It fails with a NoMatch error while the kind is not served in this
	// version.
	HasStatus(ctx context.Context, kind schema.GroupVersionKind) (bool, error)
	// Instances lists at most limit objects of a kind.
	Instances(ctx context.Context, kind manifest.Ref, limit int64) ([]metav1.PartialObjectMetadata, error)
}

// Observer returns the known state of objects (see package observe).
type Observer interface {
	// Want must not keep the slice of interests: the caller reuses it.
	Want(owner string, interests ...observe.Interest)
	Get(id manifest.ID) (observe.Observation, observe.Presence)
	Drop(owner string)
	// Trouble returns the reason why an object's presence is Unknown, or nil if the watch has not
	// answered yet.
	Trouble(id manifest.ID) error
}

// Trier tries an apply to an object by dry-run (see package targetclient).
type Trier interface {
	Try(ctx context.Context, ref manifest.Ref, body []byte, options targetclient.TryOptions) (*unstructured.Unstructured, error)
}

// Explainer returns the reason why an object is not ready (see package cause/gather), and false
// when unknown.
type Explainer interface {
	Explain(ctx context.Context, subject cause.Subject) (cause.Cause, bool, error)
}

// Lister lists metadata of Secrets.
type Lister interface {
	Secrets(ctx context.Context, namespace, selector string) ([]metav1.PartialObjectMetadata, error)
}

// Options of an engine. The fields Trier, Explainer, NamespaceContents, Lister, Parallel,
// SkipPreflight, Jitter, Metrics and Redactor are optional.
type Options struct {
	Writer   Writer
	Reader   Reader
	Observer Observer
	// Trier is required for shared objects with fields of other managers.
	Trier Trier
	// Explainer is called for objects that are not ready for a while. By default, the engine
	// explains nothing.
	Explainer Explainer
	// NamespaceContents lists the content of namespaces that a user deletes with their revision. By
	// default, namespaces count as empty.
	NamespaceContents NamespaceContents
	// Lister is for the CompetingOwner of a caller; the engine does not use it.
	Lister Lister
	// Names are the label, annotation and field managers that mark the chain's objects.
	Names observe.Names
	Clock clock.PassiveClock
	// Parallel is the number of concurrent writes of one chain; the default is 8.
	Parallel int
	// SkipPreflight omits the dry-runs of a phase, one request for each write. If the server then
	// refuses an object, the phase stays half written.
	SkipPreflight bool
	// Jitter spreads retries; the default does not change them.
	Jitter func(time.Duration) time.Duration
	// Metrics records the work of the engine. By default, nothing is recorded.
	Metrics Metrics
	// Redactor hides content in messages and events. By default, it hides the content of Secrets.
	// Writer and Reader should use the same Redactor.
	Redactor *redact.Redactor
}

// Engine reconciles chains. Several goroutines may use it, but only one for each owner at a time.
type Engine struct {
	Options

	mu       sync.Mutex
	memories map[string]*memory
	// looking limits the concurrent searches for a cause.
	looking chan struct{}
	// scratches holds reusable memory for passes.
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

// Forget drops the memory and the watches of an owner. It changes nothing in the cluster.
func (e *Engine) Forget(owner string) {
	e.Observer.Drop(owner)
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.memories, owner)
}

// Reconcile does one pass over a chain. It does the work that is possible now, and reports the
// objects that it waits for. The observer's next notification should trigger the next pass. An
// error means that the pass ended early: the inventory could not be saved, or the context ended.
// The report then has the progress so far.
//
// Objects that fail are in the report and cause no error.
func (e *Engine) Reconcile(ctx context.Context, work Work) (Report, error) {
	p := e.begin(work)
	found, err := p.run(ctx)
	return p.report(ctx, found), err
}

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
