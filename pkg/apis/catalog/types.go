package catalog

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// CatalogPackage is a package that the catalogs of this cluster offer. It is computed
// from their indexes whenever it is read, and nothing of it is stored. Where several
// catalogs have a package, it shows the one of the highest priority, of those the first
// by name, and names the others.
type CatalogPackage struct {
	metav1.TypeMeta
	// ObjectMeta has the name of the package; as labels those of the catalog, besides
	// the label catalog with its name; and a resourceVersion that tells one state of
	// the catalogs from another.
	metav1.ObjectMeta
	// Catalog is the one that everything below is from.
	Catalog string
	// Catalogs are all that have the package, the one that counts first.
	Catalogs []PackageCatalog
	// Description is the beginning of what the catalog says.
	Description string
	// DefaultChannel is the one that is followed when none is asked for.
	DefaultChannel string
	// Latest is the version that is installed when nothing is asked for: the highest
	// one that is not deprecated.
	Latest string
	// Deprecation is there when the catalog says that the package should not be used.
	Deprecation *Deprecation
	// Channels are at most 100, by name.
	Channels []PackageChannel
	// Versions are the highest 100. The subresource versions has all of them.
	Versions []PackageVersion
	// VersionCount is how many versions there are.
	VersionCount int32
	// Kinds are what its versions bring, all of them together, at most 200.
	Kinds []PackageKind
	// Installed is what is installed of the package. It is left out for whoever may not
	// list clusterextensionrevisions.
	Installed []InstalledVersion
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// CatalogPackageList is a list of packages.
type CatalogPackageList struct {
	metav1.TypeMeta
	// ListMeta is the standard list metadata.
	metav1.ListMeta
	// Items are the packages, by name.
	Items []CatalogPackage
}

// PackageCatalog is a catalog that has a package.
type PackageCatalog struct {
	// Name of the ClusterCatalog.
	Name string
	// Priority of the ClusterCatalog: of two catalogs the one with the higher priority
	// counts.
	Priority int32
	// Latest is the version that this catalog would install when nothing is asked for.
	Latest string
}

// Deprecation is what a catalog says of something that should not be used.
type Deprecation struct {
	// Message says why, and what to do.
	Message string
}

// PackageChannel is a channel of a package: a part of its upgrades that can be chosen.
type PackageChannel struct {
	// Name of the channel.
	Name string
	// Latest is the highest version in the channel that is not deprecated.
	Latest string
	// Deprecation is there when the catalog says that the channel should not be used.
	Deprecation *Deprecation
}

// PackageVersion is a version of a package.
type PackageVersion struct {
	// Version is as the bundle has it.
	Version string
	// Channels are those that have it.
	Channels []string
	// Deprecation is there when the catalog says that the version should not be used.
	Deprecation *Deprecation
	// Unsupported says why it cannot be installed, as far as the catalog tells.
	Unsupported string
}

// PackageKind is a kind that a package brings.
type PackageKind struct {
	// Group of the kind.
	Group string
	// Version of the kind.
	Version string
	// Kind is its name.
	Kind string
}

// InstalledVersion is a version of a package that is installed.
type InstalledVersion struct {
	// Extension that it is installed as.
	Extension string
	// Version that is installed.
	Version string
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// CatalogPackageVersions is the list of all versions of a package, the highest first.
type CatalogPackageVersions struct {
	metav1.TypeMeta
	// ObjectMeta has the name of the package.
	metav1.ObjectMeta
	// Catalog that they are from.
	Catalog string
	// Versions are at most 2000.
	Versions []BundleVersion
	// Omitted is how many more there are.
	Omitted int32
}

// BundleVersion is one version, as its bundle and the channels that have it say.
type BundleVersion struct {
	// Version is empty when the bundle has none that can be read.
	Version string
	// Bundle is its name.
	Bundle string
	// Channels are those that have it.
	Channels []string
	// Replaces are the versions that it is the upgrade of, or names of bundles that are
	// not in the catalog.
	Replaces []string
	// Skips are versions that it is an upgrade of, too, so that it need not come after
	// others.
	Skips []string
	// SkipRanges are the same as ranges of versions.
	SkipRanges []string
	// Deprecation is there when the catalog says that the version should not be used.
	Deprecation *Deprecation
	// Unsupported says why it cannot be installed, as far as the catalog tells.
	Unsupported string
	// Image of the bundle.
	Image string
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// CatalogPackageGraph is what the channels of a package say of upgrades.
type CatalogPackageGraph struct {
	metav1.TypeMeta
	// ObjectMeta has the name of the package.
	metav1.ObjectMeta
	// Catalog that it is from.
	Catalog string
	// DefaultChannel is the one that is followed when none is asked for.
	DefaultChannel string
	// Entries are those of the channels, by channel, the highest version first.
	Entries []GraphEntry
	// Upgrades are all that one step does, at most 30000.
	Upgrades []GraphUpgrade
	// Omitted is how many more upgrades there are.
	Omitted int32
	// Installed is what is installed of the package. It is left out for whoever may not
	// list clusterextensionrevisions.
	Installed []InstalledVersion
	// Paths are the shortest ways from what is installed, or from what was asked for,
	// to the latest version of each channel that can be reached, and to what was asked
	// for.
	Paths []GraphPath
}

// GraphEntry is a version in a channel.
type GraphEntry struct {
	// Channel that has it.
	Channel string
	// Version, or the name of a bundle that is not in the catalog.
	Version string
	// UpgradeOf says in words what it is an upgrade of.
	UpgradeOf string
	// Deprecation is there when the catalog says that the version should not be used.
	Deprecation *Deprecation
	// Path has the versions to go to from the one that is installed, one after the other,
	// in words. It is empty when no upgrades lead there, and when nothing is installed.
	Path string
}

// GraphUpgrade is an upgrade in one step.
type GraphUpgrade struct {
	// From is a version, or the name of a bundle that is not in the catalog.
	From string
	// To is a version, or the name of a bundle that is not in the catalog.
	To string
	// Channel that has the upgrade.
	Channel string
	// By is the field of the channel's entry: replaces, skips or skipRange.
	By string
}

// GraphPath is a way of upgrades.
type GraphPath struct {
	// From is the version where it begins.
	From string
	// To is the version where it ends.
	To string
	// Versions are those to go to, one after the other, to included.
	Versions []string
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// CatalogPackageIcon is the picture of a package.
type CatalogPackageIcon struct {
	metav1.TypeMeta
	// ObjectMeta has the name of the package.
	metav1.ObjectMeta
	// Catalog that it is from.
	Catalog string
	// MediaType is what the catalog says, such as image/svg+xml. Nobody has looked at
	// the picture: it may have programs in it.
	MediaType string
	// Data is the picture.
	Data []byte
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// CatalogPackageOptions are the query parameters of the subresources of a package.
type CatalogPackageOptions struct {
	metav1.TypeMeta
	// Catalog to read instead of the one that counts.
	Catalog string
	// Channel limits versions and upgrades to channels; it may be given several times.
	Channel []string
	// From is a version or bundle where the paths of graph begin, instead of what is
	// installed.
	From string
	// To is a version or bundle to which a path of graph leads, besides the latest of each
	// channel.
	To string
	// Version has upgrades say what would come if specs asked for this range, instead of their
	// own: once at most. An empty one is any version.
	Version []string
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// CatalogPackageUpgrades is which ClusterExtensions ask for a package, and what they could be
// upgraded to.
type CatalogPackageUpgrades struct {
	metav1.TypeMeta
	// ObjectMeta has the name of the package.
	metav1.ObjectMeta
	// Extensions are the ClusterExtensions, by name.
	Extensions []ExtensionUpgrades
}

// ExtensionUpgrades is what an extension has installed, and what there is beyond it.
type ExtensionUpgrades struct {
	// Extension is the name of the ClusterExtension.
	Extension string
	// Installed is the version that is installed, empty for none.
	Installed string
	// Allowed is the version that spec leads to now; it may be the installed one. It is
	// empty when spec leads to none.
	Allowed string
	// Channel and Catalog lead to the allowed version.
	Channel string
	// Catalog has the allowed version.
	Catalog string
	// Approval is Automatic or Manual: then an upgrade waits until somebody approves it.
	Approval string
	// Newest is the highest version in the channels and catalogs that spec asks for.
	Newest string
	// Blocked are versions above the installed and the allowed one, the newest first, at
	// most 10.
	Blocked []BlockedVersion
	// Omitted is how many more there are.
	Omitted int32
	// Message says why spec leads to no version, or why that is not known.
	Message string
}

// BlockedVersion is a version that does not come.
type BlockedVersion struct {
	// Version of the package.
	Version string
	// Catalog that has it.
	Catalog string
	// Cause is OtherCatalog, Channel, Range, NotSuccessor, Deprecated, Priority, Tie or
	// Unsupported.
	Cause string
	// Message says it in words, and what helps.
	Message string
}
