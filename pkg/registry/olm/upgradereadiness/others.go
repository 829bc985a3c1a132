package upgradereadiness

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	hcov1alpha1 "github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/authz"
	"github.com/penstock-project/penstock/pkg/chartkind"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/readiness"
	"github.com/penstock-project/penstock/pkg/registry/olm/clusterextensionrevision"
)

// objectsToRead returns the objects of revisions whose state in the cluster is needed.
func objectsToRead(chains map[string][]*olm.ClusterExtensionRevision) map[manifest.ID]bool {
	wanted := map[manifest.ID]bool{}
	for _, revisions := range chains {
		for i, role := range sorted(revisions) {
			if role == readiness.Earlier || revisions[i].Target() != "" {
				continue
			}
			for _, ref := range clusterextensionrevision.Refs(revisions[i]) {
				if readiness.StateMatters(ref.ID) {
					wanted[ref.ID] = true
				}
			}
		}
	}
	return wanted
}

// others judges plans and ChartKinds. It returns the parts that Penstock could not read.
func (r *reading) others(ctx context.Context, judge *readiness.Judge) (notLooked []string, err error) {
	for _, one := range []struct {
		right authz.Right
		there bool
		judge func() error
	}{
		{authz.On(hcov1alpha1.SchemeGroupVersion.WithResource("configurationplans"), "list", "", ""), r.deps.Plans != nil, func() error {
			plans, err := r.deps.Plans(ctx)
			for i := range plans {
				judge.Plan(&plans[i])
			}
			return err
		}},
		{authz.On(chartkind.Resource, "list", "", ""), r.deps.ChartKinds != nil, func() error {
			kinds, err := r.deps.ChartKinds(ctx)
			for i := range kinds {
				judge.ChartKind(&kinds[i])
			}
			return err
		}},
	} {
		if !one.there {
			continue
		}
		may, err := one.right.Has(ctx, r.deps.Authorizer, r.caller)
		switch {
		case err != nil:
			return nil, apierrors.NewServiceUnavailable(fmt.Sprintf("whether you may %s cannot be found out: %v", one.right, err))
		case !may:
			notLooked = append(notLooked, fmt.Sprintf("you cannot %s", one.right))
			continue
		}
		if err := one.judge(); err != nil {
			notLooked = append(notLooked, err.Error())
		}
	}
	return notLooked, nil
}
