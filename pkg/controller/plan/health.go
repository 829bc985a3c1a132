package plan

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/governance"
	"github.com/penstock-project/penstock/pkg/governance/wait"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/planwork"
)

// Suffixes of messages, which are removed when they no longer hold.
const (
	notHealthy   = "; not healthy now: "
	healthyAgain = "; its target is healthy now"
)

// unhealthyBefore returns the last reported problem of a plan's targets.
func unhealthyBefore(status v1alpha1.ConfigurationPlanStatus) string {
	condition := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionHealthy)
	if condition == nil || condition.Reason != governance.ReasonTargetUnhealthy {
		return ""
	}
	return condition.Message
}

// health reports the targets of an active plan whose operators report a problem, and the failed
// items whose operators have recovered. It writes nothing to the cluster.
func (s *scope) health(ctx context.Context, manifests map[manifest.Digest][]byte) {
	status := &s.plan.Status
	var problems []string
	for i := range status.Items {
		item := &status.Items[i]
		target := targetIn(manifests, *item)
		if target == nil || !governance.Done(item.State) {
			continue
		}
		if problem := wait.Unhealthy(target, s.live(item), s.facts); problem != "" {
			problems = append(problems, fmt.Sprintf("item %s: %s", item.Name, problem))
		}
	}
	s.recovered(ctx, manifests)
	s.unhealthy = governance.Clip(strings.Join(problems, "; "))
	status.Message, _, _ = strings.Cut(status.Message, notHealthy)
	if s.unhealthy != "" {
		status.Message = governance.Clip(status.Message + notHealthy + s.unhealthy)
	}
}

// targetIn returns the desired target of an item, or nil for an item that deletes it.
func targetIn(manifests map[manifest.Digest][]byte, item v1alpha1.PlanItem) *unstructured.Unstructured {
	target := &unstructured.Unstructured{}
	if planwork.Goes(item) || target.UnmarshalJSON(manifests[manifest.Digest(item.Digest)]) != nil {
		return nil
	}
	return target
}

func (s *scope) healthEvent(before string) {
	switch {
	case before == "" && s.unhealthy != "":
		s.event(s.plan, true, governance.ReasonTargetUnhealthy, s.unhealthy)
	case before != "" && s.unhealthy == "" && s.plan.Status.Phase == v1alpha1.PhaseCompleted:
		s.event(s.plan, false, governance.ReasonTargetsHealthy, "the operators of the targets report no problem any more")
	}
}

// recovered returns the failed items whose targets are healthy now. The plan can then be computed
// again, and continues with the remaining items.
func (s *scope) recovered(ctx context.Context, manifests map[manifest.Digest][]byte) (some bool) {
	for i := range s.plan.Status.Items {
		item := &s.plan.Status.Items[i]
		target := targetIn(manifests, *item)
		if target == nil || item.State != v1alpha1.ItemFailed || !item.Applied {
			continue
		}
		live := s.live(item)
		verdict := wait.For(target, live, s.facts, wait.Times{Now: s.Clock.Now(), Written: writtenAt(*item)})
		if verdict.State == wait.Done {
			verdict = s.expressions.For(ctx, s.waitsOf(item), live)
		}
		item.Message = strings.TrimSuffix(item.Message, healthyAgain)
		if verdict.State == wait.Done {
			item.Message, some = governance.Clip(item.Message+healthyAgain), true
		}
	}
	return some
}

// content updates the message of a plan that failed at an item: it adds or removes the remark that
// the target is healthy now.
func (s *scope) content(ctx context.Context) error {
	facts, err := s.factsNow()
	if err != nil {
		return nil //nolint:nilerr // an unknown state changes nothing
	}
	s.facts = facts
	status := &s.plan.Status
	manifests, err := s.Packs.Read(ctx, status.Manifests)
	if err != nil {
		return fmt.Errorf("reading the manifests of plan %s: %w", s.plan.Name, err)
	}
	status.Message = strings.TrimSuffix(status.Message, healthyAgain)
	if s.recovered(ctx, manifests) {
		status.Message = governance.Clip(status.Message + healthyAgain)
	}
	return nil
}
