package extension

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/catalog/inventory"
	"github.com/penstock-project/penstock/pkg/controller/maker"
	"github.com/penstock-project/penstock/pkg/extension"
	"github.com/penstock-project/penstock/pkg/extension/helmapplier"
	"github.com/penstock-project/penstock/pkg/extension/status"
	"github.com/penstock-project/penstock/pkg/extension/upgrades"
	"github.com/penstock-project/penstock/pkg/resolve"
)

// scope is one pass over one extension.
type scope struct {
	*Controller
	// Chain has the revisions of the extension's name; those of its release that were deployed
	// while it is applied by Helm.
	maker.Chain
	object    *unstructured.Unstructured
	extension *extension.Extension
	catalogs  *inventory.Snapshot
	cluster   clusterIs
	// answer is the resolver's answer, nil when it was not asked or found nothing, and upgrades has
	// further versions of the catalogs.
	answer   *resolve.Resolution
	upgrades *upgrades.Upgrades
	// resolved is the bundle that the outcome of the pass is about, nil for none.
	resolved *status.Bundle
	// unasked is true for a revision that nobody asked for just now, and that needs no approval.
	unasked bool
	// later says which window an approval for later waits for, empty for none.
	later string
	// byHelm is true when the extension is applied by Helm.
	byHelm bool
	// release are the revisions of the Helm release, newest first, when they were read.
	release []helmapplier.Revision
}

// rules returns the rules for revisions of extensions.
func rules() maker.Rules {
	return maker.Rules{FieldManager: FieldManager, MadeOf: extension.MadeOfAnnotation, Stamp: extension.StampAnnotation, NeverApproved: neverApproved}
}

// stop ends a pass until something changes.
func stop(result status.Result, message, why string) *maker.Outcome {
	return maker.Stop(maker.Reason(result), message, why)
}

// retry ends a pass until a while later.
func retry(result status.Result, err error) *maker.Outcome {
	return maker.Retry(maker.Reason(result), err)
}

// settled ends a pass after which nothing is left to do.
func settled() *maker.Outcome { return stop(status.Settled, "", "") }

// awaited ends a pass: a watch brings the next one.
func awaited() *maker.Outcome { return maker.Stop(maker.Awaited, "", "") }

// resultOf is the reason of an outcome in words of the status.
func resultOf(outcome *maker.Outcome) status.Result {
	switch outcome.Reason {
	case maker.Current, maker.Proposed:
		return status.Settled
	case maker.Awaited, maker.Rendering, maker.Outdated:
		return status.Pending
	case maker.Failed, maker.Unreadable:
		return status.Failed
	case maker.Refused:
		return status.Refused
	case maker.Invalid:
		return status.InvalidManifests
	}
	return status.Result(outcome.Reason) // the other words are the same
}

// reconcile brings one extension up to date:
//
//  1. Revisions that are to stay without it lose it as their owner.
//  2. The spec. Nothing is done while that is not known.
//  3. The program that writes ClusterExtensions here.
//  4. The revisions that there are.
//  5. The next revision, or why there is none.
//  6. The status.
func (c *Controller) reconcile(ctx context.Context, name string) error {
	if err := c.orphan(ctx, name); err != nil {
		return err
	}
	object, known := c.find(name)
	if !known {
		return nil
	}
	if object == nil {
		c.forget(name)
		c.forgetLeftAlone(name)
		c.Looked(&extension.Extension{ObjectMeta: metav1.ObjectMeta{Name: name}})
		return nil
	}
	asked, err := extension.From(object)
	if err != nil {
		return err
	}
	c.Looked(asked)
	switch c.other() {
	case otherUnknown:
		return nil
	case otherThere:
		c.reportLeftAlone(object)
		return nil
	}
	c.forgetLeftAlone(name)
	s := &scope{Controller: c, Chain: maker.Chain{Store: c.Store, Rules: rules(), Name: name}, object: object, extension: asked, catalogs: c.Inventory.Snapshot()}
	if asked.DeletionTimestamp != nil {
		return s.leave(ctx)
	}
	s.cluster = s.clusterVersion(ctx)
	outcome := s.advance(ctx)
	if ctx.Err() == nil {
		c.waitFor(name, s.catalogs, waitsForCatalogs(outcome))
	}
	return outcome.End(ctx, name, func() error { return s.writeStatus(ctx, outcome) })
}

// leave says what is left of an extension that is being deleted, for as long as a finalizer
// keeps it. Deleting its revisions is for the collector.
func (s *scope) leave(ctx context.Context) error {
	s.forget(s.Name)
	if stopped := s.findRevisions(ctx); stopped != nil && resultOf(stopped) != status.NameTaken {
		return stopped.Err // nil for a record that cannot be read: its change is an event
	}
	return s.writeStatus(ctx, settled())
}

// advance makes the next revision, or returns the reason for making none. Its steps:
//
//  1. findRevisions: the revisions of this name belong to the extension.
//  2. settleGate: the feature gate decides whether the engine or Helm applies them.
//  3. choose: resolve the bundle, or take the image of the spec.
//  4. A rollback that holds, or a rollout under way, ends the pass.
//  5. readValues: read the values of Secrets and ConfigMaps.
//  6. Package maker makes the revision, or a proposal.
//  7. An approval for later resumes its proposal.
func (s *scope) advance(ctx context.Context) *maker.Outcome {
	if stopped := s.findRevisions(ctx); stopped != nil {
		return stopped
	}
	if stopped := s.settleGate(ctx); stopped != nil {
		return stopped
	}
	desired, unresolved := s.choose()
	if desired == nil {
		return unresolved
	}
	s.resolved = desired.bundle
	if stopped := s.mayAdvance(ctx); stopped != nil {
		return stopped
	}
	if stopped := s.readValues(ctx, desired); stopped != nil {
		return stopped
	}
	outcome := maker.Make(ctx, &s.Chain, desired.digest(), s.changesTeardown(), making{s, desired}, s.writer(desired))
	outcome = desired.masked(outcome)
	if outcome.Reason == maker.Proposed {
		if later := s.approvedForLater(ctx, desired.digest()); later != nil {
			outcome = later
		}
	}
	if unresolved != nil && resultOf(outcome) == status.Settled {
		s.resolved = nil
		return unresolved
	}
	return outcome
}

// writer is the engine's, or Helm's when that applies the extension.
func (s *scope) writer(desired *desired) maker.Writer[*content] {
	if s.byHelm {
		return helmWriter{making{s, desired}}
	}
	return engineWriter{making{s, desired}}
}

// making is the front end of package maker for one pass.
type making struct {
	*scope
	desired *desired
}

// Render implements maker.FrontEnd.
func (m making) Render(ctx context.Context, identity maker.Identity) (made *content, same bool, stopped *maker.Outcome) {
	if made, stopped = m.render(ctx, identity, m.desired); stopped != nil {
		return nil, false, stopped
	}
	if stopped := m.approvedContent(made); stopped != nil {
		return nil, false, stopped
	}
	if stopped := m.judge(ctx, identity, made); stopped != nil {
		return nil, false, stopped
	}
	may, stopped := m.mayCompare(ctx, identity, made)
	newest := m.Newest()
	same = stopped == nil && newest != nil && may && made.isIn(newest) && !takesOver(newest, m.desired) && (m.byHelm || yieldsAs(newest, m.desired))
	if stopped == nil && !same {
		stopped = m.lacks(ctx, identity, made)
	}
	return made, same, stopped
}

// takesOver is true when the extension may take over more objects than a revision that has not succeeded.
// So the annotation for collision protection counts for a revision that is held up by a collision, and makes no
// further revision of what is installed.
func takesOver(revision *olmv1alpha1.ClusterExtensionRevision, desired *desired) bool {
	strength := []olmv1alpha1.CollisionProtection{olmv1alpha1.CollisionProtectionPrevent, olmv1alpha1.CollisionProtectionIfNoController, olmv1alpha1.CollisionProtectionNone}
	has := cmp.Or(revision.Spec.CollisionProtection, olmv1alpha1.CollisionProtectionPrevent)
	return !maker.HasSucceeded(revision) && slices.Index(strength, desired.Collision) > slices.Index(strength, has)
}

// findRevisions reads the revisions of the chain of this name. Those of somebody else are not
// touched.
func (s *scope) findRevisions(ctx context.Context) *maker.Outcome {
	revisions, err := maker.List(ctx, s.Reader, s.Name)
	if err != nil {
		return maker.Unread(err)
	}
	for i := range revisions {
		owner := metav1.GetControllerOf(&revisions[i])
		switch {
		case owner == nil || owner.UID == s.extension.UID:
		case owner.Kind == extension.Kind.Kind && owner.Name == s.extension.Name:
			// The collector takes them. Their going is an event.
			return stop(status.NameTaken, fmt.Sprintf("%s belongs to a ClusterExtension %s that is gone: waiting until this revision is deleted", revisions[i].Name, owner.Name), "")
		default:
			// Whose it is is not said: that may be another tenant's.
			return stop(status.NameTaken, fmt.Sprintf("%s has another owner: use another name", revisions[i].Name), "")
		}
	}
	s.Revisions = revisions
	return nil
}

// installed is the newest revision that was rolled out and is there, nil for none.
func (s *scope) installed() *olmv1alpha1.ClusterExtensionRevision {
	for i := range s.Revisions {
		one := &s.Revisions[i]
		if one.DeletionTimestamp == nil && one.Spec.LifecycleState != olmv1alpha1.LifecycleStateArchived && maker.HasSucceeded(one) {
			return one
		}
	}
	return nil
}

// waitsForCatalogs reports whether any change of catalogs may end an outcome.
func waitsForCatalogs(outcome *maker.Outcome) bool {
	switch resultOf(outcome) {
	case status.Pending, status.Unresolved, status.CatalogUnavailable, status.NoCatalog:
		return true
	default:
		return false
	}
}
