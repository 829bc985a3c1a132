package plan

import (
	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/rollout/observe"
)

// Names are the marks on targets. There is no label: targets belong to others, and
// are watched by name.
func Names() observe.Names {
	return observe.Names{AppliedAnnotation: v1alpha1.AppliedHashAnnotation, ManagerPrefix: v1alpha1.FieldManagerPrefix}
}
