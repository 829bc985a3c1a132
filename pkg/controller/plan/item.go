package plan

import (
	"context"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/diff"
	"github.com/penstock-project/penstock/pkg/governance"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/redact"
	"github.com/penstock-project/penstock/pkg/rollout"
	"github.com/penstock-project/penstock/pkg/rollout/managedfields"
	"github.com/penstock-project/penstock/pkg/rollout/observe"
	"github.com/penstock-project/penstock/pkg/rollout/preview"
)

// item returns one item of the plan, and the present target. The message of the item explains a
// refusal by the cluster.
func (s *scope) item(ctx context.Context, target wanted, seen preview.Item) (v1alpha1.PlanItem, *manifest.Object, error) {
	item := v1alpha1.PlanItem{
		Name:      target.Name,
		TargetRef: targetOf(target.object.Ref),
		Action:    v1alpha1.ItemUpdate, ImpactSeverity: target.Impact, ImpactReason: target.Reason, BlastRadius: target.Blast,
		Digest: string(target.object.Digest), Fingerprint: seen.Fingerprint, Notes: target.Notes, State: v1alpha1.ItemPending,
	}
	now := s.now()
	item.LastTransitionTime = &now
	if seen.Failure != nil {
		item.State, item.Message = v1alpha1.ItemFailed, governance.Clip(s.redacted(target.object.ID, target.object.JSON, seen.Failure.Message))
		return item, nil, nil
	}
	if seen.Action == rollout.Deferred {
		return item, nil, fmt.Errorf("item %s: %s", target.Name, seen.Message)
	}
	before, err := governance.Live(seen.Before)
	if err != nil {
		return item, nil, err
	}
	after, err := governance.Live(seen.After)
	if err != nil {
		return item, nil, err
	}
	if target.delete {
		seen.After = nil
	}
	weighed, err := governance.Weighed(target.Item, s.facts, seen.Before, seen.After)
	if err != nil {
		return item, nil, err
	}
	item.ImpactSeverity, item.ImpactReason, item.BlastRadius, item.Notes = weighed.Impact, weighed.Reason, weighed.Blast, weighed.Notes
	for _, taken := range seen.Taken {
		item.Takes = append(item.Takes, v1alpha1.TakenFields{Manager: taken.Manager, Fields: taken.Paths})
	}
	if len(item.Takes) == 0 && before != nil && after != nil && s.hasNoManagers(target.object.ID) {
		if fields := managedfields.Overwritten(fieldsOf(before), fieldsOf(after)); len(fields) > 0 {
			item.Takes = []v1alpha1.TakenFields{{Manager: managedfields.BeforeFirstApply, Fields: fields}}
		}
	}
	switch {
	case target.delete && before != nil && !s.governs(before):
		// The run should have created the object, but did not reach it.
		item.Action, item.State = v1alpha1.ItemDelete, v1alpha1.ItemFailed
		item.Message = governance.Clip(fmt.Sprintf("%s exists, and no run of this plan has written it: it is not deleted", before.ID))
		return item, before, nil
	case target.delete && before != nil:
		item.Action = v1alpha1.ItemDelete
	case !seen.Exists && !target.delete:
		item.Action = v1alpha1.ItemCreate
	case before == nil || after != nil && governance.Unmarked(before).Digest == governance.Unmarked(after).Digest:
		item.Action, item.ImpactSeverity, item.ImpactReason = v1alpha1.ItemNone, v1alpha1.ImpactNone, "it is as it should be already"
		item.BlastRadius, item.Takes = nil, nil // nothing is written
		return item, before, nil
	}
	if item.Diff, err = s.shown(ctx, before, after, target); err != nil {
		return item, nil, fmt.Errorf("item %s: %w", target.Name, err)
	}
	return item, before, nil
}

// shown returns the part of a change for status (see governance.Shown). The subresource diff has
// the whole change, for users who may read the target.
func (s *scope) shown(ctx context.Context, before, after *manifest.Object, target wanted) (string, error) {
	var intent *manifest.Object
	if s.plan.Spec.RestoreRun == 0 {
		intent = governance.Unmarked(&target.object)
	}
	if target.delete {
		after = nil
	}
	old, next, err := governance.Shown(governance.Unmarked(before), governance.Unmarked(after), intent)
	if err != nil {
		return "", fmt.Errorf("comparing %s with what it would be: %w", target.object.ID, err)
	}
	// Without a schema, because hidden values do not have the type of their field. Lists are shown
	// as they are.
	change := diff.Compare(ctx, old, next, diff.Options{Redactor: s.Redactor})
	if change.NotCompared != "" {
		return "not compared: " + change.NotCompared, nil
	}
	return bounded(change.Unified, v1alpha1.MaxItemDiffBytes), nil
}

// redacted returns the cluster's message about a write without quotes of the target. Not every
// reader of a plan may read the target. Quotes of the plan's own values stay.
func (s *scope) redacted(id manifest.ID, body []byte, message string) string {
	live, presence := watchedTarget(s.Engine.Observer, id)
	if presence != observe.Present {
		return message
	}
	var wanted map[string]any
	if s.plan.Spec.RestoreRun == 0 && json.Unmarshal(body, &wanted) != nil {
		wanted = nil // it was encoded as JSON
	}
	return redact.Quotes(message, live.Object, wanted)
}

// governs reports whether a target has the marks of this plan.
func (s *scope) governs(live *manifest.Object) bool {
	content := &unstructured.Unstructured{}
	if err := content.UnmarshalJSON(live.JSON); err != nil {
		return false
	}
	marks := content.GetAnnotations()
	return marks[v1alpha1.GovernedByAnnotation] == s.plan.Name && marks[v1alpha1.AppliedHashAnnotation] != ""
}

func targetOf(ref manifest.Ref) v1alpha1.TargetRef {
	return v1alpha1.TargetRef{APIVersion: ref.APIVersion(), Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name}
}

func (s *scope) settle(item *v1alpha1.PlanItem, state v1alpha1.ItemState, message string) {
	if item.State != state {
		now := s.now()
		item.LastTransitionTime = &now
	}
	item.State, item.Message = state, governance.Clip(message)
}
