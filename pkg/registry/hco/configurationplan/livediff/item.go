package livediff

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/penstock-project/penstock/pkg/apis/hco"
	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/governance"
	"github.com/penstock-project/penstock/pkg/governance/profile"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/planwork"
)

// Item returns the effect of an item outside a plan, for the caller of a request. shown is false if
// the caller cannot read and change its target. The severity depends on the cluster's answer (see
// profile.Weigh).
func (d *Differ) Item(ctx context.Context, owner v1alpha1.ProfileName, item *profile.Item, facts profile.Facts) (out v1alpha1.PlanDiffItem, shown bool, err error) {
	object, err := manifest.Digester{}.New(item.Object)
	if err != nil {
		return out, false, apierrors.NewBadRequest(fmt.Sprintf("item %s: %s", item.Name, err))
	}
	out = v1alpha1.PlanDiffItem{Name: item.Name, TargetRef: v1alpha1.TargetRef{
		APIVersion: object.GroupVersionKind().GroupVersion().String(), Kind: object.Kind, Namespace: object.Namespace, Name: object.Name,
	}}
	lacks, err := d.lacks(ctx, object.Ref, "get", "patch")
	switch {
	case meta.IsNoMatchError(err):
		out.Message = "its kind is not served"
		return out, true, nil
	case err != nil:
		return out, false, err
	case lacks != "":
		out.Message = "you cannot " + lacks
		return out, false, nil
	}
	work := planwork.PreviewWork(owner, "evaluate", item.Name, object.Ref, false, planwork.Bodies{object.Digest: object.JSON})
	found, err := d.Previewer.Preview(ctx, work, nil)
	if err != nil {
		return out, false, apierrors.NewServiceUnavailable(fmt.Sprintf("the cluster does not answer: %s", err))
	}
	for _, seen := range found.Items {
		if *item, err = governance.Weighed(*item, facts, seen.Before, seen.After); err != nil {
			return out, false, apierrors.NewInternalError(err)
		}
		if err := d.show(ctx, &out, hco.PlanItem{}, seen); err != nil {
			return out, false, apierrors.NewInternalError(err)
		}
	}
	return out, true, nil
}
