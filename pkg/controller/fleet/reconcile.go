package fleet

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/extension/author"
	"github.com/penstock-project/penstock/pkg/extensionrollout"
	"github.com/penstock-project/penstock/pkg/extensionset"
	"github.com/penstock-project/penstock/pkg/fleet"
	"github.com/penstock-project/penstock/pkg/objectwatch"
)

// finalizer keeps a set until its children are released or deleted.
const finalizer = "penstock.dev/children"

type pass struct {
	*Controller
	object *unstructured.Unstructured
	set    *extensionset.Set
	stamp  *author.Stamp
	// last is the highest number of a rollout with this set name, including rollouts of a deleted
	// set.
	last     int64
	digest   string
	selector labels.Selector
	// clusters holds the Secrets of the selected clusters, by name.
	clusters map[string]*corev1.Secret
	rollouts []*olmv1alpha1.ClusterExtensionRollout
	// revisions holds the revisions of children that this pass has read, by cluster.
	revisions  map[string][]olmv1alpha1.ClusterExtensionRevision
	places     map[string]map[string]place
	exceptions map[string]extensionset.Exception
	// deleting is the reason why a deleted set still exists.
	deleting string
	// stopped and stoppedMessage explain why no rollout is proposed; empty if one may be proposed.
	stopped, stoppedMessage string
	// refused is the error of the host for a write that it refused.
	refused error
	// waits is true while a rollout needs answers that are missing.
	waits bool
}

// errUnknown ends a pass that runs before the watches have synced. The watches then cause the next
// pass.
var errUnknown = errors.New("not known yet")

// reconcile reconciles one set:
//
//  1. It reads the set, its author, the selected clusters and its rollouts.
//  2. If the set is deleted, its children become independent extensions, or are deleted.
//  3. It advances the newest rollout: it stores the progress, then writes the children.
//  4. It deletes the children of clusters that left, or lets users delete them.
//  5. It proposes the next rollout if clusters would see a change that is not approved.
//  6. It writes the status.
func (c *Controller) reconcile(ctx context.Context, name string) error {
	known, err := c.read(name)
	if err == nil {
		err = c.refresh(ctx, name, known)
	}
	if errors.Is(err, errUnknown) {
		return nil
	}
	return err
}

func (c *Controller) refresh(ctx context.Context, name string, known *facts) error {
	p, err := c.begin(name, known)
	if err != nil || p == nil {
		return err
	}
	// After a start, the extensions become known later, and no watch of this controller reports
	// that.
	if _, known := c.Extensions.Find(name); !known {
		c.queue.AddAfter(name, lookEvery)
	}
	var done bool
	if p.set.DeletionTimestamp != nil {
		done, err = p.release(ctx)
	} else if done, err = p.keep(ctx); err == nil && !done {
		err = p.reconcileSet(ctx)
	}
	if done {
		return err
	}
	if apierrors.IsForbidden(err) || apierrors.IsInvalid(err) {
		p.refused = err
	} else if err != nil {
		return err
	}
	return errors.Join(err, p.writeStatus(ctx))
}

func (p *pass) reconcileSet(ctx context.Context) error {
	if active := p.newest(); active != nil && !active.Status.Ended {
		if err := p.advance(ctx, active); err != nil {
			return err
		}
	} else {
		p.noteChanging(p.set.Name, 0)
	}
	if err := p.releaseClusters(ctx); err != nil {
		return err
	}
	return p.propose(ctx)
}

type facts struct {
	set      *unstructured.Unstructured
	secrets  []*corev1.Secret
	rollouts []*olmv1alpha1.ClusterExtensionRollout
}

// read returns the facts of a set, or errUnknown before the watches have synced. An unsynced watch
// must not look like an empty list.
func (c *Controller) read(name string) (*facts, error) {
	watches := c.watches()
	if watches == nil {
		return nil, errUnknown
	}
	set, known := objectwatch.Find[*unstructured.Unstructured](watches.sets, name)
	secrets, err := watches.secrets.List()
	if !known || err != nil || !watches.rollouts.HasSynced() {
		return nil, errUnknown
	}
	return &facts{set, secrets, objectwatch.All[*olmv1alpha1.ClusterExtensionRollout](watches.rollouts)}, nil
}

// begin reads a set. It returns nil if the set does not exist.
func (c *Controller) begin(name string, known *facts) (*pass, error) {
	object := known.set
	if object == nil {
		c.forget(name)
		return nil, nil
	}
	set, err := extensionset.From(object)
	if err != nil {
		return nil, err
	}
	p := &pass{Controller: c, object: object, set: set, clusters: map[string]*corev1.Secret{}, exceptions: map[string]extensionset.Exception{}, revisions: map[string][]olmv1alpha1.ClusterExtensionRevision{}, places: map[string]map[string]place{}}
	p.selector, err = metav1.LabelSelectorAsSelector(&set.Spec.ClusterSelector)
	if err != nil {
		return nil, fmt.Errorf("reading the selector of ClusterExtensionSet %s: %w", name, err)
	}
	for _, secret := range known.secrets {
		if p.selector.Matches(labels.Set(secret.Labels)) {
			p.clusters[secret.Name] = secret
		}
	}
	for i, override := range set.Spec.Overrides {
		for _, cluster := range override.ClusterNames {
			if p.clusters[cluster] == nil {
				p.except(cluster, reasonNotSelected, fmt.Sprintf("overrides[%d] names it, and the set does not select it", i))
			}
		}
	}
	for _, one := range known.rollouts {
		if one.Spec.Set.Name != name {
			continue
		}
		p.last = max(p.last, number(one.Name))
		if one.Spec.Set.UID == string(set.UID) {
			p.rollouts = append(p.rollouts, one)
		}
	}
	slices.SortFunc(p.rollouts, func(a, b *olmv1alpha1.ClusterExtensionRollout) int {
		return cmp.Or(cmp.Compare(number(a.Name), number(b.Name)), cmp.Compare(a.Name, b.Name))
	})
	if p.stamp, err = extensionset.Author().Verify(c.Key, object); err != nil {
		p.stopped, p.stoppedMessage = reasonAuthorUnknown, fmt.Sprintf("the author of the set, as it is now, is not known: %s", err)
	} else if count := len(p.clusters); count > extensionset.MaxClusters {
		p.stopped, p.stoppedMessage = reasonTooManyClusters, fmt.Sprintf("spec.clusterSelector chooses %d clusters, and a set has at most %d: divide them among several sets", count, extensionset.MaxClusters)
	}
	p.digest = specDigest(set)
	return p, nil
}

// specDigest returns the digest of a set's spec, without the fields that change no rollout.
func specDigest(set *extensionset.Set) string {
	spec := set.Spec
	spec.Paused, spec.RolloutHistoryLimit, spec.RemovalPolicy, spec.TeardownPolicy = false, nil, "", ""
	content, err := json.Marshal(spec)
	if err != nil {
		return "" // unreachable: the set was decoded from JSON
	}
	sum := sha256.Sum256(content)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// isCurrent reports whether a rollout has the present spec and author of the set.
func (p *pass) isCurrent(rollout *olmv1alpha1.ClusterExtensionRollout) bool {
	return p.stamp != nil && rollout.Spec.Set.Digest == p.digest && rollout.Spec.RequestedBy == p.stamp.User
}

func (p *pass) newest() *olmv1alpha1.ClusterExtensionRollout {
	if len(p.rollouts) == 0 {
		return nil
	}
	return p.rollouts[len(p.rollouts)-1]
}

// keep adds the finalizer, and reports whether that write causes another pass.
func (p *pass) keep(ctx context.Context) (bool, error) {
	if slices.Contains(p.object.GetFinalizers(), finalizer) {
		return false, nil
	}
	changed := p.object.DeepCopy()
	changed.SetFinalizers(append(changed.GetFinalizers(), finalizer))
	_, err := p.Host.Resource(extensionset.Resource).Update(ctx, changed, metav1.UpdateOptions{FieldManager: FieldManager})
	if err != nil {
		return false, fmt.Errorf("adding the finalizer to ClusterExtensionSet %s: %w", p.set.Name, err)
	}
	return true, nil
}

// begun returns the clusters that a step lets begin.
func begun(before, after fleet.Progress) []string {
	var names []string
	for name, at := range after.Clusters {
		if at.State == fleet.Updating && at.Attempt != before.Clusters[name].Attempt {
			names = append(names, name)
		}
	}
	return names
}

// advance advances a rollout:
//
//  1. It reads the clusters. A cluster begins only if it answers in this pass.
//  2. It stores the next progress.
//  3. It writes the children of changing clusters.
func (p *pass) advance(ctx context.Context, rollout *olmv1alpha1.ClusterExtensionRollout) error {
	plan := extensionrollout.Plan(&rollout.Spec)
	progress := extensionrollout.Progress(&rollout.Status)
	situation, err := p.situation(ctx, rollout, plan, progress)
	if err != nil {
		return err
	}
	next, report := plan.Step(progress, situation)
	for looked := []string{}; ; {
		anew := slices.DeleteFunc(begun(progress, next), func(name string) bool { return slices.Contains(looked, name) })
		if len(anew) == 0 {
			break
		}
		p.readClusters(ctx, anew, 0)
		looked = append(looked, anew...)
		if situation, err = p.situation(ctx, rollout, plan, progress); err != nil {
			return err
		}
		next, report = plan.Step(progress, situation)
	}
	changed := rollout.DeepCopy()
	extensionrollout.Record(&changed.Status, next, "")
	extensionrollout.Say(rollout.Name, plan, &changed.Status, next, report, situation)
	if err := p.store(ctx, rollout, changed); err != nil {
		return err
	}
	p.rollouts[len(p.rollouts)-1] = changed
	p.noteChanging(p.set.Name, report.Counts[fleet.Updating]+report.Counts[fleet.Unknown])
	if err := p.writeChildren(ctx, changed, plan, next); err != nil {
		return err
	}
	for _, wait := range report.Waits {
		if !wait.Opens.IsZero() {
			p.queue.AddAfter(p.set.Name, max(wait.Opens.Sub(situation.Now), 0))
		}
	}
	changing := report.Counts[fleet.Updating] + report.Counts[fleet.Unknown] + report.Counts[fleet.Soaking]
	switch {
	case changing > 0 || report.Phase == fleet.InProgress || report.Phase == fleet.PhaseSoaking:
		p.queue.AddAfter(p.set.Name, lookEvery)
	case report.Counts[fleet.Deferred] > 0 || report.Phase == fleet.PhaseHalted || report.Phase == fleet.Scheduled:
		p.queue.AddAfter(p.set.Name, lookAgain)
	}
	return nil
}

// store writes the status of a rollout with the resourceVersion that was read. A decision of a user
// meanwhile causes a conflict.
func (p *pass) store(ctx context.Context, stored, changed *olmv1alpha1.ClusterExtensionRollout) error {
	if same(&stored.Status, &changed.Status) {
		return nil
	}
	written, err := p.Rollouts.UpdateStatus(ctx, changed, metav1.UpdateOptions{FieldManager: FieldManager})
	if err != nil {
		if apierrors.IsConflict(err) {
			p.queue.AddAfter(p.set.Name, conflictWait)
		}
		return fmt.Errorf("writing the status of rollout %s: %w", changed.Name, err)
	}
	changed.ResourceVersion = written.ResourceVersion
	return nil
}

func (p *pass) supersede(ctx context.Context, rollout *olmv1alpha1.ClusterExtensionRollout) error {
	changed := rollout.DeepCopy()
	plan, progress := extensionrollout.Plan(&rollout.Spec), extensionrollout.Progress(&rollout.Status)
	progress.Ended, changed.Status.Ended = true, true
	situation := extensionrollout.Situation(&rollout.Spec, &rollout.Status, p.Clock.Now())
	next, report := plan.Step(progress, situation)
	extensionrollout.Say(rollout.Name, plan, &changed.Status, next, report, situation)
	changed.Status.Message = "another rollout took its place"
	if err := p.store(ctx, rollout, changed); err != nil {
		return err
	}
	p.rollouts[len(p.rollouts)-1] = changed
	return nil
}
