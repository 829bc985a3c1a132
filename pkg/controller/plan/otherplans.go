package plan

import (
	"context"
	"fmt"
	"slices"
	"strings"

	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/governance"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/planwork"
)

// neighbours returns the plans of other profiles that share a target with a plan. It sends no
// request, because plans are in the cache.
func (r *reconciler) neighbours(ctx context.Context, plan *v1alpha1.ConfigurationPlan) ([]v1alpha1.ConfigurationPlan, error) {
	var all v1alpha1.ConfigurationPlanList
	if err := r.Client.List(ctx, &all); err != nil {
		return nil, fmt.Errorf("listing the plans that plan %s shares targets with: %w", plan.Name, err)
	}
	return slices.DeleteFunc(all.Items, func(other v1alpha1.ConfigurationPlan) bool { return !shares(plan, &other) }), nil
}

func shares(plan, other *v1alpha1.ConfigurationPlan) bool {
	return other.Name != plan.Name && other.Spec.Profile != plan.Spec.Profile &&
		slices.ContainsFunc(other.Status.Items, func(theirs v1alpha1.PlanItem) bool {
			return slices.ContainsFunc(plan.Status.Items, func(mine v1alpha1.PlanItem) bool { return mine.TargetRef == theirs.TargetRef })
		})
}

// rivals names the plans of other profiles that set fields of this plan to other values, and these
// fields; empty if there are none. If both were executed, each would undo the other, in any order.
func (s *scope) rivals(ctx context.Context) (string, error) {
	others, err := s.neighbours(ctx, s.plan)
	if err != nil {
		return "", err
	}
	others = slices.DeleteFunc(others, func(other v1alpha1.ConfigurationPlan) bool {
		return !governance.MayConflict(s.plan.Status.Phase, &other)
	})
	if len(others) == 0 {
		return "", nil
	}
	mine, err := s.intents(ctx, s.plan)
	if err != nil {
		return "", err
	}
	var said []string
	for i := range others {
		theirs, err := s.intents(ctx, &others[i])
		if err != nil {
			return "", err
		}
		for _, item := range s.plan.Status.Items {
			their, both := theirs[item.TargetRef]
			if fields := contested(mine[item.TargetRef], their); both && len(fields) > 0 {
				said = append(said, fmt.Sprintf("plan %q of profile %s, which is %s, sets %s of %s %s to other values",
					others[i].Name, others[i].Spec.Profile, others[i].Status.Phase, strings.Join(fields, ", "), item.TargetRef.Kind, item.TargetRef.Name))
			}
		}
	}
	if len(said) == 0 {
		return "", nil
	}
	return strings.Join(said, "; ") + "; only one of them can be executed: change the options of one, set its action to Ignore, or delete it", nil
}

// contested returns the fields that two plans set to different values. A plan that deletes the
// object has no intent, and contests the whole object.
func contested(one, other map[string]any) []string {
	switch {
	case one == nil && other == nil:
		return nil
	case one == nil || other == nil:
		return []string{"all"}
	default:
		return governance.Overlap(one, other)
	}
}

// intents returns the desired targets of a plan; nil for a target that it deletes.
func (s *scope) intents(ctx context.Context, plan *v1alpha1.ConfigurationPlan) (map[v1alpha1.TargetRef]map[string]any, error) {
	manifests, err := s.Packs.Read(ctx, plan.Status.Manifests)
	if err != nil {
		return nil, fmt.Errorf("reading the manifests of plan %s: %w", plan.Name, err)
	}
	out := map[v1alpha1.TargetRef]map[string]any{}
	for _, item := range plan.Status.Items {
		out[item.TargetRef] = nil
		if planwork.Goes(item) {
			continue
		}
		var content map[string]any
		if err := utiljson.Unmarshal(manifests[manifest.Digest(item.Digest)], &content); err != nil {
			return nil, fmt.Errorf("reading the manifest of item %s of plan %s: %w", item.Name, plan.Name, err)
		}
		out[item.TargetRef] = content
	}
	return out, nil
}

// neighboursOf enqueues the plans that share targets with a changed plan, or require its profile:
// the change may end their wait. The cache already has the change.
func (r *reconciler) neighboursOf(ctx context.Context, changed client.Object) []reconcile.Request {
	plan, ok := changed.(*v1alpha1.ConfigurationPlan)
	if !ok {
		return nil
	}
	var all v1alpha1.ConfigurationPlanList
	if err := r.Client.List(ctx, &all); err != nil {
		return nil // the term has ended, and the cache with it
	}
	var requests []reconcile.Request
	for i := range all.Items {
		if other := &all.Items[i]; shares(plan, other) || slices.Contains(other.Spec.Requires, plan.Spec.Profile) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(other)})
		}
	}
	return requests
}
