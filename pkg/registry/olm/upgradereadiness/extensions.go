package upgradereadiness

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apiserver/pkg/authentication/user"

	catalogv1alpha1 "github.com/penstock-project/penstock/pkg/apis/catalog/v1alpha1"
	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/authz"
	"github.com/penstock-project/penstock/pkg/chartkind"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/readiness"
	"github.com/penstock-project/penstock/pkg/registry/olm/clusterextensionrevision"
)

// maxAsked bounds the revisions for which Penstock checks single rights to manifests. It does so
// for callers without the right to all manifests.
const maxAsked = 100

// reading is one answer, for one caller.
type reading struct {
	deps   Deps
	caller user.Info
	// manifests, lists and packages are rights of the caller: to get the manifests of all
	// revisions, to list revisions, and to list the packages of catalogs.
	manifests, lists, packages bool
	// may holds the answers for single revisions.
	may map[string]bool
}

// rights checks the caller's rights to all revisions and packages.
func (r *reading) rights(ctx context.Context) error {
	revisions := v1alpha1.SchemeGroupVersion.WithResource("clusterextensionrevisions")
	for _, one := range []struct {
		right authz.Right
		is    *bool
	}{
		{manifestsOf(""), &r.manifests},
		{authz.On(revisions, "list", "", ""), &r.lists},
		{authz.On(catalogv1alpha1.SchemeGroupVersion.WithResource("catalogpackages"), "list", "", ""), &r.packages},
	} {
		may, err := one.right.Has(ctx, r.deps.Authorizer, r.caller)
		if err != nil {
			return apierrors.NewServiceUnavailable(fmt.Sprintf("whether you may %s cannot be found out: %v", one.right, err))
		}
		*one.is = may
	}
	return nil
}

func manifestsOf(revision string) authz.Right {
	one := authz.On(v1alpha1.SchemeGroupVersion.WithResource("clusterextensionrevisions"), "get", "", revision)
	one.Subresource = "manifests"
	return one
}

// mayRead reports whether the caller may get the manifests of a revision.
func (r *reading) mayRead(ctx context.Context, revision string) (bool, error) {
	if r.manifests {
		return true, nil
	}
	if len(r.may) >= maxAsked {
		return false, nil
	}
	may, err := manifestsOf(revision).Has(ctx, r.deps.Authorizer, r.caller)
	if err != nil {
		return false, apierrors.NewServiceUnavailable(fmt.Sprintf("whether you may %s cannot be found out: %v", manifestsOf(revision), err))
	}
	r.may[revision] = may
	return may, nil
}

// extension reads the revisions of an extension to judge. shown is false if the caller must not
// know the extension, or if it is rolled out into another cluster.
func (r *reading) extension(ctx context.Context, chain string, revisions []*olm.ClusterExtensionRevision) (one *readiness.Extension, shown bool, err error) {
	roles := sorted(revisions)
	if revisions[0].Target() != "" {
		return nil, false, nil
	}
	one = &readiness.Extension{Name: chain}
	shown = r.lists
	hidden := 0
	for i, revision := range revisions {
		may, err := r.mayRead(ctx, revision.Name)
		if err != nil {
			return nil, false, err
		}
		if !may {
			hidden++
			continue
		}
		shown = true
		read := readiness.Revision{Name: revision.Name, Role: roles[i]}
		read.Objects, err = r.objects(ctx, revision, roles[i])
		if err != nil {
			one.NotLooked = fmt.Sprintf("the manifests of %s cannot be read", revision.Name)
		}
		one.Revisions = append(one.Revisions, read)
		one.Acknowledge(revision.Annotations)
	}
	if hidden > 0 {
		one.NotLooked = "you cannot get the manifests of all revisions"
		if r.lists { // other callers do not learn the number of revisions
			one.NotLooked = fmt.Sprintf("you cannot get the manifests of %d of %d revisions", hidden, len(revisions))
		}
		if len(r.may) >= maxAsked {
			one.NotLooked += fmt.Sprintf(": for a user who cannot get all, Penstock asks for at most %d", maxAsked)
		}
	}
	if shown {
		r.statement(one, revisions, roles)
	}
	return one, shown, nil
}

// sorted sorts revisions, newest first, and returns their roles.
func sorted(revisions []*olm.ClusterExtensionRevision) []readiness.Role {
	slices.SortFunc(revisions, func(a, b *olm.ClusterExtensionRevision) int { return cmp.Compare(b.Spec.Revision, a.Spec.Revision) })
	return rolesOf(revisions)
}

// rolesOf returns the roles of revisions that are sorted newest first. The newest approved revision
// is rolled out. The newest succeeded revision is kept until the newest revision has succeeded.
func rolesOf(revisions []*olm.ClusterExtensionRevision) []readiness.Role {
	roles := make([]readiness.Role, len(revisions))
	newest, succeeded := true, false
	for i, revision := range revisions {
		switch {
		case revision.IsLayer() && revision.Annotations[v1alpha1.ProposedAnnotation] == "true" && revision.Spec.LifecycleState == olm.LifecycleStatePaused:
			roles[i] = readiness.Proposed
		case !revision.IsLayer() || succeeded:
			roles[i] = readiness.Earlier
		default:
			if succeeded = hasSucceeded(revision); !newest && !succeeded {
				roles[i] = readiness.Earlier
			}
			newest = false
		}
	}
	return roles
}

func hasSucceeded(revision *olm.ClusterExtensionRevision) bool {
	return meta.IsStatusConditionTrue(revision.Status.Conditions, v1alpha1.ConditionSucceeded)
}

// objects returns the objects of a revision. It reads the manifests if an object needs its
// manifest.
func (r *reading) objects(ctx context.Context, revision *olm.ClusterExtensionRevision, role readiness.Role) ([]manifest.Object, error) {
	var out []manifest.Object
	needed := false
	for _, ref := range clusterextensionrevision.Refs(revision) {
		needed = needed || readiness.NeedsManifest(ref.ID, role)
		out = append(out, manifest.Object{Ref: ref})
	}
	if !needed {
		return out, nil
	}
	read, err := r.deps.Revisions.Contents(ctx, revision)
	if err != nil {
		return out, err
	}
	return read, nil
}

// statement sets the catalogs' statement about the currently rolled-out revision, as far as the
// caller may know it.
func (r *reading) statement(one *readiness.Extension, revisions []*olm.ClusterExtensionRevision, roles []readiness.Role) {
	at := slices.Index(roles, readiness.RolledOut)
	if at < 0 || !r.lists && !r.manifests && !r.may[revisions[at].Name] {
		return
	}
	said := revisions[at].Annotations
	one.Version = said[v1alpha1.VersionAnnotation]
	pkg := said[v1alpha1.PackageAnnotation]
	var why string
	switch {
	case pkg == "" || said[chartkind.ResourceAnnotation] != "" || r.deps.Statements == nil:
	case !r.packages:
		why = "you cannot list catalogpackages, which say what the package supports"
	default:
		var err error
		if one.Statement, err = r.deps.Statements(pkg, said[v1alpha1.BundleAnnotation], one.Version); err != nil {
			why = fmt.Sprintf("package %s: %v", pkg, err)
		}
	}
	one.Statement.Or(readiness.StatedIn(said))
	if one.NotLooked == "" {
		one.NotLooked = why
	}
}
