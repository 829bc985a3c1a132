package clusterextensionrevision

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	admissionrequest "github.com/penstock-project/penstock/pkg/admission/request"
	"github.com/penstock-project/penstock/pkg/apis/objectmeta"
	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/apis/olm/validation"
	shared "github.com/penstock-project/penstock/pkg/registry/strategy"
	rev "github.com/penstock-project/penstock/pkg/revision"
)

// strategy defines a well-formed revision, and the fields that the server adds. Admission decides
// who may write a revision.
type strategy struct {
	shared.Cluster
	inliner       inliner
	chainVersions ChainVersions
	chain         ChainFunc
	checkCEL      func(expression string) error
	nameWarning   func() string
	clock         clock.PassiveClock
}

var (
	_ rest.RESTCreateStrategy  = &strategy{}
	_ rest.RESTUpdateStrategy  = &strategy{}
	_ rest.RESTDeleteStrategy  = &strategy{}
	_ rest.ResetFieldsStrategy = &strategy{}
)

// GetResetFields returns the fields that writes of the main resource cannot set.
func (*strategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return shared.ResetFields(v1alpha1.SchemeGroupVersion, append(serverAnnotationPaths(), fieldpath.MakePathOrDie("status"))...)
}

// PrepareForCreate converts a new revision to its stored form.
func (s *strategy) PrepareForCreate(ctx context.Context, obj runtime.Object) {
	revision := obj.(*olm.ClusterExtensionRevision)
	held := stagedFrom(ctx)
	held.fail(nil)

	revision.Generation = 1
	revision.Status = olm.ClusterExtensionRevisionStatus{
		RequestedBy: requesterFrom(ctx),
		Conditions:  []metav1.Condition{objectmeta.Unobserved(v1alpha1.ConditionReady, revision.CreationTimestamp)},
	}
	proposed := isProposedBy(ctx, revision)
	keepServerAnnotations(ctx, revision, &olm.ClusterExtensionRevision{})
	keepNotes(ctx, revision, nil)
	if proposed {
		setAnnotation(revision, v1alpha1.ProposedAnnotation, "true")
	}
	if rollback := rollbackFrom(ctx); rollback != nil {
		setAnnotation(revision, v1alpha1.RollbackOfAnnotation, rollback.Of)
	}
	s.stampAcknowledgements(ctx, revision, &olm.ClusterExtensionRevision{})
	if past := pastFrom(ctx); past != nil {
		past.restore(revision)
	}
	s.inliner.rewriteRevision(revision, held)

	chain, _, ok := olm.ChainOf(revision.Name)
	if !ok {
		return // Validate returns the error.
	}
	setChainLabel(revision, chain)
	addTeardownFinalizer(revision)
	if err := s.completeFromChain(ctx, revision, chain, held); err != nil {
		held.fail(fmt.Errorf("reading the revisions of %s: %w", chain, err))
	}
}

// completeFromChain adds data from the other revisions of the chain: the predecessors, and facts
// about manifests that are only named by digest. It keeps the revisions for Validate.
func (s *strategy) completeFromChain(ctx context.Context, revision *olm.ClusterExtensionRevision, chain string, held *staged) error {
	// The predecessors of an imported revision are known: an empty list means none. The cluster is
	// known from the revisions imported before.
	imported := pastFrom(ctx) != nil
	needsPrevious := len(revision.Spec.Previous) == 0 && !imported
	if imported && len(notHeld(revision, held)) == 0 {
		setFacts(revision, held, nil, false)
		return nil
	}
	// The chain version is read first. Data taken from the revisions is valid while this version is
	// unchanged, see judgeCreate.
	at, err := s.chainVersions.Get(ctx, chain)
	if err != nil {
		return err
	}
	revisions, err := s.chain(ctx, chain)
	if err != nil {
		return err
	}
	held.setChain(revisions, at)
	if needsPrevious {
		revision.Spec.Previous = previousOf(revisions, revision.Spec.Revision)
	}
	setFacts(revision, held, factsIn(revisions), false)
	return nil
}

// PrepareForUpdate restores fields that a write of the main resource cannot change, and increments
// the generation.
func (s *strategy) PrepareForUpdate(ctx context.Context, obj, old runtime.Object) {
	revision, stored := obj.(*olm.ClusterExtensionRevision), old.(*olm.ClusterExtensionRevision)
	held := stagedFrom(ctx)
	held.fail(nil)

	revision.Status = stored.Status
	keepServerAnnotations(ctx, revision, stored)
	keepNotes(ctx, revision, stored)
	s.noteApproval(ctx, revision, stored)
	s.stampAcknowledgements(ctx, revision, stored)
	s.inliner.rewriteRevision(revision, held)
	setFacts(revision, held, factsIn([]olm.ClusterExtensionRevision{*stored}), true)
	// A PUT of the original file lacks the fields that the server added. They stay.
	if len(revision.Spec.Previous) == 0 {
		revision.Spec.Previous = stored.Spec.Previous
	}
	if chain, _, ok := olm.ChainOf(revision.Name); ok {
		setChainLabel(revision, chain)
	}
	// While the revision is being deleted, a user may remove the finalizer by hand, as everywhere
	// in Kubernetes; see WarningsOnUpdate.
	if stored.DeletionTimestamp == nil {
		addTeardownFinalizer(revision)
	}
	s.keepArchived(ctx, revision, stored, held)
	disown(revision)
	if !apiequality.Semantic.DeepEqual(revision.Spec, stored.Spec) {
		revision.Generation = stored.Generation + 1
		// The controllers know their own change. Otherwise a superseded revision would briefly be
		// in progress, and Helm's wait, which checks again at the end, would fail.
		if stored.Status.ObservedGeneration == stored.Generation && isArchivedByPenstock(ctx, revision, stored) {
			revision.Status.ObservedGeneration = revision.Generation
		}
	}
}

// Validate returns the errors in a new revision. The requester's rights are not checked yet. So
// expensive checks run last, and only without other errors.
func (s *strategy) Validate(ctx context.Context, obj runtime.Object) field.ErrorList {
	return objectmeta.Bounded(s.validate(ctx, obj.(*olm.ClusterExtensionRevision)))
}

func (s *strategy) validate(ctx context.Context, revision *olm.ClusterExtensionRevision) field.ErrorList {
	if errs := s.inliner.invalidManifests(revision, stagedFrom(ctx)); len(errs) > 0 {
		return errs
	}
	errs := append(validation.ValidateRevision(revision), s.invalidTime(ctx, revision, &olm.ClusterExtensionRevision{ObjectMeta: metav1.ObjectMeta{Name: revision.Name}})...)
	errs = append(errs, validation.ValidateTargetOfChain(revision, besides(ctx))...)
	// Expressions are immutable, so updates need not compile them. A revision stays valid even if a
	// newer release has other functions.
	if len(errs) == 0 {
		errs = validation.ValidateExpressions(ctx, revision, s.checkCEL)
	}
	return errs
}

// besides returns the revisions of the chain that a new revision joins: stored revisions, and those
// imported in the same request.
func besides(ctx context.Context) []olm.ClusterExtensionRevision {
	others := slices.Clone(stagedFrom(ctx).chain())
	for _, other := range admissionrequest.BesideFrom(ctx) {
		others = append(others, *other)
	}
	return others
}

// ValidateUpdate returns an error for each forbidden change.
func (s *strategy) ValidateUpdate(ctx context.Context, obj, old runtime.Object) field.ErrorList {
	revision := obj.(*olm.ClusterExtensionRevision)
	if errs := s.inliner.invalidManifests(revision, stagedFrom(ctx)); len(errs) > 0 {
		return objectmeta.Bounded(errs)
	}
	stored := old.(*olm.ClusterExtensionRevision)
	removed, err := s.removed(ctx, revision, stored)
	if err != nil {
		return field.ErrorList{field.InternalError(field.NewPath("metadata", "annotations"), fmt.Errorf("reading the revisions before %s: %w", revision.Name, err))}
	}
	errs, err := s.invalidApproval(ctx, revision, stored)
	if err != nil {
		return field.ErrorList{field.InternalError(approvalPath(), fmt.Errorf("reading the revisions before %s: %w", revision.Name, err))}
	}
	return objectmeta.Bounded(append(errs, validation.ValidateRevisionUpdate(revision, stored, removed...)...))
}

// removed returns the digests of the objects that an update, which resumes or approves a revision,
// removes from each earlier revision, as in the diffs. It returns them only if the update can
// acknowledge one.
func (s *strategy) removed(ctx context.Context, revision, stored *olm.ClusterExtensionRevision) ([]string, error) {
	chain, _, ok := olm.ChainOf(revision.Name)
	if !ok || !validation.Unpauses(revision, stored) && !validation.ApprovesLater(revision, stored) ||
		revision.Annotations[v1alpha1.AcknowledgeDeletionAnnotation] == stored.Annotations[v1alpha1.AcknowledgeDeletionAnnotation] {
		return nil, nil
	}
	revisions, err := s.chain(ctx, chain)
	if err != nil {
		return nil, err
	}
	var digests []string
	for i := range revisions {
		if revisions[i].Spec.Revision < revision.Spec.Revision {
			digests = append(digests, rev.RemovedDigest(rev.Removed(Refs(&revisions[i]), Refs(revision)), revision.UID))
		}
	}
	return digests, nil
}

// WarningsOnCreate warns of valid but probably unintended revisions. It also warns if kubectl
// resolves the short name to another resource.
func (s *strategy) WarningsOnCreate(_ context.Context, obj runtime.Object) []string {
	var warnings []string
	if shared := s.nameWarning(); shared != "" {
		warnings = append(warnings, shared)
	}
	objects := 0
	eachObject(obj.(*olm.ClusterExtensionRevision), func(int, int, *olm.RevisionObject) { objects++ })
	if objects == 0 {
		warnings = append(warnings, "spec.phases: no objects: when this revision succeeds, all objects of the revisions before it are deleted")
	}
	return warnings
}

// WarningsOnUpdate warns a user who pauses a resumed revision, or removes the finalizer by hand.
// The controllers remove the finalizer when their work is done.
func (*strategy) WarningsOnUpdate(ctx context.Context, obj, old runtime.Object) []string {
	revision, stored := obj.(*olm.ClusterExtensionRevision), old.(*olm.ClusterExtensionRevision)
	removed := slices.Contains(stored.Finalizers, v1alpha1.TeardownFinalizer) && !slices.Contains(revision.Finalizers, v1alpha1.TeardownFinalizer)
	warnings := pausedAgain(revision, stored)
	if !removed || revision.Spec.TeardownPolicy == olm.TeardownPolicyOrphan {
		return warnings
	}
	if requester, ok := request.UserFrom(ctx); ok && requester.GetName() == user.APIServerUser {
		return warnings
	}
	return append(warnings, "metadata.finalizers: without "+v1alpha1.TeardownFinalizer+" Penstock does not delete the objects of this revision")
}

func requesterFrom(ctx context.Context) *olm.Requester {
	info, ok := request.UserFrom(ctx)
	if !ok {
		return nil
	}
	requester := &olm.Requester{
		Username: info.GetName(),
		UID:      info.GetUID(),
		Groups:   slices.Clone(info.GetGroups()),
	}
	for key, values := range info.GetExtra() {
		if requester.Extra == nil {
			requester.Extra = map[string]olm.ExtraValue{}
		}
		requester.Extra[key] = slices.Clone(values)
	}
	return requester
}

// setChainLabel derives the label from the name. Validation refuses a different value.
func setChainLabel(revision *olm.ClusterExtensionRevision, chain string) {
	if _, given := revision.Labels[v1alpha1.ChainLabel]; given {
		return
	}
	if revision.Labels == nil {
		revision.Labels = map[string]string{}
	}
	revision.Labels[v1alpha1.ChainLabel] = chain
}

func addTeardownFinalizer(revision *olm.ClusterExtensionRevision) {
	if !slices.Contains(revision.Finalizers, v1alpha1.TeardownFinalizer) {
		revision.Finalizers = append(revision.Finalizers, v1alpha1.TeardownFinalizer)
	}
}

// notHeld returns the entries whose manifest is not in this request.
func notHeld(revision *olm.ClusterExtensionRevision, held *staged) []entryKey {
	var missing []entryKey
	eachObject(revision, func(_, _ int, entry *olm.RevisionObject) {
		if _, ok := held.find(keyOf(entry)); !ok {
			missing = append(missing, keyOf(entry))
		}
	})
	return missing
}

// setFacts sets the facts of every entry, independent of the client's values. It takes them from
// the manifests of this request, or from revisions with the same manifest. An unknown manifest has
// none. With keep, stored facts stay: a revision keeps its meaning even if a later release derives
// more facts from it.
func setFacts(revision *olm.ClusterExtensionRevision, held *staged, known map[entryKey]facts, keep bool) {
	eachObject(revision, func(_, _ int, entry *olm.RevisionObject) {
		if entry.Object != nil {
			return
		}
		found, stored := known[keyOf(entry)]
		if object, ok := held.find(keyOf(entry)); ok && !(keep && stored) {
			found = factsOf(object)
		}
		found.onto(entry)
	})
}

// selectableFields returns the fields that field selectors can use.
func selectableFields(revision *olm.ClusterExtensionRevision) fields.Set {
	return generic.AddObjectMetaFieldsSet(fields.Set{
		"spec.revision":       strconv.FormatInt(revision.Spec.Revision, 10),
		"spec.lifecycleState": string(revision.Spec.LifecycleState),
	}, &revision.ObjectMeta, false)
}

func getAttrs(obj runtime.Object) (labels.Set, fields.Set, error) {
	revision, ok := obj.(*olm.ClusterExtensionRevision)
	if !ok {
		return nil, nil, fmt.Errorf("selecting revisions: got a %T", obj)
	}
	return revision.Labels, selectableFields(revision), nil
}

// predicate returns the selection of revisions by selectors. The watch cache has an index for the
// chain's label.
func predicate(label labels.Selector, field fields.Selector) storage.SelectionPredicate {
	return storage.SelectionPredicate{
		Label:       label,
		Field:       field,
		GetAttrs:    getAttrs,
		IndexLabels: []string{v1alpha1.ChainLabel},
	}
}

func indexers() *cache.Indexers {
	return &cache.Indexers{
		storage.LabelIndex(v1alpha1.ChainLabel): func(obj any) ([]string, error) {
			revision, ok := obj.(*olm.ClusterExtensionRevision)
			if !ok {
				return nil, fmt.Errorf("indexing revisions: got a %T", obj)
			}
			return []string{revision.Labels[v1alpha1.ChainLabel]}, nil
		},
	}
}
