package plan

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/governance"
	"github.com/penstock-project/penstock/pkg/governance/profile"
	"github.com/penstock-project/penstock/pkg/manifest"
)

// restored is what the targets of a run had before it, where the run set it, in
// reverse order: fields that had a value get it back, those that had none are given
// up, and a target that the run made goes.
func (v *visit) restored(ctx context.Context) ([]wanted, error) {
	number := v.plan.Spec.RestoreRun
	row, err := v.runOf(ctx, number)
	if err != nil {
		return nil, err
	}
	if row == nil {
		return nil, fmt.Errorf("run %d is not remembered: there is nothing to restore from", number)
	}
	applied, err := v.Packs.Read(ctx, row.Manifests)
	if err != nil {
		return nil, fmt.Errorf("reading what run %d applied: %w", number, err)
	}
	before := map[manifest.ID]manifest.Object{}
	if row.Captured != "" {
		objects, err := v.Packs.Objects(ctx, row.Captured)
		if err != nil {
			return nil, fmt.Errorf("reading what there was before run %d: %w", number, err)
		}
		for _, object := range objects {
			before[object.ID] = object
		}
	}
	var targets []wanted
	for _, item := range slices.Backward(row.Items) {
		if !governance.Restorable(item) {
			continue
		}
		target, err := v.restore(item, applied, before)
		if err != nil {
			return nil, err
		}
		targets = append(targets, target)
	}
	if len(targets) == 0 {
		return nil, fmt.Errorf("run %d changed nothing that could be restored", number)
	}
	return targets, nil
}

// restore is one target as it was.
func (v *visit) restore(item v1alpha1.PlanRunItem, applied map[manifest.Digest][]byte, before map[manifest.ID]manifest.Object) (wanted, error) {
	then := &unstructured.Unstructured{}
	if err := then.UnmarshalJSON(applied[manifest.Digest(item.Digest)]); err != nil {
		return wanted{}, fmt.Errorf("reading what was applied to %s: %w", item.TargetRef.Name, err)
	}
	one := profile.Item{Name: "restore-" + item.Name, Impact: v1alpha1.ImpactMedium, Reason: "what there was before is restored"}
	if isMachineConfig := then.GroupVersionKind().GroupKind() == profile.MachineConfigKind(); isMachineConfig {
		facts, err := v.Watched.Facts()
		if err != nil {
			return wanted{}, err
		}
		one.Blast = profile.BlastOf(profile.PoolsOf(facts, then.GetLabels()), true)
		one.Impact, one.Reason = v1alpha1.ImpactHigh, fmt.Sprintf("kernel arguments change back: %d nodes reboot", one.Blast.Nodes)
	}
	ref := refOf(v1alpha1.PlanItem{TargetRef: item.TargetRef})
	captured, existed := before[ref.ID]
	if !existed || item.Action == v1alpha1.ItemCreate {
		one.Object = then.Object
		made, err := manifest.Digester{}.New(then.Object)
		one.Notes = []string{"the run made it; it is deleted"}
		return wanted{Item: one, object: made, delete: true}, err
	}
	was := &unstructured.Unstructured{}
	if err := was.UnmarshalJSON(captured.JSON); err != nil {
		return wanted{}, fmt.Errorf("reading what %s was: %w", item.TargetRef.Name, err)
	}
	object := map[string]any{
		"apiVersion": then.GetAPIVersion(), "kind": then.GetKind(),
		"metadata": map[string]any{"name": then.GetName()},
	}
	if namespace := then.GetNamespace(); namespace != "" {
		object["metadata"].(map[string]any)["namespace"] = namespace
	}
	old := was.GetLabels()
	labels := map[string]any{}
	for key := range then.GetLabels() {
		if value, had := old[key]; had {
			labels[key] = value
		}
	}
	if len(labels) > 0 {
		object["metadata"].(map[string]any)["labels"] = labels
	}
	for key, value := range then.Object {
		switch key {
		case "apiVersion", "kind", "metadata", "status":
		default:
			if old, had := asBefore(value, was.Object[key]); had {
				object[key] = old
			}
		}
	}
	one.Object = object
	return v.sealed(one)
}

// asBefore is what was at the fields that were set; had is false where there was
// nothing. Lists are taken whole.
func asBefore(set, was any) (value any, had bool) {
	if was == nil {
		return nil, false
	}
	fields, isMap := set.(map[string]any)
	old, wasMap := was.(map[string]any)
	if !isMap || !wasMap {
		return was, true
	}
	out := map[string]any{}
	for key, value := range fields {
		if was, had := asBefore(value, old[key]); had {
			out[key] = was
		}
	}
	return out, true
}
