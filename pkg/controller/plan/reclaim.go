package plan

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/rollout/managedfields"
)

// reclaim tells the fields that others have taken from the plan from those that were
// never its own. What was applied last is named on the target itself; it is looked up
// in the runs.
func (v *visit) reclaim(ctx context.Context, item *v1alpha1.PlanItem, live *manifest.Object) error {
	if len(item.Takes) == 0 || live == nil {
		return nil
	}
	applied, err := v.appliedTo(ctx, *item, live)
	if err != nil || applied == nil {
		return err
	}
	var takes []v1alpha1.TakenFields
	for _, one := range item.Takes {
		back := v1alpha1.TakenFields{Manager: one.Manager, Reclaimed: true}
		left := v1alpha1.TakenFields{Manager: one.Manager}
		for _, path := range one.Fields {
			if managedfields.Sets(applied, path) {
				back.Fields = append(back.Fields, path)
			} else {
				left.Fields = append(left.Fields, path)
			}
		}
		for _, part := range []v1alpha1.TakenFields{left, back} {
			if len(part.Fields) > 0 {
				takes = append(takes, part)
			}
		}
	}
	item.Takes = takes
	return nil
}

// appliedTo is the manifest that a run of this plan applied to a target last, or nil.
func (v *visit) appliedTo(ctx context.Context, item v1alpha1.PlanItem, live *manifest.Object) (map[string]any, error) {
	var marks struct {
		Metadata struct{ Annotations map[string]string }
	}
	if err := json.Unmarshal(live.JSON, &marks); err != nil {
		return nil, fmt.Errorf("reading the marks of %s: %w", live.ID, err)
	}
	digest := marks.Metadata.Annotations[v1alpha1.AppliedHashAnnotation]
	if digest == "" {
		return nil, nil
	}
	rows, err := v.runs(ctx)
	if err != nil {
		return nil, err
	}
	for _, row := range rows {
		for _, did := range row.Items {
			if did.Digest != digest || did.TargetRef != item.TargetRef || did.StartedAt == nil {
				continue
			}
			held, err := v.Packs.Read(ctx, row.Manifests)
			if err != nil {
				return nil, fmt.Errorf("reading what run %d applied: %w", row.Run, err)
			}
			var applied map[string]any
			if err := json.Unmarshal(held[manifest.Digest(digest)], &applied); err != nil {
				return nil, fmt.Errorf("reading what run %d applied to %s: %w", row.Run, live.ID, err)
			}
			return applied, nil
		}
	}
	return nil, nil
}
