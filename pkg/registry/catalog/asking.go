package catalog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/authz"
	"github.com/penstock-project/penstock/pkg/clusterversion"
	"github.com/penstock-project/penstock/pkg/extension"
	"github.com/penstock-project/penstock/pkg/registry/catalog/catalogpackage"
	"github.com/penstock-project/penstock/pkg/resolve"
)

// maxAsked bounds the extensions of a package for which Penstock checks single rights. It does so
// for callers who cannot list extensions.
const maxAsked = 100

// Extensions lists the ClusterExtensions of the cluster, with Penstock's own rights.
type Extensions func(ctx context.Context) ([]extension.Extension, error)

// maxClusters bounds the clusters that are asked for one answer.
const maxClusters = 16

// Version returns the version of a target's cluster, if the caller may know it. The target "" is
// the default cluster. The error is the reason why the version is unknown.
type Version func(ctx context.Context, caller user.Info, target string) (clusterversion.Kubernetes, error)

// AskingFor returns the ClusterExtensions that ask for a package. Users with the rights to list
// clusterextensions and clusterextensionrevisions see all of them. Other users see only the
// extensions that they may get with their installed revision.
func AskingFor(extensions Extensions, revisions Revisions, version Version, by authorizer.UnconditionalAuthorizer) catalogpackage.Asking {
	return func(ctx context.Context, name string) ([]catalogpackage.Asked, error) {
		caller, ok := request.UserFrom(ctx)
		if !ok {
			return nil, errors.New("the request has no user")
		}
		sees := readable{by: by, caller: caller}
		if err := sees.findAll(ctx); err != nil {
			return nil, err
		}
		all, err := extensions(ctx)
		if err != nil {
			return nil, apierrors.NewServiceUnavailable(fmt.Sprintf("the ClusterExtensions of the cluster cannot be listed: %v", err))
		}
		all = slices.DeleteFunc(all, func(one extension.Extension) bool {
			return one.Spec.Source.Catalog == nil || one.Spec.Source.Catalog.PackageName != name
		})
		slices.SortFunc(all, func(a, b extension.Extension) int { return cmp.Compare(a.Name, b.Name) })
		if !sees.all && len(all) > maxAsked {
			return nil, apierrors.NewForbidden(extension.Resource.GroupResource(), "", fmt.Errorf("%d of them ask for package %s: for a user who cannot list them, Penstock checks at most %d", len(all), name, maxAsked))
		}
		chains, err := revisions(ctx)
		if err != nil {
			return nil, fmt.Errorf("listing clusterextensionrevisions: %w", err)
		}
		asked, err := sees.of(ctx, all, chains)
		if err != nil || len(asked) == 0 {
			return nil, err
		}
		version.add(ctx, caller, asked)
		return asked, nil
	}
}

// add adds the versions of their clusters to extensions. It asks each cluster once, all in
// parallel.
func (v Version) add(ctx context.Context, caller user.Info, to []catalogpackage.Asked) {
	type answer struct {
		version *clusterversion.Kubernetes
		why     string
	}
	answers := map[string]*answer{}
	var all sync.WaitGroup
	for i := range to {
		target := to[i].Extension.Annotations[extension.TargetAnnotation]
		switch {
		case answers[target] != nil:
			continue
		case len(answers) == maxClusters:
			answers[target] = &answer{why: fmt.Sprintf("one answer asks at most %d clusters", maxClusters)}
			continue
		}
		one := &answer{}
		answers[target] = one
		all.Go(func() {
			found, err := v(ctx, caller, target)
			if err != nil {
				one.why = err.Error()
				return
			}
			one.version = &found
		})
	}
	all.Wait()
	for i := range to {
		one := answers[to[i].Extension.Annotations[extension.TargetAnnotation]]
		to[i].Cluster, to[i].NoCluster = one.version, one.why
	}
}

// readable finds the revisions and extensions that a caller may see.
type readable struct {
	by     authorizer.UnconditionalAuthorizer
	caller user.Info
	// all is true if the caller may see all of them.
	all bool
}

func (s *readable) findAll(ctx context.Context) error {
	for _, one := range []authz.Right{authz.On(extension.Resource, "list", "", ""), authz.On(v1alpha1.SchemeGroupVersion.WithResource("clusterextensionrevisions"), "list", "", "")} {
		may, err := s.may(ctx, one)
		if err != nil || !may {
			return err
		}
	}
	s.all = true
	return nil
}

func (s *readable) may(ctx context.Context, one authz.Right) (bool, error) {
	may, err := one.Has(ctx, s.by, s.caller)
	if err != nil {
		return false, apierrors.NewServiceUnavailable(fmt.Sprintf("whether you may %s cannot be found out: %v", one, err))
	}
	return may, nil
}

// of combines the extensions that the caller may see with their installed bundles.
func (s *readable) of(ctx context.Context, all []extension.Extension, chains map[string][]olm.ClusterExtensionRevision) ([]catalogpackage.Asked, error) {
	var out []catalogpackage.Asked
	for i := range all {
		one := &all[i]
		installed := newestSucceeded(chains[one.Name])
		if !s.all {
			needed := []authz.Right{authz.On(extension.Resource, "get", "", one.Name)}
			if installed != nil {
				needed = append(needed, authz.On(v1alpha1.SchemeGroupVersion.WithResource("clusterextensionrevisions"), "get", "", installed.Name))
			}
			allowed := true
			for _, right := range needed {
				may, err := s.may(ctx, right)
				if err != nil {
					return nil, err
				}
				allowed = allowed && may
			}
			if !allowed {
				continue
			}
		}
		asked := catalogpackage.Asked{Extension: one}
		// A bundle of another package has no successors in this package.
		if installed != nil && installed.Annotations[v1alpha1.PackageAnnotation] == one.Spec.Source.Catalog.PackageName {
			asked.Installed = &resolve.Installed{Name: installed.Annotations[v1alpha1.BundleAnnotation], Version: installed.Annotations[v1alpha1.VersionAnnotation]}
		}
		out = append(out, asked)
	}
	return out, nil
}
