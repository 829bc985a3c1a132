package install

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	catalogv1alpha1 "github.com/penstock-project/penstock/pkg/apis/catalog/v1alpha1"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/extension"
)

// NameTaken says why revisions that are there keep the name of a request from being used, empty
// when they do not. Revisions of other names are none of its.
func (r Request) NameTaken(revisions []v1alpha1.ClusterExtensionRevision) string {
	for i := range revisions {
		one := &revisions[i]
		owner := metav1.GetControllerOf(one)
		switch {
		case one.Labels[v1alpha1.ChainLabel] != r.Name:
		case owner != nil && owner.Kind == extension.Kind.Kind && owner.Name == r.Name:
			return fmt.Sprintf("%s belongs to an earlier ClusterExtension %s, and is being deleted: wait until it is gone, or use another name", one.Name, r.Name)
		case owner != nil:
			return fmt.Sprintf("%s belongs to %s %s: use another name", one.Name, owner.Kind, owner.Name)
		case r.Manual && one.Annotations[extension.ProposedAnnotation] != "true":
			return fmt.Sprintf("%s exists already, and no ClusterExtension has made it: use another name; or have each version rolled out at once, which takes over the existing objects", one.Name)
		}
	}
	return ""
}

// Hindered says why a request would install nothing, as things are; empty when nothing is known
// that keeps it. Version is what it leads to, and may be empty.
func (r Request) Hindered(offered *catalogv1alpha1.CatalogPackage, version string) string {
	for _, there := range offered.Installed {
		if there.Extension != r.Name {
			return InstalledAlready(there, r.Name)
		}
	}
	for _, one := range offered.Versions {
		if one.Version == version && one.Unsupported != "" {
			return fmt.Sprintf("%s cannot be installed: %s", version, one.Unsupported)
		}
	}
	return ""
}

// Latest is the latest version of the default channel, or of the package when that has no such
// channel; and, where others have a higher one, that with their names: "1.2.0 in candidate".
func Latest(offered *catalogv1alpha1.CatalogPackage) (version, elsewhere string) {
	at := slices.IndexFunc(offered.Channels, func(one catalogv1alpha1.PackageChannel) bool { return one.Name == offered.DefaultChannel })
	if at < 0 || offered.Channels[at].Latest == "" || offered.Channels[at].Latest == offered.Latest {
		return offered.Latest, ""
	}
	var others []string
	for _, one := range offered.Channels {
		if one.Latest == offered.Latest {
			others = append(others, one.Name)
		}
	}
	if offered.Latest != "" && len(others) > 0 {
		elsewhere = offered.Latest + " in " + strings.Join(others, ", ")
	}
	return offered.Channels[at].Latest, elsewhere
}
