package plan

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/governance"
	"github.com/penstock-project/penstock/pkg/governance/profile"
	"github.com/penstock-project/penstock/pkg/manifest"
)

// restored returns the targets as they were before a run, in reverse order. It covers fields that
// the run set, and fields of an earlier run that it gave up. A field that had a value gets it back.
// A field that had none is given up. A target that the run created is deleted, and a target that it
// deleted is created.
func (s *scope) restored(ctx context.Context) ([]wanted, error) {
	number := s.plan.Spec.RestoreRun
	row, err := s.runOf(ctx, number)
	if err != nil {
		return nil, err
	}
	if row == nil {
		return nil, fmt.Errorf("there is no record of run %d, so nothing can be restored from it", number)
	}
	applied, err := s.Packs.Read(ctx, row.Manifests)
	if err != nil {
		return nil, fmt.Errorf("reading what run %d applied: %w", number, err)
	}
	before := map[manifest.ID]manifest.Object{}
	if row.Captured != "" {
		objects, err := s.Packs.Objects(ctx, row.Captured)
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
		target, err := s.restore(ctx, item, applied, before)
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

func (s *scope) restore(ctx context.Context, item v1alpha1.PlanRunItem, applied map[manifest.Digest][]byte, before map[manifest.ID]manifest.Object) (wanted, error) {
	then := &unstructured.Unstructured{}
	if err := then.UnmarshalJSON(applied[manifest.Digest(item.Digest)]); err != nil {
		return wanted{}, fmt.Errorf("reading what was applied to %s: %w", item.TargetRef.Name, err)
	}
	one := profile.Item{Name: "restore-" + strings.TrimPrefix(item.Name, "restore-"), Impact: v1alpha1.ImpactMedium, Reason: "what there was before is restored"}
	ref := refOf(v1alpha1.PlanItem{TargetRef: item.TargetRef})
	captured, existed := before[ref.ID]
	if !existed || item.Action == v1alpha1.ItemCreate {
		one.Object = then.Object
		made, err := manifest.Digester{}.New(then.Object)
		one.Notes = []string{"the run created the object; it is deleted"}
		return wanted{Item: one, object: made, delete: true}, err
	}
	was := &unstructured.Unstructured{}
	if err := was.UnmarshalJSON(captured.JSON); err != nil {
		return wanted{}, fmt.Errorf("reading what %s was: %w", item.TargetRef.Name, err)
	}
	earlier, known, err := s.appliedBefore(ctx, was)
	if err != nil {
		return wanted{}, err
	}
	if !known {
		one.Notes = append(one.Notes, fmt.Sprintf(
			"there is no record of what was applied before run %d: fields that the run gave up do not come back", s.plan.Spec.RestoreRun))
	}
	one.Object = sameFields(merged(then.Object, earlier), was)
	return s.sealed(one)
}

// appliedBefore returns the content that an earlier run of any plan had applied to the given state
// of a target; nil for none. known is false if the history no longer has that content.
func (s *scope) appliedBefore(ctx context.Context, was *unstructured.Unstructured) (earlier map[string]any, known bool, err error) {
	marks := was.GetAnnotations()
	digest, plan := marks[v1alpha1.AppliedHashAnnotation], marks[v1alpha1.GovernedByAnnotation]
	if digest == "" || plan == "" {
		return nil, true, nil
	}
	rows, err := s.Runs.List(ctx, plan)
	if err != nil {
		return nil, false, fmt.Errorf("reading the runs of plan %s: %w", plan, err)
	}
	for _, row := range rows {
		did, err := readRun(plan, row)
		if err != nil {
			return nil, false, err
		}
		if !slices.ContainsFunc(did.Items, func(item v1alpha1.PlanRunItem) bool { return item.Digest == digest }) {
			continue
		}
		applied, err := s.Packs.Read(ctx, did.Manifests)
		if err != nil {
			return nil, false, fmt.Errorf("reading what run %d of plan %s applied: %w", did.Run, plan, err)
		}
		if body, found := applied[manifest.Digest(digest)]; found {
			err := json.Unmarshal(body, &earlier)
			return earlier, true, err
		}
	}
	return nil, false, nil
}

// merged returns the fields of two objects. If both have a value that is not a map, the first one
// wins.
func merged(one, other map[string]any) map[string]any {
	out := maps.Clone(one)
	for key, value := range other {
		had, both := one[key]
		fields, isMap := had.(map[string]any)
		more, alsoMap := value.(map[string]any)
		switch {
		case !both:
			out[key] = value
		case isMap && alsoMap:
			out[key] = merged(fields, more)
		}
	}
	return out
}

// sameFields returns the former values of the fields in set, as far as they existed. From metadata
// it takes labels only.
func sameFields(set map[string]any, was *unstructured.Unstructured) map[string]any {
	metadata := map[string]any{"name": was.GetName()}
	if namespace := was.GetNamespace(); namespace != "" {
		metadata["namespace"] = namespace
	}
	names, _, _ := unstructured.NestedMap(set, "metadata", "labels")
	old, labels := was.GetLabels(), map[string]any{}
	for key := range names {
		if value, had := old[key]; had {
			labels[key] = value
		}
	}
	if len(labels) > 0 {
		metadata["labels"] = labels
	}
	object := map[string]any{"apiVersion": set["apiVersion"], "kind": set["kind"], "metadata": metadata}
	for key, value := range set {
		switch key {
		case "apiVersion", "kind", "metadata", "status":
		default:
			if old, had := asBefore(value, was.Object[key]); had {
				object[key] = old
			}
		}
	}
	return object
}

// asBefore returns the former values of the fields that were set. had is false if there were none.
// Lists are taken whole.
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
