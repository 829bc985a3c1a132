package plan

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/governance/profile"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/rollout"
	"github.com/penstock-project/penstock/pkg/rollout/managedfields"
	"github.com/penstock-project/penstock/pkg/rollout/observe"
)

// takesMoreFields returns the fields that an item would now take from other managers beyond the reviewed
// fields; empty for none. A change of manager does not change the value, so the diff does not show
// it. takesMoreFields reads watched objects, and sends a dry-run only if they have such fields. While the
// target is not watched, it returns "", and the turn of the item checks it again.
func (s *scope) takesMoreFields(ctx context.Context, item v1alpha1.PlanItem, manifests map[manifest.Digest][]byte) (string, error) {
	if item.Action == v1alpha1.ItemNone || item.Action == v1alpha1.ItemDelete {
		return "", nil
	}
	ref := refOf(item)
	live, presence := watchedTarget(s.Engine.Observer, ref.ID)
	raw, found := manifests[ref.Digest]
	if presence != observe.Present || !found {
		return "", nil
	}
	var content map[string]any
	if err := utiljson.Unmarshal(raw, &content); err != nil { // keeps integers as integers
		return "", err
	}
	may := mayTake(item)
	if len(rollout.TakesMore(content, live, s.Engine.Identity(string(s.plan.Spec.Profile)).Manager, may)) == 0 {
		return "", nil
	}
	work, err := s.worked([]wanted{{Item: profile.Item{Name: item.Name}, object: manifest.Object{Ref: ref, JSON: raw}}})
	if err != nil {
		return "", err
	}
	said, err := s.previewer().Preview(ctx, work, nil)
	if err != nil {
		return "", err
	}
	var more []string
	for _, seen := range said.Items {
		more = append(more, rollout.Beyond(seen.Taken, may)...)
	}
	if len(more) == 0 {
		return "", nil
	}
	return "changed since it was reviewed; " + strings.Join(more, ", "), nil
}

// markReclaimed marks the fields that the plan once had and other managers took. An annotation on
// the target identifies the last applied manifest, which is looked up in the runs.
func (s *scope) markReclaimed(ctx context.Context, item *v1alpha1.PlanItem, live *manifest.Object) error {
	if len(item.Takes) == 0 || live == nil {
		return nil
	}
	applied, err := s.appliedTo(ctx, *item, live)
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

// appliedTo returns the last manifest that a run of this plan applied to a target, or nil.
func (s *scope) appliedTo(ctx context.Context, item v1alpha1.PlanItem, live *manifest.Object) (map[string]any, error) {
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
	rows, err := s.runs(ctx)
	if err != nil {
		return nil, err
	}
	for _, row := range rows {
		for _, did := range row.Items {
			if did.Digest != digest || did.TargetRef != item.TargetRef || did.StartedAt == nil {
				continue
			}
			bodies, err := s.Packs.Read(ctx, row.Manifests)
			if err != nil {
				return nil, fmt.Errorf("reading what run %d applied: %w", row.Run, err)
			}
			var applied map[string]any
			if err := json.Unmarshal(bodies[manifest.Digest(digest)], &applied); err != nil {
				return nil, fmt.Errorf("reading what run %d applied to %s: %w", row.Run, live.ID, err)
			}
			return applied, nil
		}
	}
	return nil, nil
}

// hasNoManagers reports whether managedFields of a target are empty: they were wiped, or the target
// is older than managedFields. Then the owner of a field is unknown.
func (s *scope) hasNoManagers(id manifest.ID) bool {
	live, presence := watchedTarget(s.Engine.Observer, id)
	return presence == observe.Present && len(live.GetManagedFields()) == 0
}

// fieldsOf returns the fields of an object that a plan may take: all except metadata.
func fieldsOf(object *manifest.Object) map[string]any {
	var fields map[string]any
	if err := json.Unmarshal(object.JSON, &fields); err != nil {
		return nil // it was encoded as JSON
	}
	delete(fields, "metadata")
	return fields
}
