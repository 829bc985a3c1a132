package catalogpackage

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/warning"

	"github.com/penstock-project/penstock/pkg/apis/catalog/v1alpha1"
	"github.com/penstock-project/penstock/pkg/catalog/inventory"
	"github.com/penstock-project/penstock/pkg/text"
)

// Inventory reads the catalogs. *inventory.Inventory implements it.
type Inventory interface {
	// Snapshot returns the current catalogs.
	Snapshot() *inventory.Snapshot
	// At returns the catalogs at a version, nil if that version is no longer known.
	At(version inventory.Version) *inventory.Snapshot
}

// Installed returns the installed versions by package that the caller may know. It returns nil for
// a caller without the right.
type Installed func(ctx context.Context) (map[string][]v1alpha1.InstalledVersion, error)

// Storage holds the endpoints.
type Storage struct {
	Package  *REST
	Versions *VersionsREST
	Graph    *GraphREST
	Icon     *IconREST
}

// NewStorage returns the endpoints.
func NewStorage(catalogs Inventory, installed Installed) *Storage {
	common := endpoint{catalogs: catalogs, installed: installed}
	return &Storage{
		Package:  &REST{endpoint: common},
		Versions: &VersionsREST{endpoint: common},
		Graph:    &GraphREST{endpoint: common},
		Icon:     &IconREST{endpoint: common},
	}
}

// endpoint is the shared part of the endpoints.
type endpoint struct {
	catalogs  Inventory
	installed Installed
}

// Destroy does nothing.
func (endpoint) Destroy() {}

// known returns the current catalogs. Before the first list of the cluster's catalogs it returns an
// error: an empty answer would mean that there are no packages.
func (e endpoint) known() (*inventory.Snapshot, error) {
	found := e.catalogs.Snapshot()
	if !found.Complete() {
		return nil, apierrors.NewServiceUnavailable("the catalogs of the cluster are not known yet: try again in a few seconds; if this persists, the log of Penstock says why it cannot list clustercatalogs")
	}
	return found, nil
}

// installedNow returns the installed versions that the caller may know. After an error it adds a
// warning, because an empty answer would mean that nothing is installed.
func (e endpoint) installedNow(ctx context.Context) map[string][]v1alpha1.InstalledVersion {
	found, err := e.installed(ctx)
	if err != nil {
		warning.AddWarning(ctx, "", fmt.Sprintf("installed versions are left out: %v", err))
	}
	return found
}

// REST serves packages: get, list and watch. Clients cannot write packages, so garbage collection
// and quota ignore them.
type REST struct {
	endpoint
	table
}

var (
	_ rest.Getter               = &REST{}
	_ rest.Lister               = &REST{}
	_ rest.Watcher              = &REST{}
	_ rest.Scoper               = &REST{}
	_ rest.SingularNameProvider = &REST{}
	_ rest.ShortNamesProvider   = &REST{}
)

// New returns an empty package.
func (*REST) New() runtime.Object { return &v1alpha1.CatalogPackage{} }

// NewList returns an empty list.
func (*REST) NewList() runtime.Object { return &v1alpha1.CatalogPackageList{} }

// NamespaceScoped is false, as for catalogs.
func (*REST) NamespaceScoped() bool { return false }

// GetSingularName returns the singular name for kubectl.
func (*REST) GetSingularName() string { return "catalogpackage" }

// ShortNames returns the short name for kubectl. It avoids "packages", a name of another API.
func (*REST) ShortNames() []string { return []string{"cpkg"} }

// Get returns the package with a name.
func (r *REST) Get(ctx context.Context, name string, _ *metav1.GetOptions) (runtime.Object, error) {
	at, err := r.known()
	if err != nil {
		return nil, err
	}
	found := everything().packageOf(at, name, r.installedNow(ctx))
	if found == nil {
		return nil, notFound(at, name)
	}
	return found, nil
}

// notFound returns the error for a missing package. It also names the unreadable catalogs, which
// may contain the package.
func notFound(at *inventory.Snapshot, name string) error {
	missing := apierrors.NewNotFound(v1alpha1.Resource("catalogpackages"), name)
	for _, why := range unread(at) {
		missing.ErrStatus.Message += "; " + why
	}
	return missing
}

// maxUnread bounds the list of unreadable catalogs.
const maxUnread = 5

// unread returns the unreadable catalogs with their errors.
func unread(at *inventory.Snapshot) []string {
	var out []string
	for _, one := range at.Catalogs() {
		if one.Index != nil || one.Unavailable {
			continue
		}
		if len(out) == maxUnread {
			return append(out, "other catalogs cannot be read either")
		}
		why := fmt.Sprintf("catalog %s has not been read yet", one.Name)
		if one.Err != nil {
			why = fmt.Sprintf("catalog %s cannot be read: %s", one.Name, text.Line(one.Err.Error(), 200))
		}
		out = append(out, why)
	}
	return out
}
