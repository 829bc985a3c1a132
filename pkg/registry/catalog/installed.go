package catalog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"

	catalogv1alpha1 "github.com/penstock-project/penstock/pkg/apis/catalog/v1alpha1"
	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/authz"
	"github.com/penstock-project/penstock/pkg/registry/catalog/catalogpackage"
	"github.com/penstock-project/penstock/pkg/text"
)

// longestVersion bounds a version, in bytes, because users can set the annotation.
const longestVersion = 100

// Revisions returns the revisions of all chains, by chain.
type Revisions func(ctx context.Context) (map[string][]olm.ClusterExtensionRevision, error)

// InstalledBy returns the installed versions from annotations of revisions. It uses the newest
// succeeded revision of each extension. The result is nil for users who cannot list revisions:
// reading packages must not reveal revisions.
func InstalledBy(revisions Revisions, by authorizer.UnconditionalAuthorizer) catalogpackage.Installed {
	return func(ctx context.Context) (map[string][]catalogv1alpha1.InstalledVersion, error) {
		caller, ok := request.UserFrom(ctx)
		if !ok {
			return nil, errors.New("the request has no user")
		}
		allowed, err := authz.On(v1alpha1.SchemeGroupVersion.WithResource("clusterextensionrevisions"), "list", "", "").Has(ctx, by, caller)
		if err != nil {
			return nil, fmt.Errorf("asking whether you may list clusterextensionrevisions: %w", err)
		}
		if !allowed {
			return nil, nil
		}
		chains, err := revisions(ctx)
		if err != nil {
			return nil, fmt.Errorf("listing clusterextensionrevisions: %w", err)
		}
		return installed(chains), nil
	}
}

func installed(chains map[string][]olm.ClusterExtensionRevision) map[string][]catalogv1alpha1.InstalledVersion {
	out := map[string][]catalogv1alpha1.InstalledVersion{}
	for extension, revisions := range chains {
		newest := newestSucceeded(revisions)
		if newest == nil {
			continue
		}
		version := text.Line(newest.Annotations[v1alpha1.VersionAnnotation], longestVersion)
		if name := newest.Annotations[v1alpha1.PackageAnnotation]; name != "" && version != "" {
			out[name] = append(out[name], catalogv1alpha1.InstalledVersion{Extension: extension, Version: version})
		}
	}
	for _, versions := range out {
		slices.SortFunc(versions, func(a, b catalogv1alpha1.InstalledVersion) int { return cmp.Compare(a.Extension, b.Extension) })
	}
	return out
}

// newestSucceeded returns the newest succeeded revision whose objects are in the cluster, or nil.
// Archived revisions have no objects.
func newestSucceeded(revisions []olm.ClusterExtensionRevision) *olm.ClusterExtensionRevision {
	var newest *olm.ClusterExtensionRevision
	for i := range revisions {
		one := &revisions[i]
		counts := one.IsLayer() && meta.IsStatusConditionTrue(one.Status.Conditions, v1alpha1.ConditionSucceeded)
		if counts && (newest == nil || one.Spec.Revision > newest.Spec.Revision) {
			newest = one
		}
	}
	return newest
}
