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

type scope struct {
	*Controller
	// Chain holds the revisions with the extension's name. While Helm applies the extension, it
	// holds the deployed revisions of the release.
	maker.Chain
	object    *unstructured.Unstructured
	extension *extension.Extension
	catalogs  *inventory.Snapshot
	cluster   clusterIs
	// answer is the resolver's answer; nil if it was not asked or found nothing. upgrades holds
	// further versions of the catalogs.
	answer   *resolve.Resolution
	upgrades *upgrades.Upgrades
	// resolved is the bundle of the outcome, or nil.
	resolved *status.Bundle
	// unasked is true for a revision that no user just requested, and that needs no approval.
	unasked bool
	// later names the window that an approval for later waits for; empty for none.
	later  string
	byHelm bool
	// release holds the revisions of the Helm release, newest first, after they were read.
	release []helmapplier.Revision
}

func rules() maker.Rules {
	return maker.Rules{FieldManager: FieldManager, MadeOf: extension.MadeOfAnnotation, Stamp: extension.StampAnnotation, NeverApproved: neverApproved}
}

// stop ends a pass until an input changes.
func stop(result status.Result, message, why string) *maker.Outcome {
	return maker.Stop(maker.Reason(result), message, why)
}

// retry ends a pass, and retries it after a delay.
func retry(result status.Result, err error) *maker.Outcome {
	return maker.Retry(maker.Reason(result), err)
}

// settled ends a pass that leaves nothing to do.
func settled() *maker.Outcome { return stop(status.Settled, "", "") }

// awaited ends a pass: a watch causes the next one.
func awaited() *maker.Outcome { return maker.Stop(maker.Awaited, "", "") }

// resultOf converts the reason of an outcome to a reason of the status.
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
	return status.Result(outcome.Reason) // the other reasons are equal
}

// reconcile reconciles one extension:
//
//  1. It orphans revisions that must outlive the extension.
//  2. It reads the extension, and stops while that is unknown.
//  3. It finds out which program manages ClusterExtensions here.
//  4. It reads the existing revisions.
//  5. It creates the next revision, or finds the reason for none.
//  6. It writes the status.
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

// leave reports the remaining revisions of a deleted extension while a finalizer keeps it. The
// garbage collector deletes the revisions.
func (s *scope) leave(ctx context.Context) error {
	s.forget(s.Name)
	if stopped := s.findRevisions(ctx); stopped != nil && resultOf(stopped) != status.NameTaken {
		return stopped.Err // nil for an unreadable record: its change causes an event
	}
	return s.writeStatus(ctx, settled())
}

// advance creates the next revision, or returns the reason for creating none. Its steps:
//
//  1. findRevisions checks that the revisions with this name belong to the extension.
//  2. settleGate lets the feature gate select the engine or Helm.
//  3. choose resolves the bundle, or takes the image of the spec.
//  4. A rollback that holds, or a rollout in progress, ends the pass.
//  5. readValues reads the values of Secrets and ConfigMaps.
//  6. Package maker creates the revision or a proposal.
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

// writer returns the engine's writer, or Helm's if Helm applies the extension.
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

// takesOver reports whether the extension may now take over more objects than an unsuccessful
// revision. So the annotation for collision protection applies to a revision with a collision, and
// creates no further revision of installed content.
func takesOver(revision *olmv1alpha1.ClusterExtensionRevision, desired *desired) bool {
	strength := []olmv1alpha1.CollisionProtection{olmv1alpha1.CollisionProtectionPrevent, olmv1alpha1.CollisionProtectionIfNoController, olmv1alpha1.CollisionProtectionNone}
	has := cmp.Or(revision.Spec.CollisionProtection, olmv1alpha1.CollisionProtectionPrevent)
	return !maker.HasSucceeded(revision) && slices.Index(strength, desired.Collision) > slices.Index(strength, has)
}

// findRevisions reads the revisions of the chain. It stops if they have another owner.
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
			// The garbage collector deletes them, which causes an event.
			return stop(status.NameTaken, fmt.Sprintf("%s belongs to a ClusterExtension %s that is gone: waiting until this revision is deleted", revisions[i].Name, owner.Name), "")
		default:
			// The message does not name the owner, which may be another tenant's object.
			return stop(status.NameTaken, fmt.Sprintf("%s has another owner: use another name", revisions[i].Name), "")
		}
	}
	s.Revisions = revisions
	return nil
}

// installed returns the newest revision that was rolled out and still has its objects, or nil.
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
