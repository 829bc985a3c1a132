// Package upgradereadiness serves the virtual resource upgradereadinesses: the breakage by an
// upgrade of the cluster to the version in the name. It computes each answer from revisions, plans,
// ChartKinds, catalogs and the cluster, as far as the caller may read them, and stores nothing.
//
// Files: storage.go has the endpoint, plan.go its subresource with rendered bundles, extensions.go
// the reads for each extension, others.go further reads, table.go the table.
package upgradereadiness

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/penstock-project/penstock/pkg/apis/objectmeta"
	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/clusterversion"
	"github.com/penstock-project/penstock/pkg/fairshare"
	"github.com/penstock-project/penstock/pkg/lifecycle"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/readiness"
	"github.com/penstock-project/penstock/pkg/text"
)

// places bounds the answers that are computed at the same time. A user has at most half of the
// places, and at least one.
const places = 4

// Revisions reads revisions. *clusterextensionrevision.REST implements it.
type Revisions interface {
	// List returns all revisions. An unreadable record is represented by a placeholder.
	List(ctx context.Context, options *metainternalversion.ListOptions) (runtime.Object, error)
	// Contents returns the manifests of a revision, in rollout order.
	Contents(ctx context.Context, revision *olm.ClusterExtensionRevision) ([]manifest.Object, error)
}

// Statements returns the cluster versions that a bundle of a package supports. An error means that
// the catalogs cannot be read.
type Statements func(pkg, bundle, version string) (readiness.Statement, error)

// Deps are the dependencies of NewREST.
type Deps struct {
	Revisions  Revisions
	Authorizer authorizer.UnconditionalAuthorizer
	Table      *lifecycle.Table
	// Current returns the version of the cluster, or nil if it is unknown.
	Current func(ctx context.Context) *clusterversion.Kubernetes
	// Statements reads the catalogs' statements; nil means that there are no catalogs.
	Statements Statements
	// Render renders bundles for the subresource plan; nil disables the subresource.
	Render Render
	Sources
}

// Sources are the sources besides revisions and catalogs.
type Sources struct {
	// Live reads the cluster for a caller; nil reads nothing.
	Live Live
	// Plans and ChartKinds list all plans and ChartKinds; they may be nil. With an error they also
	// return the readable objects.
	Plans      func(ctx context.Context) ([]readiness.Plan, error)
	ChartKinds func(ctx context.Context) ([]readiness.ChartKind, error)
	// Extensions returns the settings of ClusterExtensions, by name; nil means none.
	Extensions func(ctx context.Context) (map[string]Settings, error)
}

// Live returns the part of some objects in the cluster that a caller may see.
type Live func(ctx context.Context, caller user.Info, wanted map[manifest.ID]bool) readiness.Live

// REST serves the resource. It can be neither listed nor watched.
type REST struct {
	deps   Deps
	places *fairshare.Pool
	table
}

var (
	_ rest.GetterWithOptions    = &REST{}
	_ rest.Scoper               = &REST{}
	_ rest.SingularNameProvider = &REST{}
	_ rest.TableConvertor       = &REST{}
)

// NewREST returns the resource.
func NewREST(deps Deps) *REST { return &REST{deps: deps, places: fairshare.NewPool(places)} }

// New returns an empty answer.
func (*REST) New() runtime.Object { return &v1alpha1.UpgradeReadiness{} }

// Destroy does nothing.
func (*REST) Destroy() {}

// NamespaceScoped is false, as for revisions.
func (*REST) NamespaceScoped() bool { return false }

// GetSingularName returns the singular name for kubectl.
func (*REST) GetSingularName() string { return "upgradereadiness" }

// NewGetOptions returns the query parameters. The resource has no subpath.
func (*REST) NewGetOptions() (runtime.Object, bool, string) {
	return &v1alpha1.UpgradeReadinessOptions{}, false, ""
}

// Get returns the readiness for the version in the name. "next" is the minor version after the
// cluster's version.
func (r *REST) Get(ctx context.Context, name string, options runtime.Object) (runtime.Object, error) {
	return r.answer(ctx, name, options, nil)
}

// renderNext adds the contents of bundles to the next versions, as far as time allows. It returns
// the number of bundles that are not rendered yet.
type renderNext func(ctx context.Context, judge *readiness.Judge, caller user.Info, extensions []*readiness.Extension) (pending int, err error)

// answer computes one answer. With a function render, the answer has the steps of the upgrade.
func (r *REST) answer(ctx context.Context, name string, options runtime.Object, render renderNext) (runtime.Object, error) {
	query, ok := options.(*v1alpha1.UpgradeReadinessOptions)
	if !ok {
		return nil, apierrors.NewInternalError(fmt.Errorf("reading upgrade readiness: options are a %T", options))
	}
	caller, ok := request.UserFrom(ctx)
	if !ok {
		return nil, apierrors.NewInternalError(errors.New("the request has no user"))
	}
	if err := r.places.Take(ctx, caller.GetName(), 1); err != nil {
		return nil, apierrors.NewTimeoutError("waiting for other answers of the same user: "+err.Error(), 1)
	}
	defer r.places.Return(caller.GetName(), 1)
	current := r.deps.Current(ctx)
	target, err := targetOf(name, current)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	reading := &reading{deps: r.deps, caller: caller, may: map[string]bool{}}
	if err := reading.rights(ctx); err != nil {
		return nil, err
	}
	chains, unreadable, err := r.chains(ctx, query.Extension)
	if err != nil {
		return nil, err
	}
	judge := readiness.New(r.deps.Table, current, target)
	if r.deps.Live != nil {
		if wanted := objectsToRead(chains); len(wanted) > 0 {
			judge.Live(r.deps.Live(ctx, caller, wanted))
		}
	}
	var notLooked []string
	if query.Extension == "" {
		if notLooked, err = reading.others(ctx, judge); err != nil {
			return nil, err
		}
	}
	var planned []*readiness.Extension
	for _, chain := range slices.Sorted(maps.Keys(chains)) {
		one, shown, err := reading.extension(ctx, chain, chains[chain])
		switch {
		case err != nil:
			return nil, err
		case !shown:
		case render == nil:
			judge.Extension(one)
		default:
			planned = append(planned, one)
		}
	}
	pending := 0
	if render != nil {
		judge.Steps()
		if pending, err = render(ctx, judge, caller, planned); err != nil {
			return nil, err
		}
		for _, one := range planned {
			judge.Extension(one)
		}
	}
	if !reading.lists && query.Extension == "" {
		notLooked = append(notLooked, "you cannot list clusterextensionrevisions: extensions whose manifests you cannot get are left out")
	}
	if unreadable > 0 && reading.lists {
		notLooked = append(notLooked, text.Count(unreadable, "revision")+" cannot be read: see kubectl get cer")
	}
	answer := judge.Answer(notLooked...)
	if query.Extension != "" && len(answer.Extensions) == 0 && (!reading.lists || len(notLooked) == 0) {
		// The answer does not reveal whether the extension exists.
		return nil, apierrors.NewNotFound(v1alpha1.Resource("clusterextensionrevisions"), query.Extension)
	}
	stillRendering(answer, pending)
	return answer, nil
}

// Next is the name for the minor version after the cluster's version.
const Next = "next"

func targetOf(name string, current *clusterversion.Kubernetes) (readiness.Target, error) {
	if name == Next {
		if current == nil {
			return readiness.Target{}, errors.New("the version of the cluster is not known: name a version such as 1.38")
		}
		return readiness.Next(*current), nil
	}
	target, err := readiness.ParseTarget(name)
	if err == nil && current != nil && target.Kubernetes.Minor < current.Minor {
		err = fmt.Errorf("%s has Kubernetes %d.%d, and the cluster has %s: name a later version", name, target.Kubernetes.Major, target.Kubernetes.Minor, current)
	}
	return target, err
}

// chains returns the revisions by extension, and the number of unreadable revisions.
func (r *REST) chains(ctx context.Context, only string) (chains map[string][]*olm.ClusterExtensionRevision, unreadable int, err error) {
	found, err := r.deps.Revisions.List(ctx, &metainternalversion.ListOptions{})
	if err != nil {
		return nil, 0, err
	}
	list, ok := found.(*olm.ClusterExtensionRevisionList)
	if !ok {
		return nil, 0, apierrors.NewInternalError(fmt.Errorf("listing revisions: got a %T", found))
	}
	chains = map[string][]*olm.ClusterExtensionRevision{}
	for i := range list.Items {
		revision := &list.Items[i]
		chain, _, _ := olm.ChainOf(revision.Name)
		switch {
		case only != "" && chain != only:
		case objectmeta.IsUnreadable(revision):
			unreadable++
		default:
			chains[chain] = append(chains[chain], revision)
		}
	}
	return chains, unreadable, nil
}
