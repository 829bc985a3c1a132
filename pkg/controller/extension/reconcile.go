package extension

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/klog/v2"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/catalog/inventory"
	"github.com/penstock-project/penstock/pkg/controller/bychain"
	"github.com/penstock-project/penstock/pkg/extension"
	"github.com/penstock-project/penstock/pkg/extension/helmapplier"
	"github.com/penstock-project/penstock/pkg/extension/status"
	"github.com/penstock-project/penstock/pkg/extension/upgrades"
	"github.com/penstock-project/penstock/pkg/resolve"
)

// visit is one pass over one extension.
type visit struct {
	*Controller
	object    *unstructured.Unstructured
	extension *extension.Extension
	// revisions are those of the chain of its name, newest first.
	revisions []olmv1alpha1.ClusterExtensionRevision
	catalogs  *inventory.Snapshot
	// answer is what the catalogs say, nil when they were not asked or have nothing, and
	// upgrades is what they have besides.
	answer   *resolve.Resolution
	upgrades *upgrades.Upgrades
	// byHelm is true when the extension is applied by Helm. Then the revisions are those of
	// its release that were deployed.
	byHelm bool
	// release are the revisions of the Helm release, newest first, when they were read.
	release []helmapplier.Revision
}

// halt is why a pass made no revision.
type halt struct {
	status.Outcome
	// again asks for another pass although nothing has changed.
	again bool
	// quiet leaves the status as it is: what is to be said comes with the next pass, which a
	// watch brings.
	quiet bool
	// rendering is true while something is pulled or rendered: the result brings the next pass.
	rendering bool
	// err is told in the log; nil for what the status says alone.
	err error
}

// stop halts a pass until something changes.
func stop(result status.Result, message, why string) *halt {
	return &halt{Outcome: status.Outcome{Result: result, Message: message, Why: why}}
}

// retry halts a pass until a while later.
func retry(result status.Result, err error) *halt {
	return &halt{Outcome: status.Outcome{Result: result, Message: err.Error()}, again: true, err: err}
}

// outdated halts a pass that knew less than there is.
func outdated() *halt {
	return &halt{Outcome: status.Outcome{Result: status.Pending}, again: true, quiet: true}
}

// settled is a pass after which nothing is left to do.
func settled() *halt { return stop(status.Settled, "", "") }

// reconcile brings one extension up to date:
//
//  1. Revisions that are to stay without it lose it as their owner.
//  2. What is asked for. Nothing is done while that is not known.
//  3. Who writes ClusterExtensions here.
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
		c.wait(name, false)
		c.forgetLeftAlone(name)
		c.rendered.forget(name)
		c.jobs.Forget(name)
		return nil
	}
	asked, err := extension.From(object)
	if err != nil {
		return err
	}
	switch c.other() {
	case otherUnknown:
		return nil
	case otherThere:
		c.reportLeftAlone(object)
		return nil
	}
	c.forgetLeftAlone(name)
	v := &visit{Controller: c, object: object, extension: asked, catalogs: c.Inventory.Snapshot()}
	if asked.DeletionTimestamp != nil {
		return v.leave(ctx)
	}
	outcome := v.advance(ctx)
	if ctx.Err() != nil {
		return nil
	}
	c.waitFor(name, v.catalogs, outcome.waitsForCatalogs())
	if outcome.err != nil {
		klog.FromContext(ctx).Error(outcome.err, "No revision was made", "extension", name, "result", outcome.Result)
	}
	if !outcome.quiet {
		if err := v.writeStatus(ctx, outcome.Outcome); err != nil {
			return err
		}
	}
	switch {
	case outcome.again:
		return errAgain
	case outcome.rendering:
		return errRendering
	}
	return nil
}

// leave says what is left of an extension that is being deleted, for as long as a finalizer
// keeps it. Deleting its revisions is for the collector.
func (v *visit) leave(ctx context.Context) error {
	v.wait(v.extension.Name, false)
	v.rendered.forget(v.extension.Name)
	v.jobs.Forget(v.extension.Name)
	if stopped := v.findRevisions(ctx); stopped != nil && stopped.Result != status.NameTaken {
		return stopped.err // nil for a record that cannot be read: its change is an event
	}
	return v.writeStatus(ctx, status.Outcome{Result: status.Settled})
}

// advance makes the next revision, or says why it does not:
//
//  1. The revisions of its name are its own.
//  2. They are rolled out by the engine, or were handed to Helm, as the feature gate says.
//  3. Which bundle, or other image.
//  4. Nothing keeps it from making a revision: no rollback, no rollout that is on its way.
//  5. The newest revision is not made of the same.
//  6. In whose name.
//  7. The objects, judged.
//  8. The newest revision has not the same content, or may not take over what the wish takes over.
//  9. The next revision, or a proposal; of the release, when Helm applies it.
func (v *visit) advance(ctx context.Context) *halt {
	if stopped := v.findRevisions(ctx); stopped != nil {
		return stopped
	}
	if stopped := v.settleGate(ctx); stopped != nil {
		return stopped
	}
	wish, unresolved := v.choose()
	if wish == nil {
		return unresolved
	}
	if stopped := v.mayAdvance(ctx); stopped != nil {
		return stopped.about(wish)
	}
	stopped := v.make(ctx, wish)
	if unresolved != nil && stopped.Result == status.Settled {
		return unresolved
	}
	return stopped.about(wish)
}

// make is steps 5 to 9.
func (v *visit) make(ctx context.Context, wish *wish) *halt {
	if newest := v.newest(); newest != nil && newest.Annotations[extension.MadeOfAnnotation] == wish.digest() && !v.changesTeardown(newest) {
		return v.keep(ctx, newest, wish)
	}
	name, stopped := v.inWhoseName(ctx)
	if stopped != nil {
		return stopped
	}
	if name.as == nil && v.byHelm {
		return notProposed(name)
	}
	if name.as == nil {
		if stopped := v.isProposed(ctx, name, wish); stopped != nil {
			return stopped
		}
		if stopped := v.mayPropose(ctx, name.author); stopped != nil {
			return stopped
		}
	}
	content, stopped := v.render(ctx, name, wish)
	if stopped != nil {
		return stopped
	}
	if stopped := v.judge(ctx, name, content); stopped != nil {
		return stopped
	}
	may, stopped := v.mayCompare(ctx, name, content)
	if stopped != nil {
		return stopped
	}
	if newest := v.newest(); newest != nil && may && content.isIn(newest) && !takesOver(newest, wish) && (v.byHelm || yieldsAs(newest, wish)) {
		v.rendered.forget(v.extension.Name)
		return v.keep(ctx, newest, wish.of(content))
	}
	if v.byHelm {
		return v.apply(ctx, name, wish.of(content), content)
	}
	return v.create(ctx, name, wish.of(content), content)
}

// takesOver tells whether a wish may take over more objects than a revision that has not succeeded. So the
// annotation for collision protection counts for a revision that is held up by a collision, and makes no
// further revision of what is installed.
func takesOver(revision *olmv1alpha1.ClusterExtensionRevision, wish *wish) bool {
	strength := []olmv1alpha1.CollisionProtection{olmv1alpha1.CollisionProtectionPrevent, olmv1alpha1.CollisionProtectionIfNoController, olmv1alpha1.CollisionProtectionNone}
	has := cmp.Or(revision.Spec.CollisionProtection, olmv1alpha1.CollisionProtectionPrevent)
	return !hasSucceeded(revision) && slices.Index(strength, wish.Collision) > slices.Index(strength, has)
}

// findRevisions reads the revisions of the chain of this name. Those of somebody else are not
// touched.
func (v *visit) findRevisions(ctx context.Context) *halt {
	revisions, err := bychain.List(ctx, v.Reader, v.extension.Name)
	if err != nil {
		var unreadable *bychain.UnreadableError
		if errors.As(err, &unreadable) {
			return stop(status.Failed, err.Error(), "")
		}
		return retry(status.Failed, fmt.Errorf("reading the revisions of %s: %w", v.extension.Name, err))
	}
	for i := range revisions {
		owner := metav1.GetControllerOf(&revisions[i])
		switch {
		case owner == nil || owner.UID == v.extension.UID:
		case owner.Kind == extension.Kind.Kind && owner.Name == v.extension.Name:
			// The collector takes them. Their going is an event.
			return stop(status.NameTaken, fmt.Sprintf("%s belongs to a ClusterExtension %s that is gone: waiting until this revision is deleted", revisions[i].Name, owner.Name), "")
		default:
			// Whose it is is not said: that may be another tenant's.
			return stop(status.NameTaken, fmt.Sprintf("%s has another owner: use another name", revisions[i].Name), "")
		}
	}
	v.revisions = revisions
	return nil
}

// newest is the newest revision that is to be rolled out, or was: what was proposed and never
// approved, and what was given up, are none. It is nil when there is none.
func (v *visit) newest() *olmv1alpha1.ClusterExtensionRevision {
	for i := range v.revisions {
		one := &v.revisions[i]
		if neverApproved(one) {
			continue
		}
		if one.DeletionTimestamp != nil || one.Spec.LifecycleState == olmv1alpha1.LifecycleStateArchived {
			return nil
		}
		return one
	}
	return nil
}

// installed is the newest revision that was rolled out and is there, nil for none.
func (v *visit) installed() *olmv1alpha1.ClusterExtensionRevision {
	for i := range v.revisions {
		one := &v.revisions[i]
		if one.DeletionTimestamp == nil && one.Spec.LifecycleState != olmv1alpha1.LifecycleStateArchived && hasSucceeded(one) {
			return one
		}
	}
	return nil
}

func hasSucceeded(revision *olmv1alpha1.ClusterExtensionRevision) bool {
	return meta.IsStatusConditionTrue(revision.Status.Conditions, olmv1alpha1.ConditionSucceeded)
}

func isRollback(revision *olmv1alpha1.ClusterExtensionRevision) bool {
	return revision.Annotations[olmv1alpha1.RollbackOfAnnotation] != ""
}

// about says which bundle an outcome is about.
func (h *halt) about(wish *wish) *halt {
	h.Bundle = wish.bundle
	return h
}

// waitsForCatalogs is whether any change of catalogs may end it.
func (h *halt) waitsForCatalogs() bool {
	switch h.Result {
	case status.Pending, status.Unresolved, status.CatalogUnavailable, status.NoCatalog:
		return true
	default:
		return false
	}
}
