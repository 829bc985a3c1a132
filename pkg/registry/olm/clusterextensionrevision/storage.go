package clusterextensionrevision

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage/names"
	"k8s.io/apiserver/pkg/util/dryrun"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/penstock-project/penstock/pkg/admission/request"
	"github.com/penstock-project/penstock/pkg/apis/objectmeta"
	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/redact"
	"github.com/penstock-project/penstock/pkg/registry/encoding"
	"github.com/penstock-project/penstock/pkg/registry/status"
	shared "github.com/penstock-project/penstock/pkg/registry/strategy"
	"github.com/penstock-project/penstock/pkg/store"
	"github.com/penstock-project/penstock/pkg/store/chainversion"
	"github.com/penstock-project/penstock/pkg/store/pack"
)

const (
	resource         = "clusterextensionrevisions"
	singularResource = "clusterextensionrevision"

	// packAnnotation is the audit annotation that names the pack of a write. The event's body has
	// only digests.
	packAnnotation = "penstock.dev/pack"
)

// Deps are the dependencies of NewStorage.
type Deps struct {
	// Scheme contains the types of the group.
	Scheme *runtime.Scheme
	// OptsGetter returns the storage options for etcd.
	OptsGetter generic.RESTOptionsGetter
	// Bodies stores the manifests.
	Bodies Bodies
	// Heads stores the numbers of chains.
	Heads Heads
	// ChainVersions returns the versions of chains. OptsGetter must return storage that compares
	// them (see package guardedstorage).
	ChainVersions ChainVersions
	// Inventories reads the inventories of chains.
	Inventories Inventories
	// Digester must be the digester of Bodies and of FilterDeps.
	Digester manifest.Digester
	// Authorizer checks whether callers may get a Secret.
	Authorizer authorizer.UnconditionalAuthorizer
	// Redactor hides fields in addition to the content of Secrets; nil hides only Secrets.
	Redactor *redact.Redactor
	// ApplyCheck predicts refusals of server-side apply.
	ApplyCheck ApplyCheck
	// CheckCEL compiles the CEL expression of a probe.
	CheckCEL func(expression string) error
	// NameWarning returns a warning while kubectl resolves this name to another resource, and ""
	// otherwise.
	NameWarning func() string
	// Shares bounds the use of the store by users and chains.
	Shares *Shares
	// Clock is used for ages; nil means the system clock.
	Clock clock.PassiveClock
}

// Storage holds all endpoints of the resource.
type Storage struct {
	Revision  *REST
	Status    *StatusREST
	Manifests *ManifestsREST
}

// NewStorage returns the endpoints over a generic store.
func NewStorage(deps Deps) (*Storage, error) {
	if deps.Clock == nil {
		deps.Clock = clock.RealClock{}
	}
	revision := &REST{
		contents: &contents{digester: deps.Digester, bodies: deps.Bodies},
		heads:    deps.Heads,
		redactor: deps.Redactor,

		chainVersions: deps.ChainVersions,
		inventories:   deps.Inventories,
		authorizer:    deps.Authorizer,
		applyCheck:    deps.ApplyCheck,
		shares:        deps.Shares,
	}
	strategy := &strategy{
		Cluster:       shared.Cluster{ObjectTyper: deps.Scheme, NameGenerator: names.SimpleNameGenerator},
		inliner:       inliner{digester: deps.Digester},
		chainVersions: deps.ChainVersions,
		chain:         revision.Chain,
		checkCEL:      deps.CheckCEL,
		nameWarning:   deps.NameWarning,
		clock:         deps.Clock,
	}
	revision.Store = &genericregistry.Store{
		NewFunc:                   func() runtime.Object { return &olm.ClusterExtensionRevision{} },
		NewListFunc:               func() runtime.Object { return &olm.ClusterExtensionRevisionList{} },
		DefaultQualifiedResource:  v1alpha1.Resource(resource),
		SingularQualifiedResource: v1alpha1.Resource(singularResource),
		PredicateFunc:             predicate,
		CreateStrategy:            strategy,
		UpdateStrategy:            strategy,
		DeleteStrategy:            strategy,
		ResetFieldsStrategy:       strategy,
		TableConvertor:            table{clock: deps.Clock},
	}
	options := &generic.StoreOptions{RESTOptions: deps.OptsGetter, AttrFunc: getAttrs, Indexers: indexers()}
	if err := revision.CompleteWithOptions(options); err != nil {
		return nil, fmt.Errorf("completing the store of %s: %w", resource, err)
	}
	revision.Storage.Storage = unpackedStorage{revision.Storage.Storage}
	revision.Storage.Codec = unpackedCodec{revision.Storage.Codec}
	return &Storage{
		Revision:  revision,
		Status:    &StatusREST{REST: status.New(revision.Store, statusStrategy{strategy}), revisions: revision},
		Manifests: &ManifestsREST{store: revision.Store, contents: revision.contents, authorizer: deps.Authorizer},
	}, nil
}

// REST serves the resource clusterextensionrevisions.
type REST struct {
	*genericregistry.Store
	contents *contents
	heads    Heads
	redactor *redact.Redactor

	chainVersions ChainVersions
	inventories   Inventories
	// authorizer decides who may know a Secret, and who may get a revision.
	authorizer authorizer.UnconditionalAuthorizer
	applyCheck ApplyCheck
	shares     *Shares
}

var (
	_ rest.StandardStorage      = &REST{}
	_ rest.ShortNamesProvider   = &REST{}
	_ rest.CategoriesProvider   = &REST{}
	_ rest.SingularNameProvider = &REST{}
)

// ShortNames returns the short name for kubectl.
func (*REST) ShortNames() []string { return []string{"cer"} }

// Categories makes `kubectl get olm` list revisions.
func (*REST) Categories() []string { return []string{"olm"} }

// Stored returns a stored revision.
func (r *REST) Stored(ctx context.Context, name string) (*olm.ClusterExtensionRevision, error) {
	found, err := r.Get(ctx, name, &metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		// The store would name the resource of the request, which may be revisiondiffs.
		return nil, apierrors.NewNotFound(v1alpha1.Resource(resource), name)
	}
	if err != nil {
		return nil, err
	}
	return found.(*olm.ClusterExtensionRevision), nil
}

// Chain returns the revisions of a chain. One unreadable revision fails the whole call, because a
// check needs all revisions.
func (r *REST) Chain(ctx context.Context, chain string) ([]olm.ClusterExtensionRevision, error) {
	found, err := r.Store.List(ctx, &metainternalversion.ListOptions{
		LabelSelector: labels.SelectorFromSet(labels.Set{v1alpha1.ChainLabel: chain}),
	})
	if err != nil {
		return nil, err
	}
	revisions := found.(*olm.ClusterExtensionRevisionList).Items
	for i := range revisions {
		if objectmeta.IsUnreadable(&revisions[i]) {
			return nil, encoding.NewUnreadable(v1alpha1.Resource(resource), revisions[i].Name, errors.New(revisions[i].Annotations[objectmeta.UnreadableAnnotation]))
		}
	}
	return revisions, nil
}

// List implements rest.Lister. The revisions of the list are packed, for encoders and printers.
func (r *REST) List(ctx context.Context, options *metainternalversion.ListOptions) (runtime.Object, error) {
	return r.Store.List(packed(ctx), options)
}

// All returns the readable revisions of all chains, by chain. They are packed, because callers read
// thousands and use few.
func (r *REST) All(ctx context.Context) (map[string][]olm.ClusterExtensionRevision, error) {
	found, err := r.List(ctx, &metainternalversion.ListOptions{})
	if err != nil {
		return nil, err
	}
	chains := map[string][]olm.ClusterExtensionRevision{}
	for _, revision := range found.(*olm.ClusterExtensionRevisionList).Items {
		if chain, _, ok := olm.ChainOf(revision.Name); ok && !objectmeta.IsUnreadable(&revision) {
			chains[chain] = append(chains[chain], revision)
		}
	}
	return chains, nil
}

// Contents returns all manifests of a stored revision, verified and in rollout order, or an
// internal error.
func (r *REST) Contents(ctx context.Context, revision *olm.ClusterExtensionRevision) ([]manifest.Object, error) {
	var entries []entryKey
	eachObject(revision, func(_, _ int, entry *olm.RevisionObject) { entries = append(entries, keyOf(entry)) })
	if len(entries) == 0 {
		return nil, nil
	}
	objects, err := r.contents.read(ctx, revision, entries)
	if err != nil {
		return nil, notRead(ctx, r.Store, revision.Name, err)
	}
	return objects, nil
}

// notRead returns the error for unreadable manifests. They are collected together with the last
// revision that has them. If that revision was deleted meanwhile, the error is Not Found.
func notRead(ctx context.Context, revisions *genericregistry.Store, name string, failed error) error {
	if errors.As(failed, new(*pack.MissingError)) {
		if _, err := revisions.Get(ctx, name, &metav1.GetOptions{}); apierrors.IsNotFound(err) {
			return apierrors.NewNotFound(v1alpha1.Resource(resource), name)
		}
	}
	return apierrors.NewInternalError(fmt.Errorf("reading the manifests of %s: %w", name, failed))
}

// Create stores a new revision. If its chain changes meanwhile, it starts over with the object that
// the client sent.
func (r *REST) Create(ctx context.Context, obj runtime.Object, validate rest.ValidateObjectFunc, options *metav1.CreateOptions) (runtime.Object, error) {
	ctx, _ = withStaged(ctx)
	dryRun := dryrun.IsDryRun(options.DryRun)
	validate = r.storeContents(validate, dryRun)
	var out runtime.Object
	var err error
	for try := 1; try <= maxAttempts; try++ {
		out, err = r.Store.Create(chainversion.With(ctx), obj.DeepCopyObject(), validate, options)
		if !beginsAnew(err) {
			break
		}
	}
	if err != nil {
		name := obj.(*olm.ClusterExtensionRevision).Name
		return nil, changed(name, r.refused(ctx, name, err))
	}
	return out, nil
}

// Update changes a revision, or stores a new one for server-side apply.
func (r *REST) Update(ctx context.Context, name string, info rest.UpdatedObjectInfo, create rest.ValidateObjectFunc, update rest.ValidateObjectUpdateFunc, forceAllowCreate bool, options *metav1.UpdateOptions) (runtime.Object, bool, error) {
	ctx, _ = withStaged(ctx)
	dryRun := dryrun.IsDryRun(options.DryRun)
	out, created, err := r.Store.Update(chainversion.With(ctx), name, info, r.storeContents(create, dryRun), r.healContents(update, dryRun), forceAllowCreate, options)
	for try := 1; try < maxAttempts && wasCollected(err); try++ {
		out, created, err = r.Store.Update(chainversion.With(ctx), name, info, r.storeContents(create, dryRun), r.healContents(update, dryRun), forceAllowCreate, options)
	}
	return out, created, changed(name, r.refused(ctx, name, err))
}

// storeContents wraps the validation of a create, the last step before the store writes the record.
// So nothing is stored for a refused request. A crash before that write leaves an unreferenced
// pack.
func (r *REST) storeContents(validate rest.ValidateObjectFunc, dryRun bool) rest.ValidateObjectFunc {
	take := r.takeContents(validate, packAnnotation, dryRun)
	return func(ctx context.Context, obj runtime.Object) error {
		revision := obj.(*olm.ClusterExtensionRevision)
		if err := r.judgeCreate(ctx, revision.Name); err != nil {
			return err
		}
		// The head is read before admission reads the chain, and must be unchanged at the write.
		// Otherwise a requester could cause the deletion of a revision's objects without a check of
		// their rights.
		seen, err := r.seen(ctx, revision, dryRun)
		if err != nil {
			return err
		}
		// take stores the pack. The record and the number are written together afterwards.
		if err := take(ctx, obj); err != nil {
			return err
		}
		return r.take(ctx, revision, seen, dryRun)
	}
}

// takeContents works like storeContents, without taking the number. It adds the root of the stored
// pack to the audit event, under auditKey.
func (r *REST) takeContents(validate rest.ValidateObjectFunc, auditKey string, dryRun bool) rest.ValidateObjectFunc {
	return func(ctx context.Context, obj runtime.Object) error {
		revision := obj.(*olm.ClusterExtensionRevision)
		held := stagedFrom(ctx)
		if err := held.failed(); err != nil {
			return asStatus(err)
		}

		// 1. Collect all manifests.
		objects, err := r.contents.collect(ctx, revision, held)
		if err != nil {
			return err
		}

		// 2. Run admission: Penstock's plugins, and the cluster's policies and webhooks. Then check
		// that server-side apply can take the manifests. The object is a copy made for this call.
		inlineForAdmission(revision, objects)
		admit := quietly(r.applicable(validate, objects), r.redactor)
		if err := admit(request.WithBorrowed(request.WithManifests(ctx, objects), held.lent()), revision); err != nil {
			return err
		}
		if dryRun {
			return nil
		}

		// 3. Check the shares of the user and of the chain.
		if err := r.withinShare(ctx, revision, objects); err != nil {
			return err
		}

		// 4. Store the pack.
		root, err := r.contents.put(ctx, revision, held, objects, rootsOf(besides(ctx), revision.Spec.Revision))
		if err != nil {
			return err
		}
		audit.AddAuditAnnotation(ctx, auditKey, root)
		// Nothing refers to the pack until the record is written.
		chainversion.From(ctx).Refers(root)
		return nil
	}
}

// asStatus converts an error to a status. It keeps a status that the library has set, such as "try
// again" while the watch cache starts. Otherwise it returns a 500.
func asStatus(err error) error {
	if store.IsFull(err) {
		return StoreFull()
	}
	if status := apierrors.APIStatus(nil); errors.As(err, &status) {
		return &apierrors.StatusError{ErrStatus: status.Status()}
	}
	return apierrors.NewInternalError(err)
}

// healContents wraps the validation of an update. Content never changes, so usually nothing is
// stored. If the pack was lost, a client that sends all manifests again restores it. A failure to
// restore it is logged, not returned.
func (r *REST) healContents(validate rest.ValidateObjectUpdateFunc, dryRun bool) rest.ValidateObjectUpdateFunc {
	return func(ctx context.Context, obj, old runtime.Object) error {
		stored := old.(*olm.ClusterExtensionRevision)
		if err := stagedFrom(ctx).failed(); err != nil {
			return asStatus(err)
		}
		if err := r.judge(ctx, stored.Name); err != nil {
			return err
		}
		if err := r.superseded(ctx, obj.(*olm.ClusterExtensionRevision), stored); err != nil {
			return err
		}
		if validate != nil {
			if err := validate(ctx, obj, old); err != nil {
				return err
			}
		}
		revision, held := obj.(*olm.ClusterExtensionRevision), stagedFrom(ctx)
		if err := r.recordRemoval(ctx, revision); err != nil {
			return err
		}
		if dryRun || held.bytes() == 0 || len(notHeld(revision, held)) > 0 {
			return nil
		}
		objects, err := r.contents.collect(ctx, revision, held)
		if err == nil {
			// The pack belongs to its own chain. Its dependencies were checked when the revision
			// was created.
			_, err = r.contents.put(ctx, revision, held, objects, []string{rootOf(stored)})
		}
		if err != nil {
			klog.FromContext(ctx).Error(err, "The manifests of a revision came with a request, but could not be put back into the store", "revision", revision.Name)
		}
		return nil
	}
}
