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

// kind of a change that makes Penstock do something in the cluster.
type kind string

const (
	// create adds a revision, a rollback included.
	create kind = "create"
	// unpause lets a paused revision go on.
	unpause kind = "unpause"
	// archive gives a revision up.
	archive kind = "archive"
	// remove deletes one.
	remove kind = "delete"
	// arm has a revision rolled back when its rollout fails.
	arm kind = "arm"
	// acknowledge permits the deletion of definitions that have instances, or one that
	// was held back because it is large.
	acknowledge kind = "acknowledge"
	// release ends the hold of a rollback: the owner of the extension goes on.
	release kind = "release"
	// teardown changes what becomes of the objects of a revision when it is deleted.
	teardown kind = "teardown"
	// hasten has a revision succeed sooner, and with that what it replaces deleted.
	hasten kind = "hasten"
	// own gives a revision an owner: when that one is gone, or never was, garbage
	// collection deletes the revision in a name of its own, which may delete anything.
	own kind = "own"
)

// change is the change that a request asks for.
type change struct {
	kind kind
	// revision as it will be; for a delete, as it is.
	revision *olm.ClusterExtensionRevision
	// chain that the revision belongs to.
	chain string
	// armed is true when Penstock is to roll back by itself, from now on or sooner
	// than before.
	armed bool
	// orphans is true when the objects are left behind.
	orphans bool
	// owners are those that the revision has from now on.
	owners []metav1.OwnerReference
	// acknowledged are the CustomResourceDefinitions whose instances may be lost
	// from now on.
	acknowledged []string
	// takes are the extensions whose protected objects the revision may take from now on.
	takes []string
	// answers is true when a deletion that was held back goes on.
	answers bool
	// helm is the Helm release that the revision names from now on.
	helm helmrelease.Release
	// released is the rollback whose hold ends, empty for none.
	released string
	// ends is true when a delete of the revision, by whomever, deletes what it would have
	// left before, and leaves is true for the opposite.
	ends, leaves bool
	// hastens is true when a revision that is rolled out counts as successful where it
	// did not before.
	hastens bool
}

// bypasses are the rights that it takes to take protected objects from other extensions.
func (c change) bypasses() []authz.Right {
	var rights []authz.Right
	for _, extension := range c.takes {
		rights = append(rights, authz.Bypass(extension))
	}
	return rights
}

// collects reports whether garbage collection deletes a revision whose owner is gone. It may delete
// anything in the host, and nobody gives it the right to use another cluster; the user who gave the
// revision its owner was asked for that right (see own).
func (c change) collects(who user.Info) bool {
	// With accounts of its own for each controller, and without.
	collector := []string{"system:serviceaccount:kube-system:generic-garbage-collector", "system:kube-controller-manager"}
	return c.kind == remove && len(c.revision.OwnerReferences) > 0 && slices.Contains(collector, who.GetName())
}

// brings reports whether the requester wrote what is in a revision that is written.
func (c change) brings(revision *olm.ClusterExtensionRevision) bool {
	return c.kind == create && revision == c.revision && revision.Annotations[v1alpha1.RollbackOfAnnotation] == ""
}

// source names the stored revision that has the content of one that is written.
func (c change) source(revision *olm.ClusterExtensionRevision) string {
	if of := revision.Annotations[v1alpha1.RollbackOfAnnotation]; of != "" && c.kind == create && revision == c.revision {
		return of
	}
	return revision.Name
}

func isOfRevisions(a admission.Attributes) bool {
	return a.GetResource().GroupResource() == v1alpha1.Resource("clusterextensionrevisions")
}

// changeOf returns what a request asks for; ok is false when Penstock does nothing
// in the cluster because of it: writes of metadata, pausing.
func changeOf(a admission.Attributes, orphans bool) (c change, ok bool) {
	if a.GetSubresource() != "" || !isOfRevisions(a) {
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
			// Nobody was asked about the owner when Penstock proposed it.
			c.owners = updated.OwnerReferences
		}
	case olmvalidation.ApprovesLater(updated, old):
		// The approver is asked now, and again when it takes effect.
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

// changeOfTeardown returns what becomes of the objects of a revision that is being
// deleted, empty when it is what the user who deleted it was asked about: to delete them, or
// to let go of them.
//
// Taking the finalizer off ends the teardown where it stands: what it has not let go
// of by then is in no revision any more, and what is in none is deleted.
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

// rollsBack reports whether Penstock rolls a revision back by itself when it fails. It does so in
// its own name: nobody is asked then.
func rollsBack(revision *olm.ClusterExtensionRevision) bool {
	return revision.Spec.OnFailure == olm.OnFailureRollback && revision.Annotations[v1alpha1.RollbackOfAnnotation] == "" && !succeeded(revision)
}

// sooner reports whether a rollout counts as failed where it did not before.
func sooner(updated, old *olm.ClusterExtensionRevisionSpec) bool {
	return updated.ProgressDeadlineMinutes < old.ProgressDeadlineMinutes || updated.SuccessDelaySeconds > old.SuccessDelaySeconds || !lists(old.MetricChecks, updated.MetricChecks)
}

// lists reports whether a list has all names.
func lists(list, names []string) bool {
	return !slices.ContainsFunc(names, func(name string) bool { return !slices.Contains(list, name) })
}

// hastened reports whether a revision counts as successful where it did not before: from then on
// the older ones are archived. One that is paused comes to that when somebody lets it go on, who is
// asked then.
func hastened(updated, old *olm.ClusterExtensionRevision) bool {
	shorter := updated.Spec.SuccessDelaySeconds < old.Spec.SuccessDelaySeconds || !lists(updated.Spec.MetricChecks, old.Spec.MetricChecks)
	return updated.Spec.LifecycleState == olm.LifecycleStateActive && shorter && !succeeded(old)
}

func succeeded(revision *olm.ClusterExtensionRevision) bool {
	return meta.IsStatusConditionTrue(revision.Status.Conditions, v1alpha1.ConditionSucceeded)
}

// orphaning reports whether a delete of a revision that says nothing else leaves its objects: its
// policy does, or the finalizer of garbage collection, as the endpoint takes it.
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

// deletesAdopted reports whether objects that existed before the extension go with the others.
func deletesAdopted(revision *olm.ClusterExtensionRevision) bool {
	return revision.Spec.AdoptedTeardownPolicy == olm.TeardownPolicyDelete
}

// acknowledged returns the definitions that a revision lets go.
func acknowledged(revision *olm.ClusterExtensionRevision) []string {
	return listed(revision, v1alpha1.AllowCRDDeletionAnnotation)
}

// takes returns the extensions whose protected objects a revision may take.
func takes(revision *olm.ClusterExtensionRevision) []string {
	return listed(revision, v1alpha1.TakeOverFromAnnotation)
}

// answers returns the deletions that a revision lets go on.
func answers(revision *olm.ClusterExtensionRevision) []string {
	return listed(revision, v1alpha1.AcknowledgeDeletionAnnotation)
}

// listed returns the names in an annotation.
func listed(revision *olm.ClusterExtensionRevision, annotation string) []string {
	var names []string
	for name := range strings.SplitSeq(revision.Annotations[annotation], ",") {
		if name = strings.TrimSpace(name); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// newly returns the names that are not in before.
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
