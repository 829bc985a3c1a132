package fleet

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/authz"
	"github.com/penstock-project/penstock/pkg/controller/extension"
	"github.com/penstock-project/penstock/pkg/controller/maker"
	ext "github.com/penstock-project/penstock/pkg/extension"
	"github.com/penstock-project/penstock/pkg/extension/status"
	"github.com/penstock-project/penstock/pkg/extensionrollout"
	"github.com/penstock-project/penstock/pkg/extensionset"
	"github.com/penstock-project/penstock/pkg/fleet"
	"github.com/penstock-project/penstock/pkg/text"
)

const (
	// maxDiff bounds the diff of one group, maxDiffs the diffs of a rollout, in bytes.
	maxDiff  = 128 << 10
	maxDiffs = 512 << 10
	// longestReason bounds the message of an exception, in bytes.
	longestReason = 500
)

// Reasons of exceptions.
const (
	reasonDenied      = "Denied"
	reasonUnreachable = "Unreachable"
	reasonSame        = "SameCluster"
	reasonNoWave      = "NoWave"
	reasonNotSelected = "NotSelected"
	reasonLeaving     = "Leaving"
)

// Reasons why a set has no proposed rollout.
const (
	reasonAuthorUnknown   = "AuthorUnknown"
	reasonTooManyClusters = "TooManyClusters"
)

// preview is the change that a cluster would see, or the reason why it is unknown.
type preview struct {
	// key identifies the inputs of the preview. at is its time.
	key string
	at  time.Time

	found   *extension.Preview
	stopped *maker.Outcome
}

// propose records the change that clusters would see, unless an approved rollout is in progress:
//
//  1. It checks that the set has an author who may use each cluster.
//  2. It reads each cluster, and assigns it to a wave.
//  3. It previews each cluster. Clusters of equal change form a group.
//  4. If the change is a new one, the new rollout replaces the newest rollout.
func (p *pass) propose(ctx context.Context) error {
	active := p.newest()
	if active != nil && p.isBusy(active) {
		return nil
	}
	if p.stopped != "" {
		return nil
	}
	waves, err := p.assign(ctx)
	if err != nil {
		return err
	}
	spec, err := p.compute(ctx, waves)
	if err != nil || p.waits {
		return err
	}
	open := active != nil && !active.Status.Ended && !active.Status.Completed
	switch {
	case spec == nil && open:
		return p.supersede(ctx, active) // no cluster would change any more
	case spec == nil:
		return nil
	case open && extensionrollout.Plan(&active.Spec).Digest() == extensionrollout.Plan(spec).Digest() && p.isCurrent(active):
		return nil
	case active != nil && !active.Status.Ended:
		if err := p.supersede(ctx, active); err != nil {
			return err
		}
	}
	return p.create(ctx, spec)
}

// isBusy reports whether the newest rollout is approved, belongs to the present spec of the set,
// and is not completed.
func (p *pass) isBusy(active *olmv1alpha1.ClusterExtensionRollout) bool {
	return len(active.Status.Approvals) > 0 && !active.Status.Ended && !active.Status.Completed && p.isCurrent(active)
}

// assign gives each cluster a wave. Clusters that the set cannot serve become exceptions.
func (p *pass) assign(ctx context.Context) ([][]fleet.Candidate, error) {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(p.clusters)) {
		may, err := p.mayUse(ctx, name)
		if err != nil {
			return nil, err
		}
		if !may {
			p.except(name, reasonDenied, fmt.Sprintf("%s, who wrote the set, cannot use target %s", p.stamp.User, name))
			continue
		}
		names = append(names, name)
	}
	looks := p.readClusters(ctx, names, knownFor)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	var candidates []fleet.Candidate
	for _, name := range names {
		uid := looks[name].uid
		if uid == "" {
			uid = p.uidBefore(name)
		}
		candidates = append(candidates, fleet.Candidate{Name: name, UID: uid, Labels: p.clusters[name].Labels})
	}
	selectors, err := p.waveSelectors()
	if err != nil {
		return nil, err
	}
	assigned := fleet.Assign(selectors, candidates)
	for _, one := range assigned.Unassigned {
		p.except(one.Name, reasonNoWave, "no wave selects the cluster")
	}
	for _, one := range assigned.Same {
		p.except(one.Name, reasonSame, "another Secret of the set leads to the same cluster")
	}
	for _, one := range assigned.Unknown {
		why := "nobody has reached the cluster yet"
		if err := looks[one.Name].err; err != nil {
			why = err.Error()
			p.queue.AddAfter(p.set.Name, lookAgain)
		}
		p.except(one.Name, reasonUnreachable, why)
	}
	return assigned.Waves, nil
}

func (p *pass) waveSelectors() ([]labels.Selector, error) {
	var selectors []labels.Selector
	for i := range p.set.Spec.Strategy.Waves {
		selector, err := metav1.LabelSelectorAsSelector(&p.set.Spec.Strategy.Waves[i].ClusterSelector)
		if err != nil {
			return nil, fmt.Errorf("reading the waves of ClusterExtensionSet %s: %w", p.set.Name, err)
		}
		selectors = append(selectors, selector)
	}
	return selectors, nil
}

// mayUse reports whether the author may use this target or all targets.
func (p *pass) mayUse(ctx context.Context, name string) (bool, error) {
	for _, target := range []string{"", name} {
		may, err := p.Rights.May(ctx, p.stamp.Info(), authz.Use(target))
		if err != nil {
			return false, fmt.Errorf("finding out whether %s may use target %s: %w", p.stamp.User, name, err)
		}
		if may {
			return true, nil
		}
	}
	return false, nil
}

// uidBefore returns the uid of an unreachable cluster from an earlier rollout.
func (p *pass) uidBefore(name string) string {
	for _, rollout := range slices.Backward(p.rollouts) {
		for _, cluster := range rollout.Spec.Clusters {
			if cluster.Name == name {
				return cluster.UID
			}
		}
	}
	return ""
}

func (p *pass) except(cluster, reason, message string) {
	p.exceptions[cluster] = extensionset.Exception{Cluster: cluster, Reason: reason, Message: text.Clip(message, longestReason)}
}

// compute returns the change that clusters would see, or nil if none would change.
func (p *pass) compute(ctx context.Context, waves [][]fleet.Candidate) (*olmv1alpha1.ClusterExtensionRolloutSpec, error) {
	spec := &olmv1alpha1.ClusterExtensionRolloutSpec{
		Set:         olmv1alpha1.RolloutSet{Name: p.set.Name, UID: string(p.set.UID), Digest: p.digest},
		RequestedBy: p.stamp.User, DeadlineSeconds: p.set.Spec.Strategy.DeadlineSeconds,
	}
	decided := p.decided()
	previews := map[string]*extension.Preview{}
	for i, wave := range p.set.Spec.Strategy.Waves {
		count := 0
		for _, candidate := range waves[i] {
			revisions, err := p.revisionsOf(ctx, candidate.Name)
			if err != nil {
				return nil, err
			}
			one, err := p.preview(ctx, candidate.Name, revisions)
			if err != nil {
				return nil, err
			}
			if one.found == nil {
				p.waits = p.waits || unknown(one.stopped)
				p.except(candidate.Name, string(one.stopped.Reason), one.stopped.Message)
				continue
			}
			before := contentBefore(revisions)
			isDecided := decided[candidate.Name] == one.found.After
			present := before == one.found.After && (isDecided || p.ran(candidate.Name, before))
			switch {
			case present:
			case isDecided:
				continue
			default:
				previews[candidate.Name] = one.found
			}
			spec.Clusters = append(spec.Clusters, olmv1alpha1.RolloutTarget{Name: candidate.Name, UID: candidate.UID, Wave: wave.Name, Before: before, After: one.found.After, Present: present})
			count++
		}
		bounds, err := wave.Bounds(count)
		if err != nil {
			return nil, fmt.Errorf("reading wave %s of ClusterExtensionSet %s: %w", wave.Name, p.set.Name, err)
		}
		frozen := olmv1alpha1.RolloutWave{
			Name: wave.Name, SoakSeconds: wave.SoakSeconds, ApprovalRequired: wave.Approval == extensionset.ApprovalRequired,
			MaxUnavailable: int32(bounds.MaxUnavailable), MaxFailures: int32(bounds.MaxFailures), MaxUnreachable: int32(bounds.MaxUnreachable),
		}
		if of := wave.Window; of != nil {
			frozen.Window = &olmv1alpha1.RolloutWindow{Schedule: of.Schedule, TimeZone: of.TimeZone, Duration: of.Duration}
		}
		spec.Waves = append(spec.Waves, frozen)
	}
	if len(previews) == 0 {
		return nil, nil
	}
	return spec, p.group(ctx, spec, previews)
}

// decided returns, by cluster, the content of the newest completed rollout for clusters that did
// not get it. Users skipped these clusters, or the clusters are still due.
func (p *pass) decided() map[string]string {
	decided := map[string]string{}
	newest := p.newest()
	if newest == nil || !newest.Status.Completed || newest.Status.Ended {
		return decided
	}
	progress := extensionrollout.Progress(&newest.Status)
	for _, cluster := range newest.Spec.Clusters {
		if state := progress.Clusters[cluster.Name].State; state != fleet.Succeeded && state != fleet.Leaving && state != fleet.Present {
			decided[cluster.Name] = cluster.After
		}
	}
	return decided
}

// ran reports whether a cluster that has a content needs no rollout for it. The cluster needs a
// rollout in two cases. Either a later rollout gave it other content and did not succeed. Or the
// rollout of the content was superseded before the soak time ended: later waves must not continue
// without it. Rollouts that did not change the cluster are ignored.
func (p *pass) ran(cluster, content string) bool {
	for _, rollout := range slices.Backward(p.rollouts) {
		at, found := p.placeIn(rollout, cluster)
		switch {
		case !found, at.Present, at.After != content && at.Attempt == 0:
			continue
		case at.After != content:
			return false
		}
		return at.State == string(fleet.Succeeded) || at.State == string(fleet.Skipped) || at.State == string(fleet.Leaving)
	}
	return true
}

type place struct {
	After, State string
	Present      bool
	Attempt      int64
}

func (p *pass) placeIn(rollout *olmv1alpha1.ClusterExtensionRollout, cluster string) (place, bool) {
	places := p.places[rollout.Name]
	if places == nil {
		places = make(map[string]place, len(rollout.Spec.Clusters))
		for _, target := range rollout.Spec.Clusters {
			places[target.Name] = place{After: target.After, Present: target.Present}
		}
		for _, at := range rollout.Status.Clusters {
			one := places[at.Name]
			one.State, one.Attempt = at.State, at.Attempt
			places[at.Name] = one
		}
		p.places[rollout.Name] = places
	}
	at, found := places[cluster]
	return at, found
}

// preview returns the change that a cluster would see. A result is cached until the child's spec,
// the author, the catalogs or the revisions of the child change. A refusal is computed again after
// a while, because rights and clusters change.
func (p *pass) preview(ctx context.Context, cluster string, revisions []olmv1alpha1.ClusterExtensionRevision) (preview, error) {
	child, err := p.set.Child(cluster, p.clusters[cluster].Labels)
	if err != nil {
		return preview{}, err
	}
	asked, err := json.Marshal(child.Object)
	if err != nil {
		return preview{}, fmt.Errorf("encoding ClusterExtension %s: %w", child.GetName(), err)
	}
	key := fmt.Sprintf("%x %q %q %q %v", sha256.Sum256(asked), p.stamp.User, p.stamp.UID, p.stamp.Groups, p.Catalogs.Snapshot().Version())
	for i := range revisions {
		key += fmt.Sprintf(" %s/%d", revisions[i].UID, revisions[i].Generation)
	}
	p.mu.Lock()
	known := p.previews[p.set.Name][cluster]
	p.mu.Unlock()
	if known.key == key && (known.stopped == nil || p.Clock.Since(known.at) < lookAgain) {
		return known, nil
	}
	made := preview{key: key, at: p.Clock.Now()}
	made.found, made.stopped = p.Extensions.Preview(ctx, child, p.stamp.Info())
	if ctx.Err() != nil {
		return preview{}, ctx.Err()
	}
	if made.stopped != nil {
		p.queue.AddAfter(p.set.Name, lookAgain)
		if unknown(made.stopped) {
			return made, nil // the answer may be known soon
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.previews[p.set.Name] == nil {
		p.previews[p.set.Name] = map[string]preview{}
	}
	p.previews[p.set.Name][cluster] = made
	return made, nil
}

// unknown reports whether the answer may soon change. Until then no rollout is proposed, because
// clusters would be missing in it.
func unknown(stopped *maker.Outcome) bool {
	switch status.Result(stopped.Reason) {
	case status.Pending, status.CatalogUnavailable, status.PullFailed, status.Failed:
		return true
	}
	return stopped.Reason == maker.Failed || stopped.Reason == maker.Unreadable
}

// group writes the groups of equal change, each with the diff of its first cluster.
func (p *pass) group(ctx context.Context, spec *olmv1alpha1.ClusterExtensionRolloutSpec, previews map[string]*extension.Preview) error {
	size := 0
	for _, one := range extensionrollout.Plan(spec).Groups() {
		first := previews[one.Clusters[0]]
		child, err := common(first.Child)
		if err != nil {
			return err
		}
		group := olmv1alpha1.RolloutGroup{Change: one.Change, Clusters: one.Clusters, To: first.Version, Extension: &olmv1alpha1.Manifest{Raw: child}}
		diff, stopped := p.Extensions.Diff(ctx, first)
		if stopped != nil {
			return fmt.Errorf("comparing what cluster %s has with what it would get: %s", one.Clusters[0], stopped.Message)
		}
		revisions, err := p.revisionsOf(ctx, one.Clusters[0])
		if err != nil {
			return err
		}
		for i := range revisions {
			if annotations := revisions[i].Annotations; revisions[i].Name == diff.From {
				group.From = cmp.Or(annotations[olmv1alpha1.VersionAnnotation], annotations[olmv1alpha1.ReferenceAnnotation])
			}
		}
		content, err := fit(diff, min(maxDiff, maxDiffs-size))
		if err != nil {
			return fmt.Errorf("encoding the diff of cluster %s: %w", one.Clusters[0], err)
		}
		size += len(content)
		group.Diff = &olmv1alpha1.Manifest{Raw: content}
		spec.Groups = append(spec.Groups, group)
	}
	return nil
}

// fit encodes a diff within a number of bytes. It drops lines and values first, and then objects.
// The digest that users approve covers the whole change.
func fit(diff *olmv1alpha1.RevisionDiff, most int) ([]byte, error) {
	content, err := json.Marshal(diff)
	if err != nil || len(content) <= most {
		return content, err
	}
	var all olmv1alpha1.DiffTruncation
	for i := range diff.Changes {
		change := &diff.Changes[i]
		left := olmv1alpha1.DiffTruncation{Fields: int32(len(change.Fields)), Lines: change.LinesAdded + change.LinesRemoved}
		if left != (olmv1alpha1.DiffTruncation{}) {
			change.Truncated = &left
		}
		change.Fields, change.Unified = nil, ""
		all.Fields, all.Lines = all.Fields+left.Fields, all.Lines+left.Lines
	}
	diff.Truncated = &all
	if content, err = json.Marshal(diff); err != nil || len(content) <= most {
		return content, err
	}
	diff.Truncated = &olmv1alpha1.DiffTruncation{Objects: int32(len(diff.Changes))}
	diff.Changes = nil
	return json.Marshal(diff)
}

// common returns a child without its name and the fields that depend on its cluster.
func common(child *unstructured.Unstructured) ([]byte, error) {
	annotations := child.GetAnnotations()
	for _, name := range ext.ChildAnnotations() {
		delete(annotations, name)
	}
	out := &unstructured.Unstructured{Object: map[string]any{"spec": child.Object["spec"]}}
	out.SetGroupVersionKind(ext.Kind)
	out.SetAnnotations(annotations)
	out.SetLabels(child.GetLabels())
	content, err := json.Marshal(out.Object)
	if err != nil {
		return nil, fmt.Errorf("encoding ClusterExtension %s: %w", child.GetName(), err)
	}
	return content, nil
}

// create records a rollout. If the name is taken, the watch reports the other rollout and causes
// the next pass.
func (p *pass) create(ctx context.Context, spec *olmv1alpha1.ClusterExtensionRolloutSpec) error {
	p.last++
	rollout := &olmv1alpha1.ClusterExtensionRollout{
		ObjectMeta: metav1.ObjectMeta{Name: p.set.Name + "-" + strconv.FormatInt(p.last, 10), Labels: map[string]string{olmv1alpha1.SetLabel: p.set.Name}},
		Spec:       *spec,
	}
	created, err := p.Rollouts.Create(ctx, rollout, metav1.CreateOptions{FieldManager: FieldManager})
	if err != nil {
		return fmt.Errorf("recording rollout %s: %w", rollout.Name, err)
	}
	p.rollouts = append(p.rollouts, created)
	return p.advance(ctx, created)
}

// number returns the number of a set's rollout from its name, or 0 for any other name.
func number(name string) int64 {
	found, err := strconv.ParseInt(name[strings.LastIndex(name, "-")+1:], 10, 64)
	if err != nil {
		return 0
	}
	return found
}
