package revisionimport

import (
	"context"
	"io"
	"net/http"
	"time"

	"golang.org/x/sync/semaphore"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/registry/olm/access"
	"github.com/penstock-project/penstock/pkg/registry/olm/clusterextensionrevision"
	"github.com/penstock-project/penstock/pkg/store/archive"
	"github.com/penstock-project/penstock/pkg/store/chain"
)

const (
	// maxWait is the time that an import waits for another import.
	maxWait = 10 * time.Second
	// retrySeconds is the value of Retry-After, in seconds.
	retrySeconds = 5
)

// limits returns the limits of one chain. Memory holds the manifests of one revision at a time, and
// the records of all revisions.
func limits() archive.Limits {
	l := archive.DefaultLimits()
	l.Chains, l.Bytes = 1, 8<<30
	return l
}

// Revisions reads revisions. *clusterextensionrevision.REST implements it.
type Revisions interface {
	// Stored returns a stored revision.
	Stored(ctx context.Context, name string) (*olm.ClusterExtensionRevision, error)
	// Chain returns the revisions of a chain, unsorted.
	Chain(ctx context.Context, chain string) ([]olm.ClusterExtensionRevision, error)
}

// Heads reads and writes the heads of chains. *chain.Heads implements it.
type Heads interface {
	// Get returns the head of a chain, and whether there is one.
	Get(ctx context.Context, name string) (chain.Head, bool, error)
	// Import creates the head of a chain if there is none, and returns the stored head.
	Import(ctx context.Context, head chain.Head) (chain.Head, error)
	// Imported records that all revisions of an archive have been written.
	Imported(ctx context.Context, name, importing, archive string) error
}

// Importer admits and writes single revisions. *clusterextensionrevision.Importer implements it.
type Importer interface {
	// Admit returns the revision to write, if the caller may create it together with the other
	// admitted revisions.
	Admit(ctx context.Context, revision *olm.ClusterExtensionRevision, past *clusterextensionrevision.Past, beside []*olm.ClusterExtensionRevision, dryRun bool) (*olm.ClusterExtensionRevision, error)
	// Write stores an admitted revision.
	Write(ctx context.Context, admitted *olm.ClusterExtensionRevision, uid types.UID) error
}

// Histories returns histories by the names of extensions.
type Histories interface {
	Get(ctx context.Context, name string, options *metav1.GetOptions) (runtime.Object, error)
}

// Deps are the dependencies of NewREST.
type Deps struct {
	Scheme    *runtime.Scheme
	Revisions Revisions
	Heads     Heads
	Importer  Importer
	Histories Histories
	// Authorizer checks whether the caller may create revisions.
	Authorizer authorizer.UnconditionalAuthorizer
	// Reserve returns a context in which stored manifests are not collected until release is
	// called.
	Reserve func(ctx context.Context) (reserved context.Context, release func(), err error)
	// Owners checks whether the owner of a revision exists in this cluster.
	Owners clusterextensionrevision.Owners
}

// REST serves the subresource import: a POST of an archive with one chain.
type REST struct {
	deps Deps
	// turns admits one import at a time, because an import takes memory.
	turns *semaphore.Weighted
}

var _ rest.Connecter = &REST{}

// NewREST returns the subresource.
func NewREST(deps Deps) *REST {
	return &REST{deps: deps, turns: semaphore.NewWeighted(1)}
}

// New returns the type of the answer: the history of the chain.
func (*REST) New() runtime.Object { return &v1alpha1.RevisionHistory{} }

// Destroy does nothing.
func (*REST) Destroy() {}

// ConnectMethods returns POST.
func (*REST) ConnectMethods() []string { return []string{http.MethodPost} }

// NewConnectOptions returns no options: the body is a stream, and parseMode reads the query.
func (*REST) NewConnectOptions() (runtime.Object, bool, string) { return nil, false, "" }

type mode struct {
	// check runs all checks and writes nothing.
	check bool
	// paused imports active revisions as paused: nothing is rolled out until a user resumes them.
	paused bool
}

func parseMode(req *http.Request) (mode, error) {
	query := req.URL.Query()
	check, err := olm.QueryBool(query, "check")
	if err != nil {
		return mode{}, apierrors.NewBadRequest(err.Error())
	}
	paused, err := olm.QueryBool(query, "paused")
	if err != nil {
		return mode{}, apierrors.NewBadRequest(err.Error())
	}
	return mode{check: check, paused: paused}, nil
}

// Connect returns the handler of one import.
func (r *REST) Connect(ctx context.Context, name string, _ runtime.Object, responder rest.Responder) (http.Handler, error) {
	return http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		m, err := parseMode(req)
		if err != nil {
			responder.Error(err)
			return
		}
		status, history, err := r.run(ctx, name, req.Body, m)
		if err != nil {
			responder.Error(err)
			return
		}
		responder.Object(status, history)
	}), nil
}

// run imports a chain:
//
//  1. Check that the caller may create revisions, and wait for other imports.
//  2. Check that the chain does not exist, or that its import is unfinished.
//  3. Read the whole archive, and admit each revision.
//  4. Write the head and the revisions.
//
// The status is 201 after an import. It is 200 after a check, or if this archive was already
// imported.
func (r *REST) run(ctx context.Context, name string, body io.Reader, m mode) (int, runtime.Object, error) {
	if err := access.New(r.deps.Authorizer).NeedCreate(ctx); err != nil {
		return 0, nil, err
	}
	done, err := r.turn(ctx)
	if err != nil {
		return 0, nil, err
	}
	defer done()
	in := &incoming{REST: r, mode: m, name: name}
	if err := in.findPresent(ctx); err != nil {
		return 0, nil, err
	}
	if !m.check {
		// The manifests of all revisions are stored before the first revision.
		reserved, release, err := r.deps.Reserve(ctx)
		if err != nil {
			return 0, nil, apierrors.NewInternalError(err)
		}
		defer release()
		ctx = reserved
	}
	if err := in.read(ctx, body); err != nil {
		return 0, nil, err
	}
	nothing := &v1alpha1.RevisionHistory{ObjectMeta: metav1.ObjectMeta{Name: name}, Revisions: []v1alpha1.RevisionRecord{}}
	if m.check {
		return http.StatusOK, nothing, nil
	}
	status := http.StatusOK
	if !in.finished() {
		status = http.StatusCreated
		if err := in.write(ctx); err != nil {
			return 0, nil, err
		}
	}
	history, err := r.deps.Histories.Get(ctx, name, &metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		// The archive has a highest number and no revisions.
		return status, nothing, nil
	}
	return status, history, err
}

func (r *REST) turn(ctx context.Context) (done func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, maxWait)
	defer cancel()
	if err := r.turns.Acquire(ctx, 1); err != nil {
		return nil, apierrors.NewTooManyRequests("another import is running", retrySeconds)
	}
	return func() { r.turns.Release(1) }, nil
}
