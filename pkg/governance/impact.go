package governance

import (
	"slices"

	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
)

// Worse is the higher one of two severities.
func Worse(one, other v1alpha1.ImpactSeverity) v1alpha1.ImpactSeverity {
	order := []v1alpha1.ImpactSeverity{v1alpha1.ImpactNone, v1alpha1.ImpactLow, v1alpha1.ImpactMedium, v1alpha1.ImpactHigh}
	if slices.Index(order, other) > slices.Index(order, one) {
		return other
	}
	return one
}
