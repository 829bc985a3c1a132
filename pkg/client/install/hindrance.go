package install

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	catalogv1alpha1 "github.com/penstock-project/penstock/pkg/apis/catalog/v1alpha1"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/extension"
)

// NameTaken returns the reason why existing revisions prevent the use of a request's name; empty if
// they do not. It ignores revisions of other names.
func (r Request) NameTaken(revisions []v1alpha1.ClusterExtensionRevision) string {
	for i := range revisions {
		one := &revisions[i]
		owner := metav1.GetControllerOf(one)
		switch {
		case one.Labels[v1alpha1.ChainLabel] != r.Name:
		case owner != nil && owner.Kind == extension.Kind.Kind && owner.Name == r.Name:
			return fmt.Sprintf("%s belongs to an earlier ClusterExtension %s, and is being deleted: wait until it is deleted, or use another name", one.Name, r.Name)
		case owner != nil:
			return fmt.Sprintf("%s belongs to %s %s: use another name", one.Name, owner.Kind, owner.Name)
		case r.Approval == extension.ApprovalManual && one.Annotations[extension.ProposedAnnotation] != "true":
			return fmt.Sprintf("%s exists already, and no ClusterExtension has made it: use another name; or have each version rolled out at once, which takes over the existing objects", one.Name)
		}
	}
	return ""
}

// Hindered returns the reason why a request would install nothing now; empty if none is known.
// version is the version that the request selects, and may be empty.
func (r Request) Hindered(offered *catalogv1alpha1.CatalogPackage, version string) string {
	for _, there := range offered.Installed {
		if there.Extension != r.Name {
			return InstalledAlready(there, r.Name)
		}
	}
	return cmp.Or(r.Lacks(offered, version), r.OutsideChannels(offered, version))
}

// Lacks returns the settings that a version requires and the request omits, as far as the catalog
// shows; empty for none.
func (r Request) Lacks(offered *catalogv1alpha1.CatalogPackage, version string) string {
	for _, one := range offered.Versions {
		if one.Version != version {
			continue
		}
		// The catalog lists reasons why OLM v1 does not install a version. A setting solves some of
		// them.
		for _, reason := range strings.Split(one.Unsupported, "; ") {
			switch {
			case reason == "":
			case strings.HasPrefix(reason, cannotWatchAll):
				if _, configured := r.Config[watchNamespace]; !configured && r.WatchNamespace == "" {
					return fmt.Sprintf("%s needs the namespace that its operator watches, since it %s: kubectl penstock install %s -n %s --watch-namespace %s", version, reason, r.Package, r.Namespace, r.watches(reason))
				}
			case strings.HasPrefix(reason, hasDependency):
				// The ClusterExtension will wait, and name the commands that install the version.
			default:
				return fmt.Sprintf("%s cannot be installed: %s", version, one.Unsupported)
			}
		}
	}
	return ""
}

// OutsideChannels returns the channels of a version if the request's channels lack the version. It
// is empty if they have it, or if the package does not list the version.
func (r Request) OutsideChannels(offered *catalogv1alpha1.CatalogPackage, version string) string {
	for _, one := range offered.Versions {
		if one.Version != version || len(r.Channels) == 0 || len(one.Channels) == 0 {
			continue
		}
		if !slices.ContainsFunc(one.Channels, func(channel string) bool { return slices.Contains(r.Channels, channel) }) {
			return fmt.Sprintf("version %s is not in channel %s; it is in %s", version, strings.Join(r.Channels, ", "), strings.Join(one.Channels, ", "))
		}
	}
	return ""
}

// These are the server's statements about a version, as pkg/catalog/graph writes them into
// catalogpackages.
const (
	cannotWatchAll = "cannot watch all namespaces"
	hasDependency  = "has a dependency"
)

// watches returns a namespace to watch, for an operator that cannot watch all namespaces.
func (r Request) watches(reason string) string {
	if strings.Contains(reason, "OwnNamespace") {
		return r.Namespace
	}
	return "NAMESPACE"
}

// LeadsTo returns the version that a request selects. It is empty for a range, which Penstock
// resolves.
func (r Request) LeadsTo(offered *catalogv1alpha1.CatalogPackage) string {
	if r.Version != "" {
		for _, one := range offered.Versions {
			if one.Version == r.Version {
				return one.Version
			}
		}
		return ""
	}
	for _, channel := range offered.Channels {
		if slices.Contains(r.Channels, channel.Name) {
			return channel.Latest
		}
	}
	return offered.Latest
}

// DefaultChannel returns the channel of an installation whose request names none: the default
// channel of the package. It is empty, which means every channel, if the package has no such
// channel or no ClusterExtension can name it.
func DefaultChannel(offered *catalogv1alpha1.CatalogPackage) string {
	name := offered.DefaultChannel
	if len(validation.IsDNS1123Subdomain(name)) > 0 || !slices.ContainsFunc(offered.Channels, func(one catalogv1alpha1.PackageChannel) bool { return one.Name == name }) {
		return ""
	}
	return name
}

// Latest returns the latest version of the default channel, or of the package if it has no such
// channel. If other channels have a higher version, elsewhere is that version with their names:
// "1.2.0 in candidate".
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
