package fleet

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/controller/maker"
	"github.com/penstock-project/penstock/pkg/extension"
	"github.com/penstock-project/penstock/pkg/extension/status"
	"github.com/penstock-project/penstock/pkg/extensionset"
	"github.com/penstock-project/penstock/pkg/fleet"
	"github.com/penstock-project/penstock/pkg/target"
)

// conflictWait is the delay after a conflict, in which the watch catches up.
const conflictWait = 200 * time.Millisecond

// look is the result of reading a cluster.
type look struct {
	at time.Time
	// version is the resourceVersion of the Secret that was read.
	version string
	// uid identifies the cluster. While err is not nil, it is the uid of the last successful look.
	uid string
	err error
}

func (c *Controller) forget(set string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.previews, set)
	delete(c.changing, set)
}

func (c *Controller) noteChanging(set string, count int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changing[set] = count
}

// room returns how many clusters may begin, after the changing clusters of all sets are counted.
func (c *Controller) room() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	room := maxChanging
	for _, count := range c.changing {
		room -= count
	}
	return room
}

// readClusters reads clusters whose last look is too old, or used another version of the Secret. It reads
// several clusters in parallel. An unreachable cluster delays only its own look.
func (p *pass) readClusters(ctx context.Context, clusters []string, fresh time.Duration) map[string]look {
	c := p.Controller
	var running sync.WaitGroup
	places := make(chan struct{}, lookers)
	for _, name := range clusters {
		c.mu.Lock()
		last, known := c.looks[name]
		c.mu.Unlock()
		version := ""
		if secret := p.clusters[name]; secret != nil {
			version = secret.ResourceVersion
		}
		if known && last.version == version && c.Clock.Now().Sub(last.at) < fresh {
			continue
		}
		running.Go(func() {
			places <- struct{}{}
			defer func() { <-places }()
			uid, err := c.readOnce(ctx, name)
			if err != nil {
				uid = last.uid
			}
			c.mu.Lock()
			defer c.mu.Unlock()
			c.looks[name] = look{c.Clock.Now(), version, uid, err}
		})
	}
	running.Wait()
	found := map[string]look{}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range clusters {
		found[name] = c.looks[name]
	}
	return found
}

func (c *Controller) readOnce(ctx context.Context, name string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	secret, err := c.Core.CoreV1().Secrets(c.Namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("reading Secret %s/%s: %w", c.Namespace, name, err)
	}
	config, err := target.Config(secret)
	if err != nil {
		return "", fmt.Errorf("reading Secret %s/%s: %w", c.Namespace, name, err)
	}
	return c.Look(ctx, config)
}

// situation returns the inputs for a step of a rollout.
func (p *pass) situation(ctx context.Context, rollout *olmv1alpha1.ClusterExtensionRollout, plan *fleet.Plan, progress fleet.Progress) (fleet.Situation, error) {
	decided := p.Windows.Decide(p.set.Spec.Template.Metadata.Labels)
	s := fleet.Situation{
		Now: p.Clock.Now(), Room: p.room(), Frozen: p.set.Spec.Paused || !p.isCurrent(rollout), Closed: !decided.Open, Opens: decided.Opens,
		MembersKnown: true, Members: map[string]bool{}, Clusters: map[string]fleet.Observation{},
	}
	if frozen, err := p.Freezes.Frozen(); err != nil || frozen != nil {
		s.Frozen = true
	}
	approved := progress.Approved == plan.Digest()
	var names, present []string
	for _, cluster := range plan.Clusters {
		s.Members[cluster.Name] = p.isMember(ctx, cluster.Name)
		switch state := progress.Clusters[cluster.Name].State; {
		case !approved, state == fleet.Skipped, state == fleet.Leaving:
		case cluster.Present:
			present = append(present, cluster.Name)
		default:
			names = append(names, cluster.Name)
		}
	}
	children, _ := p.Extensions.Children(p.set.Name)
	for _, live := range children {
		cluster, marked := p.served(live)
		if _, planned := s.Members[cluster]; marked && !planned {
			s.Members[cluster] = p.isMember(ctx, cluster)
		}
	}
	looks := p.readClusters(ctx, names, lookEvery-time.Second)
	if begins(progress, looks) {
		maps.Copy(looks, p.readClusters(ctx, present, lookAgain-time.Second))
	}
	if ctx.Err() != nil {
		return s, ctx.Err()
	}
	for _, cluster := range plan.Clusters {
		found, looked := looks[cluster.Name]
		if !looked {
			continue
		}
		observed, err := p.observe(ctx, rollout, cluster, progress.Clusters[cluster.Name])
		if err != nil {
			return s, err
		}
		observed.At, observed.Unreachable, observed.UID = found.at, found.err != nil, found.uid
		s.Clusters[cluster.Name] = observed
	}
	return s, nil
}

func begins(progress fleet.Progress, looks map[string]look) bool {
	for name, found := range looks {
		if state := progress.Clusters[name].State; found.err == nil && (state == "" || state == fleet.Pending || state == fleet.Deferred) {
			return true
		}
	}
	return false
}

// isMember reports whether the set selects a cluster. A cluster whose Secret was deleted counts as
// unreachable. A cluster whose Secret lost its labels leaves.
func (p *pass) isMember(ctx context.Context, cluster string) bool {
	if p.clusters[cluster] != nil {
		return true
	}
	secret, err := p.secret(ctx, cluster)
	return err != nil || secret == nil || p.selects(secret)
}

// served returns the cluster of a child, and whether the child has the mark of a rollout.
func (p *pass) served(child *unstructured.Unstructured) (cluster string, marked bool) {
	cluster, ours := strings.CutPrefix(child.GetName(), extensionset.ChildName(p.set.Name, ""))
	return cluster, ours && child.GetAnnotations()[extension.RolloutAnnotation] != ""
}

// secret reads a Secret from the host, also without the label that the watch selects. It returns
// nil if the Secret does not exist.
func (p *pass) secret(ctx context.Context, name string) (*corev1.Secret, error) {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	secret, err := p.Core.CoreV1().Secrets(p.Namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return secret, err
}

func (p *pass) selects(secret *corev1.Secret) bool {
	_, cluster := secret.Labels[extensionset.ClusterLabel]
	return cluster && p.selector.Matches(labels.Set(secret.Labels))
}

// revisionsOf lists the revisions of a child, the newest first, once per pass.
func (p *pass) revisionsOf(ctx context.Context, cluster string) ([]olmv1alpha1.ClusterExtensionRevision, error) {
	if known, found := p.revisions[cluster]; found {
		return known, nil
	}
	revisions, err := maker.List(ctx, p.Reader, extensionset.ChildName(p.set.Name, cluster))
	if err == nil {
		p.revisions[cluster] = revisions
	}
	return revisions, err
}

// observe returns the state of a child from its revisions.
func (p *pass) observe(ctx context.Context, rollout *olmv1alpha1.ClusterExtensionRollout, cluster fleet.Cluster, at fleet.At) (fleet.Observation, error) {
	name := extensionset.ChildName(p.set.Name, cluster.Name)
	child, known := p.Extensions.Find(name)
	if !known {
		return fleet.Observation{}, errUnknown
	}
	revisions, err := p.revisionsOf(ctx, cluster.Name)
	if err != nil {
		return fleet.Observation{}, err
	}
	chain := maker.Chain{Name: name, Revisions: revisions, Rules: maker.Rules{NeverApproved: func(one *olmv1alpha1.ClusterExtensionRevision) bool {
		return one.Annotations[extension.ProposedAnnotation] == "true"
	}}}
	newest := chain.Newest()
	before := contentBefore(revisions)
	if before == cluster.After {
		before = cluster.Before // an earlier attempt succeeded late: nothing else changes there
	}
	seen := fleet.Observation{Change: fleet.Change(before, cluster.After), Healthy: newest == nil}
	mark := ""
	if child != nil {
		mark = child.GetAnnotations()[extension.RolloutAnnotation]
		seen.Refused = refused(child, mark)
	}
	if mark == attemptMark(rollout, at.Attempt) && at.Attempt > 0 {
		seen.Attempt = at.Attempt
	}
	if newest == nil {
		return seen, nil
	}
	conditions := newest.Status.Conditions
	succeeded := maker.HasSucceeded(newest)
	seen.Healthy = succeeded && meta.IsStatusConditionTrue(conditions, olmv1alpha1.ConditionAvailable)
	rolledBack := maker.IsRollback(newest) && at.Attempt > 0 && !newest.CreationTimestamp.Time.Before(at.Since.Truncate(time.Second))
	ours := newest.Annotations[extension.ContentAnnotation] == cluster.After && !rolledBack
	switch {
	case ours && succeeded:
		seen.Content = cluster.After
	case ours:
		// A retry fails by its deadline only: the revision may be stalled for a reason that was
		// repaired meanwhile.
		seen.Failed = at.Attempt == 1 && meta.IsStatusConditionTrue(conditions, olmv1alpha1.ConditionStalled) && newest.Spec.OnFailure != olmv1alpha1.OnFailureRollback
	case rolledBack, at.State == fleet.Soaking, at.State == fleet.Succeeded:
		seen.Content = "revision " + newest.Name
	}
	return seen, nil
}

// contentBefore returns the content that a cluster has: the content of the newest revision that was
// rolled out.
func contentBefore(revisions []olmv1alpha1.ClusterExtensionRevision) string {
	for i := range revisions {
		one := &revisions[i]
		if one.DeletionTimestamp != nil || one.Spec.LifecycleState == olmv1alpha1.LifecycleStateArchived || !maker.HasSucceeded(one) {
			continue
		}
		if content := one.Annotations[extension.ContentAnnotation]; content != "" {
			return content
		}
		return "revision " + one.Name
	}
	return ""
}

// attemptMark returns the value of the annotation that marks an attempt.
func attemptMark(rollout *olmv1alpha1.ClusterExtensionRollout, attempt int64) string {
	return fmt.Sprintf("%s/%d/%s", rollout.Name, attempt, rollout.UID)
}

// refused reports whether the attempt with the mark was refused because its content is not the
// approved content.
func refused(child *unstructured.Unstructured, mark string) bool {
	read, err := extension.From(child)
	if err != nil || mark == "" {
		return false
	}
	ready := meta.FindStatusCondition(read.Status.Conditions, "Ready")
	return ready != nil && ready.Reason == string(status.ChangedSinceReview) && strings.Contains(ready.Message, "rollout "+mark+" ")
}
