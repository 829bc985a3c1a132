package planwork

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/authz"
)

// Kinds maps a kind to its resource. *targetclient.Client implements it.
type Kinds interface {
	Served(ctx context.Context, kind schema.GroupVersionKind) (*meta.RESTMapping, error)
}

// Rights returns the rights that the approver of a plan needs: the verb approve, and the verbs of
// each item on its target. Penstock checks them on approval, and again before the execution.
func Rights(ctx context.Context, kinds Kinds, plan *v1alpha1.ConfigurationPlan) ([]authz.Right, error) {
	rights := []authz.Right{{
		Verb: "approve", Group: v1alpha1.GroupName, Version: v1alpha1.SchemeGroupVersion.Version, Resource: "configurationplans", Name: plan.Name,
	}}
	for _, item := range plan.Status.Items {
		verbs := verbsOf(item.Action)
		if len(verbs) == 0 {
			continue
		}
		ref := Ref(item.TargetRef, item.Digest)
		mapping, err := kinds.Served(ctx, ref.GroupVersionKind())
		if err != nil {
			return nil, fmt.Errorf("finding the resource of item %s: %w", item.Name, err)
		}
		for _, verb := range verbs {
			rights = append(rights, authz.On(mapping.Resource, verb, ref.Namespace, ref.Name))
		}
	}
	return rights, nil
}

// verbsOf returns the verbs that an action needs. Server-side apply needs both create and patch to
// create a target.
func verbsOf(action v1alpha1.ItemAction) []string {
	switch action {
	case v1alpha1.ItemCreate:
		return []string{"create", "patch"}
	case v1alpha1.ItemUpdate:
		return []string{"patch"}
	case v1alpha1.ItemDelete:
		return []string{"delete"}
	default:
		return nil
	}
}
