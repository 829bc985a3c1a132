package plan

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/diff"
	"github.com/penstock-project/penstock/pkg/governance"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/rollout"
)

// item is one item of the plan, and the target as it is. Its message is why the
// cluster refuses it.
func (v *visit) item(ctx context.Context, target wanted, seen rollout.PreviewItem) (v1alpha1.PlanItem, *manifest.Object, error) {
	item := v1alpha1.PlanItem{
		Name:      target.Name,
		TargetRef: targetOf(target.object.Ref),
		Action:    v1alpha1.ItemUpdate, ImpactSeverity: target.Impact, ImpactReason: target.Reason, BlastRadius: target.Blast,
		Digest: string(target.object.Digest), Fingerprint: seen.Fingerprint, Notes: target.Notes, State: v1alpha1.ItemPending,
	}
	now := v.now()
	item.LastTransitionTime = &now
	if seen.Failure != nil {
		item.State, item.Message = v1alpha1.ItemFailed, governance.Clip(seen.Failure.Message)
		return item, nil, nil
	}
	if seen.Action == rollout.Deferred {
		return item, nil, fmt.Errorf("item %s: %s", target.Name, seen.Message)
	}
	before, err := ofJSON(seen.Before)
	if err != nil {
		return item, nil, err
	}
	after, err := ofJSON(seen.After)
	if err != nil {
		return item, nil, err
	}
	for _, taken := range seen.Taken {
		item.Takes = append(item.Takes, v1alpha1.TakenFields{Manager: taken.Manager, Fields: taken.Paths})
	}
	if len(item.Takes) == 0 && before != nil && after != nil && v.unowned(target.object.ID) {
		if fields := overwritten("", fieldsOf(before), fieldsOf(after)); len(fields) > 0 {
			item.Takes = []v1alpha1.TakenFields{{Manager: beforeFirstApply, Fields: fields}}
		}
	}
	switch {
	case target.delete && before != nil && !v.governs(before):
		// The run had it to be made, and did not come to that.
		item.Action, item.State = v1alpha1.ItemDelete, v1alpha1.ItemFailed
		item.Message = governance.Clip(fmt.Sprintf("%s exists, and no run of this plan has written it: it is not deleted", before.ID))
		return item, before, nil
	case target.delete && before != nil:
		item.Action = v1alpha1.ItemDelete
	case !seen.Exists && !target.delete:
		item.Action = v1alpha1.ItemCreate
	case before == nil || after != nil && governance.Unmarked(before).Digest == governance.Unmarked(after).Digest:
		item.Action, item.ImpactSeverity, item.ImpactReason = v1alpha1.ItemNone, v1alpha1.ImpactNone, "it is as it should be already"
		item.BlastRadius = nil
		return item, before, nil
	}
	change := diff.Compare(ctx, governance.Unmarked(before), governance.Unmarked(after), diff.Options{Schema: v.Schema, Redactor: v.Redactor})
	item.Diff = bounded(change.Unified, v1alpha1.MaxItemDiffBytes)
	if change.NotCompared != "" {
		item.Diff = "not compared: " + change.NotCompared
	}
	return item, before, nil
}

// governs tells whether a target bears the marks of this plan.
func (v *visit) governs(live *manifest.Object) bool {
	content := &unstructured.Unstructured{}
	if err := content.UnmarshalJSON(live.JSON); err != nil {
		return false
	}
	marks := content.GetAnnotations()
	return marks[v1alpha1.GovernedByAnnotation] == v.plan.Name && marks[v1alpha1.AppliedHashAnnotation] != ""
}

// isGoing tells whether an item wants its target gone, which it may be already.
func isGoing(item v1alpha1.PlanItem) bool {
	return item.Action == v1alpha1.ItemDelete || item.Action == v1alpha1.ItemNone && item.Fingerprint == rollout.FingerprintAbsent
}

func targetOf(ref manifest.Ref) v1alpha1.TargetRef {
	return v1alpha1.TargetRef{APIVersion: ref.APIVersion(), Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name}
}

// ofJSON is a manifest of JSON, or nil.
func ofJSON(raw []byte) (*manifest.Object, error) {
	if raw == nil {
		return nil, nil
	}
	object, err := manifest.Digester{}.FromJSON(raw)
	if err != nil {
		return nil, fmt.Errorf("reading a target: %w", err)
	}
	return &object, nil
}

// settle sets the state of an item.
func (v *visit) settle(item *v1alpha1.PlanItem, state v1alpha1.ItemState, message string) {
	if item.State != state {
		now := v.now()
		item.LastTransitionTime = &now
	}
	item.State, item.Message = state, governance.Clip(message)
}
