package plan

import (
	"cmp"
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/governance"
	"github.com/penstock-project/penstock/pkg/governance/profile"
	"github.com/penstock-project/penstock/pkg/governance/wait"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/planwork"
)

func (s *scope) await(ctx context.Context, item *v1alpha1.PlanItem, manifests map[manifest.Digest][]byte) error {
	target := &unstructured.Unstructured{}
	if err := target.UnmarshalJSON(manifests[manifest.Digest(item.Digest)]); err != nil {
		return fmt.Errorf("reading the manifest of item %s: %w", item.Name, err)
	}
	at := wait.Times{Now: s.Clock.Now(), Written: writtenAt(*item)}
	verdict := wait.Gone(target, s.facts, at)
	if !planwork.Goes(*item) {
		live := s.live(item)
		verdict = wait.For(target, live, s.facts, at)
		if more := s.expressions.For(ctx, s.waitsOf(item), live); verdict.State == wait.Done && more.State != wait.Done {
			verdict = more
		}
	}
	s.pause(item, verdict.State == wait.Paused)
	s.soon(verdict.Again)
	switch verdict.State {
	case wait.Done:
		state := v1alpha1.ItemCompleted
		if item.Action == v1alpha1.ItemNone {
			state = v1alpha1.ItemSkipped
		}
		s.settle(item, state, cmp.Or(verdict.Message, "applied"))
	case wait.Failed:
		s.settle(item, v1alpha1.ItemFailed, verdict.Message)
	default:
		item.Message = governance.Clip(verdict.Message)
	}
	return nil
}

// writtenAt returns the time when an item was written, or else when its turn began.
func writtenAt(item v1alpha1.PlanItem) time.Time {
	for _, at := range []*metav1.Time{item.AppliedAt, item.StartedAt} {
		if at != nil {
			return at.Time
		}
	}
	return time.Time{}
}

// waitsOf returns the conditions that the profile waits for in addition to the conditions of the
// item's kind. They are not part of the review, because Penstock writes nothing for them.
func (s *scope) waitsOf(item *v1alpha1.PlanItem) []profile.Wait {
	p, found := s.profileOf()
	if !found || s.plan.Spec.RestoreRun != 0 {
		return nil
	}
	if waiter, waits := p.(profile.Waiter); waits {
		return waitsNow(waiter, item.Name, s.facts, s.plan.Spec.Options)
	}
	items, err := p.Items(s.facts, s.plan.Spec.Options)
	if err != nil {
		return nil // missing objects were handled before
	}
	for _, one := range items {
		if one.Name == item.Name {
			return one.Waits
		}
	}
	return nil
}

// waitsNow returns the conditions that an item waits for. If they are unknown, the item waits.
func waitsNow(waiter profile.Waiter, item string, facts profile.Facts, options *v1alpha1.PlanOptions) []profile.Wait {
	waits, err := waiter.Waits(item, facts, options)
	if err != nil {
		return []profile.Wait{{Judge: func(map[string]any) (bool, string, error) { return false, "what it waits for is unknown now", err }}}
	}
	return waits
}

// live returns the watched target of an item, or nil. It returns nil while the watch still shows
// the state before the write.
func (s *scope) live(item *v1alpha1.PlanItem) *unstructured.Unstructured {
	ref := refOf(*item)
	live, _ := watchedTarget(s.Engine.Observer, ref.ID)
	if live == nil {
		for _, object := range s.facts.Objects[ref.GroupKind()] {
			if object.GetName() == ref.Name && object.GetNamespace() == ref.Namespace {
				live = object
			}
		}
	}
	if written := s.inventory.Entries[ref.ID].ResourceVersion; live != nil && written != "" {
		if order, err := resourceversion.CompareResourceVersion(live.GetResourceVersion(), written); err == nil && order < 0 {
			return nil
		}
	}
	return live
}

// pauseNoted is how often status records the length of a pause. So the next leader does not count
// the pause as time of work.
const pauseNoted = 5 * time.Minute

// pause measures how long the awaited object is paused, because WaitTimeout excludes that time.
func (s *scope) pause(item *v1alpha1.PlanItem, paused bool) {
	now := s.Clock.Now()
	switch {
	case paused && s.pausedSince.IsZero():
		s.pausedSince = now
	case paused && now.Sub(s.pausedSince) >= pauseNoted:
		whole := now.Sub(s.pausedSince).Truncate(time.Second)
		item.PausedSeconds += int64(whole / time.Second)
		s.pausedSince = s.pausedSince.Add(whole)
	case !paused && !s.pausedSince.IsZero():
		item.PausedSeconds += int64(now.Sub(s.pausedSince) / time.Second)
		s.pausedSince = time.Time{}
	}
	if paused && s.plan.Spec.WaitTimeout != nil {
		s.soon(pauseNoted)
	}
}

// timeOut fails an item after WaitTimeout, or requests a pass at that time.
func (s *scope) timeOut(item *v1alpha1.PlanItem) {
	limit := s.plan.Spec.WaitTimeout
	if item.State != v1alpha1.ItemInProgress || limit == nil || item.StartedAt == nil || !s.pausedSince.IsZero() {
		return
	}
	deadline := item.StartedAt.Add(limit.Duration + time.Duration(item.PausedSeconds)*time.Second)
	if left := deadline.Sub(s.Clock.Now()); left > 0 {
		s.soon(left)
		return
	}
	s.settle(item, v1alpha1.ItemFailed, fmt.Sprintf("not healthy within %s: %s", limit.Duration, item.Message))
}
