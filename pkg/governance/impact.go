package governance

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/governance/profile"
)

// Weighed returns an item with the impact of its change on nodes (see profile.Weigh). before is the
// present target, and after the target that the cluster would store, as JSON. nil means that it
// does not exist.
func Weighed(item profile.Item, facts profile.Facts, before, after []byte) (profile.Item, error) {
	var objects [2]*unstructured.Unstructured
	for i, raw := range [][]byte{before, after} {
		if raw == nil {
			continue
		}
		objects[i] = &unstructured.Unstructured{}
		if err := objects[i].UnmarshalJSON(raw); err != nil {
			return item, fmt.Errorf("reading the target of item %s: %w", item.Name, err)
		}
	}
	return profile.Weigh(item, facts, objects[0], objects[1]), nil
}

// Worse returns the higher of two severities.
func Worse(one, other v1alpha1.ImpactSeverity) v1alpha1.ImpactSeverity {
	order := []v1alpha1.ImpactSeverity{v1alpha1.ImpactNone, v1alpha1.ImpactLow, v1alpha1.ImpactMedium, v1alpha1.ImpactHigh}
	if slices.Index(order, other) > slices.Index(order, one) {
		return other
	}
	return one
}
