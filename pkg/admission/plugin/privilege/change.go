package privilege

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/penstock-project/penstock/pkg/admission/request"
	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/helmrelease"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	olmvalidation "github.com/penstock-project/penstock/pkg/apis/olm/validation"
	"github.com/penstock-project/penstock/pkg/authz"
)

// kind is the kind of a change that makes Penstock act in the cluster.
type kind string

const (
	// create adds a revision, also by a rollback.
	create kind = "create"
	// unpause resumes a paused revision.
	unpause kind = "unpause"
	archive kind = "archive"
	remove  kind = "delete"
	// arm enables the automatic rollback of a revision.
	arm kind = "arm"
	// acknowledge allows the deletion of definitions that have instances, or a deletion that
	// exceeds the deletion budget.
	acknowledge kind = "acknowledge"
	// release ends the hold of a rollback, so that the owner of the extension can create revisions.
	release kind = "release"
	// teardown changes whether the objects of a revision are deleted with it.
	teardown kind = "teardown"
	// hasten makes a revision succeed sooner. Its success archives older revisions and so deletes
	// objects.
	hasten kind = "hasten"
	// own adds an owner to a revision. If the owner does not exist, garbage collection deletes the
	// revision with its own rights, which cover everything.
	own kind = "own"
)

type change struct {
	kind kind
	// revision after the change; for a delete, the stored revision.
	revision *olm.ClusterExtensionRevision
	chain    string
	// armed is true if the change enables an automatic rollback, or makes it happen sooner.
	armed bool
	// orphans is true if Penstock keeps the objects.
	orphans bool
	// owners are the owners that the change adds.
	owners []metav1.OwnerReference
	// acknowledged are the added CustomResourceDefinitions whose instances may be lost.
	acknowledged []string
	// takes are the added extensions whose protected objects the revision may take.
	takes []string
	// answers is true if the change acknowledges a deletion that waits.
	answers bool
	// helm is the added Helm release.
	helm helmrelease.Release
	// released is the rollback whose hold ends; empty for none.
	released string
	// ends is true if a later delete of the revision, by any user, deletes objects that it would
	// have kept before. leaves is true for the opposite.
	ends, leaves bool
	// hastens is true if an active revision succeeds sooner than before.
	hastens bool
}

// bypasses returns the rights to take protected objects from other extensions.
func (c change) bypasses() []authz.Right {
	var rights []authz.Right
	for _, extension := range c.takes {
		rights = append(rights, authz.Bypass(extension))
	}
	return rights
}

// collects reports whether garbage collection deletes a revision, because its owner does not exist.
// Garbage collection can delete anything in the host, but has no right to use another cluster. The
// user who added the owner needed that right (see own).
func (c change) collects(who user.Info) bool {
	// kube-controller-manager may run with or without a separate account for each controller.
	collector := []string{"system:serviceaccount:kube-system:generic-garbage-collector", "system:kube-controller-manager"}
	return c.kind == remove && len(c.revision.OwnerReferences) > 0 && slices.Contains(collector, who.GetName())
}

// brings reports whether the requester wrote the content of a revision that is applied.
func (c change) brings(revision *olm.ClusterExtensionRevision) bool {
	return c.kind == create && revision == c.revision && revision.Annotations[v1alpha1.RollbackOfAnnotation] == ""
}

// source returns the name of the stored revision that has the content of an applied revision.
func (c change) source(revision *olm.ClusterExtensionRevision) string {
	if of := revision.Annotations[v1alpha1.RollbackOfAnnotation]; of != "" && c.kind == create && revision == c.revision {
		return of
	}
	return revision.Name
}

func isRevisionResource(a admission.Attributes) bool {
	return a.GetResource().GroupResource() == v1alpha1.Resource("clusterextensionrevisions")
}

// changeOf returns the change that a request makes. ok is false if Penstock does nothing in the
// cluster because of it, such as for changes of metadata and for pausing.
func changeOf(a admission.Attributes, orphans bool) (c change, ok bool) {
	if a.GetSubresource() != "" || !isRevisionResource(a) {
		return change{}, false
	}
	updated, _ := a.GetObject().(*olm.ClusterExtensionRevision)
	old, _ := a.GetOldObject().(*olm.ClusterExtensionRevision)
	switch {
	case a.GetOperation() == admission.Create && updated != nil:
		c = change{kind: create, revision: updated, armed: rollsBack(updated), acknowledged: acknowledged(updated), takes: takes(updated), owners: updated.OwnerReferences,
			helm: newHelm(updated, nil), answers: len(answers(updated)) > 0, released: updated.Annotations[v1alpha1.ReleaseHoldAnnotation]}
	case a.GetOperation() == admission.Update && updated != nil && old != nil:
		c = changeOfUpdate(updated, old)
	case a.GetOperation() == admission.Delete && old != nil:
		orphaned := old.Spec.TeardownPolicy == olm.TeardownPolicyOrphan
		if old.DeletionTimestamp == nil || orphans && !orphaned {
			c = change{kind: remove, revision: old, orphans: orphans || orphaned}
		}
	}
	if c.kind == "" {
		return change{}, false
	}
	c.chain, _, _ = olm.ChainOf(c.revision.Name)
	return c, true
}

func changeOfUpdate(updated, old *olm.ClusterExtensionRevision) change {
	c := change{
		revision: updated, acknowledged: newly(acknowledged(updated), acknowledged(old)), takes: newly(takes(updated), takes(old)),
		answers: len(newly(answers(updated), answers(old))) > 0, helm: newHelm(updated, old),
	}
	if released := updated.Annotations[v1alpha1.ReleaseHoldAnnotation]; released != old.Annotations[v1alpha1.ReleaseHoldAnnotation] {
		c.released = released
	}
	if old.DeletionTimestamp == nil {
		c.owners = request.NewOwners(updated.OwnerReferences, old.OwnerReferences)
		c.ends = orphaning(old) && !orphaning(updated) || deletesAdopted(updated) && !deletesAdopted(old)
		c.leaves = orphaning(updated) && !orphaning(old) || deletesAdopted(old) && !deletesAdopted(updated)
		c.hastens = hastened(updated, old)
	}
	state, was := updated.Spec.LifecycleState, old.Spec.LifecycleState
	switch {
	case old.DeletionTimestamp != nil:
		c.kind, c.orphans = changeOfTeardown(updated, old)
	case state == olm.LifecycleStateArchived && was != olm.LifecycleStateArchived:
		c.kind = archive
	case was == olm.LifecycleStatePaused && state != was:
		c.kind, c.armed = unpause, rollsBack(updated)
		if old.Annotations[v1alpha1.ProposedAnnotation] == "true" {
			// Penstock proposed the revision without a user, so the rights for its owner were not
			// checked.
			c.owners = updated.OwnerReferences
		}
	case olmvalidation.ApprovesLater(updated, old):
		// The rights of the approver are checked now, and again when the approval takes effect.
		active := updated.DeepCopy()
		active.Spec.LifecycleState = olm.LifecycleStateActive
		c.kind, c.revision, c.armed, c.owners = unpause, active, rollsBack(active), active.OwnerReferences
	case rollsBack(updated) && (!rollsBack(old) || sooner(&updated.Spec, &old.Spec)):
		c.kind, c.armed = arm, true
	}
	switch {
	case c.kind == "" && len(c.owners) > 0:
		c.kind = own
	case c.kind == "" && (c.ends || c.leaves):
		c.kind = teardown
	case c.kind == "" && c.hastens:
		c.kind = hasten
	case c.kind == "" && (c.answers || len(c.acknowledged) > 0 || len(c.takes) > 0 || c.helm != (helmrelease.Release{})):
		c.kind = acknowledge
	case c.kind == "" && c.released != "":
		c.kind = release
	}
	return c
}

// changeOfTeardown returns the change of a revision that is being deleted. It is empty if the
// objects are still deleted or kept as in the delete request, which was checked.
//
// Removing the finalizer ends the teardown at once. Objects that were not released by then are in
// no revision any more, so Penstock deletes them.
func changeOfTeardown(updated, old *olm.ClusterExtensionRevision) (k kind, orphans bool) {
	orphaned, orphans := old.Spec.TeardownPolicy == olm.TeardownPolicyOrphan, updated.Spec.TeardownPolicy == olm.TeardownPolicyOrphan
	ended := slices.Contains(old.Finalizers, v1alpha1.TeardownFinalizer) && !slices.Contains(updated.Finalizers, v1alpha1.TeardownFinalizer)
	switch {
	case orphaned && (!orphans || ended):
		return remove, false
	case orphans && !orphaned:
		return remove, true
	default:
		return "", false
	}
}

// rollsBack reports whether Penstock rolls a revision back automatically when it fails. Penstock
// does so in its own name, without a check at that time.
func rollsBack(revision *olm.ClusterExtensionRevision) bool {
	return revision.Spec.OnFailure == olm.OnFailureRollback && revision.Annotations[v1alpha1.RollbackOfAnnotation] == "" && !succeeded(revision)
}

// sooner reports whether the rollout can fail with updated where it would not fail with old.
func sooner(updated, old *olm.ClusterExtensionRevisionSpec) bool {
	return updated.ProgressDeadlineMinutes < old.ProgressDeadlineMinutes || updated.SuccessDelaySeconds > old.SuccessDelaySeconds || !lists(old.MetricChecks, updated.MetricChecks)
}

func lists(list, names []string) bool {
	return !slices.ContainsFunc(names, func(name string) bool { return !slices.Contains(list, name) })
}

// hastened reports whether an active revision succeeds sooner than before. Its success archives the
// older revisions. For a paused revision, the rights of the user who resumes it are checked.
func hastened(updated, old *olm.ClusterExtensionRevision) bool {
	shorter := updated.Spec.SuccessDelaySeconds < old.Spec.SuccessDelaySeconds || !lists(updated.Spec.MetricChecks, old.Spec.MetricChecks)
	return updated.Spec.LifecycleState == olm.LifecycleStateActive && shorter && !succeeded(old)
}

func succeeded(revision *olm.ClusterExtensionRevision) bool {
	return meta.IsStatusConditionTrue(revision.Status.Conditions, v1alpha1.ConditionSucceeded)
}

// orphaning reports whether a plain delete of a revision keeps its objects, because of
// teardownPolicy or of a finalizer of garbage collection. It treats the finalizers as the endpoint
// does.
func orphaning(revision *olm.ClusterExtensionRevision) bool {
	for _, finalizer := range revision.Finalizers {
		switch finalizer {
		case metav1.FinalizerOrphanDependents:
			return true
		case metav1.FinalizerDeleteDependents:
			return revision.Spec.TeardownPolicy == olm.TeardownPolicyOrphan
		}
	}
	return revision.Spec.TeardownPolicy == olm.TeardownPolicyOrphan
}

// deletesAdopted reports whether a revision deletes objects that existed before the extension.
func deletesAdopted(revision *olm.ClusterExtensionRevision) bool {
	return revision.Spec.AdoptedTeardownPolicy == olm.TeardownPolicyDelete
}

// acknowledged returns the definitions that a revision may delete with their instances.
func acknowledged(revision *olm.ClusterExtensionRevision) []string {
	return listed(revision, v1alpha1.AllowCRDDeletionAnnotation)
}

// takes returns the extensions whose protected objects a revision may take.
func takes(revision *olm.ClusterExtensionRevision) []string {
	return listed(revision, v1alpha1.TakeOverFromAnnotation)
}

// answers returns the deletions that a revision acknowledges.
func answers(revision *olm.ClusterExtensionRevision) []string {
	return listed(revision, v1alpha1.AcknowledgeDeletionAnnotation)
}

func listed(revision *olm.ClusterExtensionRevision, annotation string) []string {
	var names []string
	for name := range strings.SplitSeq(revision.Annotations[annotation], ",") {
		if name = strings.TrimSpace(name); name != "" {
			names = append(names, name)
		}
	}
	return names
}

func newly(names, before []string) []string {
	known := map[string]bool{}
	for _, name := range before {
		known[name] = true
	}
	var added []string
	for _, name := range names {
		if !known[name] {
			known[name] = true
			added = append(added, name)
		}
	}
	return added
}
