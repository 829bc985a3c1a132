package catalogpackage

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/warning"

	"github.com/penstock-project/penstock/pkg/apis/catalog/v1alpha1"
	"github.com/penstock-project/penstock/pkg/catalog/inventory"
)

// List returns the selected packages, sorted by name. All pages show the same version of the
// catalogs.
func (r *REST) List(ctx context.Context, options *metainternalversion.ListOptions) (runtime.Object, error) {
	at, start, err := r.page(options)
	if err != nil {
		return nil, err
	}
	c := chosenBy(options)
	names := c.names(at)
	first, _ := slices.BinarySearch(names, start)
	list := &v1alpha1.CatalogPackageList{ListMeta: metav1.ListMeta{ResourceVersion: at.Version().String()}, Items: []v1alpha1.CatalogPackage{}}
	installed := r.installedNow(ctx)
	for i, name := range names[first:] {
		if options != nil && options.Limit > 0 && int64(len(list.Items)) == options.Limit {
			if err := endPage(list, at, c, list.Items[len(list.Items)-1].Name, len(names)-first-i); err != nil {
				return nil, err
			}
			break
		}
		if found := c.packageOf(at, name, installed); found != nil {
			list.Items = append(list.Items, *found)
		}
	}
	warnUnread(ctx, at)
	return list, nil
}

// page returns the snapshot to list, and the first name of the page.
func (r *REST) page(options *metainternalversion.ListOptions) (*inventory.Snapshot, string, error) {
	if options == nil || options.Continue == "" {
		at, err := r.at(options)
		return at, "", err
	}
	current, err := r.known()
	if err != nil {
		return nil, "", err
	}
	if options.ResourceVersion != "" && options.ResourceVersion != "0" {
		return nil, "", apierrors.NewBadRequest("specifying resource version is not allowed when using continue")
	}
	start, version, err := storage.DecodeContinue(options.Continue, "")
	if err != nil {
		return nil, "", apierrors.NewBadRequest(fmt.Sprintf("invalid continue token: %v", err))
	}
	at := r.catalogs.At(inventory.Version(version))
	if at == nil || !at.Complete() {
		return nil, "", gone(inventory.Version(version), current)
	}
	return at, start, nil
}

// endPage ends a page after a name. Like etcd's lists, it sets the number of remaining items only if
// the selectors match all packages.
func endPage(list *v1alpha1.CatalogPackageList, at *inventory.Snapshot, c *chosen, last string, left int) error {
	token, err := storage.EncodeContinue("/"+last+"\x00", "/", int64(at.Version()))
	if err != nil {
		return apierrors.NewInternalError(fmt.Errorf("making a token to continue with: %w", err))
	}
	list.Continue = token
	if c.all() {
		remaining := int64(left)
		list.RemainingItemCount = &remaining
	}
	return nil
}

// warnUnread adds warnings about missing parts of a list.
func warnUnread(ctx context.Context, at *inventory.Snapshot) {
	for _, why := range unread(at) {
		warning.AddWarning(ctx, "", why)
	}
	unlisted, catalogs := 0, at.Catalogs()
	for i := range catalogs {
		unlisted += len(catalogs[i].Unlisted())
	}
	switch {
	case unlisted == 1:
		warning.AddWarning(ctx, "", "1 package is left out: its name is not a valid object name")
	case unlisted > 1:
		warning.AddWarning(ctx, "", fmt.Sprintf("%d packages are left out: their names are not valid object names", unlisted))
	}
}

// gone returns the error for an expired version.
func gone(wanted inventory.Version, current *inventory.Snapshot) error {
	return apierrors.NewResourceExpired(fmt.Sprintf("too old resource version: %s (%s): the catalogs have changed, list again", wanted, current.Version()))
}

// tooNew returns the error for a version of another process that is newer than this process's
// catalogs.
func tooNew(wanted inventory.Version, current *inventory.Snapshot) error {
	return storage.NewTooLargeResourceVersionError(uint64(wanted), uint64(current.Version()), 1)
}
