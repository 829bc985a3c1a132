package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// CatalogLabel is the label of a package that names the catalog it is from.
const CatalogLabel = "catalog"

// +genclient
// +genclient:nonNamespaced
// +genclient:onlyVerbs=get,list,watch
// +genclient:method=GetVersions,verb=get,subresource=versions,result=github.com/penstock-project/penstock/pkg/apis/catalog/v1alpha1.CatalogPackageVersions
// +genclient:method=GetGraph,verb=get,subresource=graph,result=github.com/penstock-project/penstock/pkg/apis/catalog/v1alpha1.CatalogPackageGraph
// +genclient:method=GetUpgrades,verb=get,subresource=upgrades,result=github.com/penstock-project/penstock/pkg/apis/catalog/v1alpha1.CatalogPackageUpgrades
// +genclient:method=GetIcon,verb=get,subresource=icon,result=github.com/penstock-project/penstock/pkg/apis/catalog/v1alpha1.CatalogPackageIcon
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// CatalogPackage is a package that the catalogs of this cluster offer. It is computed
// from their indexes whenever it is read, and nothing of it is stored. Where several
// catalogs have a package, it shows the one of the highest priority, of those the first
// by name, and names the others.
type CatalogPackage struct {
	metav1.TypeMeta `json:",inline"`
	// metadata has the name of the package; as labels those of the catalog, besides
	// the label catalog with its name; and a resourceVersion that tells one state of
	// the catalogs from another.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// catalog is the one that everything below is from.
	Catalog string `json:"catalog"`
	// catalogs are all that have the package, the one that counts first.
	// +listType=map
	// +listMapKey=name
	Catalogs []PackageCatalog `json:"catalogs"`
	// description is the beginning of what the catalog says.
	// +optional
	Description string `json:"description,omitempty"`
	// defaultChannel is the one that is followed when none is asked for.
	// +optional
	DefaultChannel string `json:"defaultChannel,omitempty"`
	// latest is the version that is installed when nothing is asked for: the highest
	// one that is not deprecated.
	// +optional
	Latest string `json:"latest,omitempty"`
	// deprecation is there when the catalog says that the package should not be used.
	// +optional
	Deprecation *Deprecation `json:"deprecation,omitempty"`
	// channels are at most 100, by name.
	// +optional
	// +listType=atomic
	Channels []PackageChannel `json:"channels,omitempty"`
	// versions are the highest 100. The subresource versions has all of them.
	// +optional
	// +listType=atomic
	Versions []PackageVersion `json:"versions,omitempty"`
	// versionCount is how many versions there are.
	VersionCount int32 `json:"versionCount"`
	// kinds are what its versions bring, all of them together, at most 200.
	// +optional
	// +listType=atomic
	Kinds []PackageKind `json:"kinds,omitempty"`
	// installed is what is installed of the package. It is left out for whoever may not
	// list clusterextensionrevisions.
	// +optional
	// +listType=map
	// +listMapKey=extension
	Installed []InstalledVersion `json:"installed,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// CatalogPackageList is a list of packages.
type CatalogPackageList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the packages, by name.
	Items []CatalogPackage `json:"items"`
}

// PackageCatalog is a catalog that has a package.
type PackageCatalog struct {
	// name of the ClusterCatalog.
	Name string `json:"name"`
	// priority of the ClusterCatalog: of two catalogs the one with the higher priority
	// counts.
	Priority int32 `json:"priority"`
	// latest is the version that this catalog would install when nothing is asked for.
	// +optional
	Latest string `json:"latest,omitempty"`
}

// Deprecation is what a catalog says of something that should not be used.
type Deprecation struct {
	// message says why, and what to do.
	Message string `json:"message"`
}

// PackageChannel is a channel of a package: a part of its upgrades that can be chosen.
type PackageChannel struct {
	// name of the channel.
	Name string `json:"name"`
	// latest is the highest version in the channel that is not deprecated.
	// +optional
	Latest string `json:"latest,omitempty"`
	// deprecation is there when the catalog says that the channel should not be used.
	// +optional
	Deprecation *Deprecation `json:"deprecation,omitempty"`
}

// PackageVersion is a version of a package.
type PackageVersion struct {
	// version is as the bundle has it.
	Version string `json:"version"`
	// channels are those that have it.
	// +optional
	// +listType=atomic
	Channels []string `json:"channels,omitempty"`
	// deprecation is there when the catalog says that the version should not be used.
	// +optional
	Deprecation *Deprecation `json:"deprecation,omitempty"`
	// unsupported says why it cannot be installed, as far as the catalog tells.
	// +optional
	Unsupported string `json:"unsupported,omitempty"`
}

// PackageKind is a kind that a package brings.
type PackageKind struct {
	// group of the kind.
	Group string `json:"group"`
	// version of the kind.
	Version string `json:"version"`
	// kind is its name.
	Kind string `json:"kind"`
}

// InstalledVersion is a version of a package that is installed.
type InstalledVersion struct {
	// extension that it is installed as.
	Extension string `json:"extension"`
	// version that is installed.
	Version string `json:"version"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// CatalogPackageVersions is the list of all versions of a package, the highest first.
type CatalogPackageVersions struct {
	metav1.TypeMeta `json:",inline"`
	// metadata has the name of the package.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// catalog that they are from.
	Catalog string `json:"catalog"`
	// versions are at most 2000.
	// +listType=atomic
	Versions []BundleVersion `json:"versions"`
	// omitted is how many more there are.
	// +optional
	Omitted int32 `json:"omitted,omitempty"`
}

// BundleVersion is one version, as its bundle and the channels that have it say.
type BundleVersion struct {
	// version is empty when the bundle has none that can be read.
	Version string `json:"version"`
	// bundle is its name.
	Bundle string `json:"bundle"`
	// channels are those that have it.
	// +optional
	// +listType=atomic
	Channels []string `json:"channels,omitempty"`
	// replaces are the versions that it is the upgrade of, or names of bundles that are
	// not in the catalog.
	// +optional
	// +listType=atomic
	Replaces []string `json:"replaces,omitempty"`
	// skips are versions that it is an upgrade of, too, so that it need not come after
	// others.
	// +optional
	// +listType=atomic
	Skips []string `json:"skips,omitempty"`
	// skipRanges are the same as ranges of versions.
	// +optional
	// +listType=atomic
	SkipRanges []string `json:"skipRanges,omitempty"`
	// deprecation is there when the catalog says that the version should not be used.
	// +optional
	Deprecation *Deprecation `json:"deprecation,omitempty"`
	// unsupported says why it cannot be installed, as far as the catalog tells.
	// +optional
	Unsupported string `json:"unsupported,omitempty"`
	// image of the bundle.
	// +optional
	Image string `json:"image,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// CatalogPackageGraph is what the channels of a package say of upgrades.
type CatalogPackageGraph struct {
	metav1.TypeMeta `json:",inline"`
	// metadata has the name of the package.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// catalog that it is from.
	Catalog string `json:"catalog"`
	// defaultChannel is the one that is followed when none is asked for.
	// +optional
	DefaultChannel string `json:"defaultChannel,omitempty"`
	// entries are those of the channels, by channel, the highest version first.
	// +listType=atomic
	Entries []GraphEntry `json:"entries"`
	// upgrades are all that one step does, at most 30000.
	// +listType=atomic
	Upgrades []GraphUpgrade `json:"upgrades"`
	// omitted is how many more upgrades there are.
	// +optional
	Omitted int32 `json:"omitted,omitempty"`
	// installed is what is installed of the package. It is left out for whoever may not
	// list clusterextensionrevisions.
	// +optional
	// +listType=map
	// +listMapKey=extension
	Installed []InstalledVersion `json:"installed,omitempty"`
	// paths are the shortest ways from what is installed, or from what was asked for,
	// to the latest version of each channel that can be reached, and to what was asked
	// for.
	// +optional
	// +listType=atomic
	Paths []GraphPath `json:"paths,omitempty"`
}

// GraphEntry is a version in a channel.
type GraphEntry struct {
	// channel that has it.
	Channel string `json:"channel"`
	// version, or the name of a bundle that is not in the catalog.
	Version string `json:"version"`
	// upgradeOf says in words what it is an upgrade of.
	// +optional
	UpgradeOf string `json:"upgradeOf,omitempty"`
	// deprecation is there when the catalog says that the version should not be used.
	// +optional
	Deprecation *Deprecation `json:"deprecation,omitempty"`
	// path has the versions to go to from the one that is installed, one after the other,
	// in words. It is empty when no upgrades lead there, and when nothing is installed.
	// +optional
	Path string `json:"path,omitempty"`
}

// GraphUpgrade is an upgrade in one step.
type GraphUpgrade struct {
	// from is a version, or the name of a bundle that is not in the catalog.
	From string `json:"from"`
	// to is a version, or the name of a bundle that is not in the catalog.
	To string `json:"to"`
	// channel that has the upgrade.
	Channel string `json:"channel"`
	// by is the field of the channel's entry: replaces, skips or skipRange.
	By string `json:"by"`
}

// GraphPath is a way of upgrades.
type GraphPath struct {
	// from is the version where it begins.
	From string `json:"from"`
	// to is the version where it ends.
	To string `json:"to"`
	// versions are those to go to, one after the other, to included.
	// +listType=atomic
	Versions []string `json:"versions"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// CatalogPackageIcon is the picture of a package.
type CatalogPackageIcon struct {
	metav1.TypeMeta `json:",inline"`
	// metadata has the name of the package.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// catalog that it is from.
	Catalog string `json:"catalog"`
	// mediaType is what the catalog says, such as image/svg+xml. Nobody has looked at
	// the picture: it may have programs in it.
	MediaType string `json:"mediaType"`
	// data is the picture.
	Data []byte `json:"data"`
}

// +k8s:conversion-gen:explicit-from=net/url.Values
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// CatalogPackageOptions are the query parameters of the subresources of a package.
type CatalogPackageOptions struct {
	metav1.TypeMeta `json:",inline"`
	// catalog to read instead of the one that counts.
	// +optional
	Catalog string `json:"catalog,omitempty"`
	// channel limits versions and upgrades to channels; it may be given several times.
	// +optional
	// +listType=atomic
	Channel []string `json:"channel,omitempty"`
	// from is a version or bundle where the paths of graph begin, instead of what is
	// installed.
	// +optional
	From string `json:"from,omitempty"`
	// to is a version or bundle to which a path of graph leads, besides the latest of each
	// channel.
	// +optional
	To string `json:"to,omitempty"`
	// version has upgrades say what would come if specs asked for this range, instead of their
	// own: once at most. An empty one is any version.
	// +optional
	// +listType=atomic
	Version []string `json:"version,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// CatalogPackageUpgrades is which ClusterExtensions ask for a package, and what they could be
// upgraded to.
type CatalogPackageUpgrades struct {
	metav1.TypeMeta `json:",inline"`
	// metadata has the name of the package.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// extensions are the ClusterExtensions, by name.
	// +listType=map
	// +listMapKey=extension
	Extensions []ExtensionUpgrades `json:"extensions"`
}

// ExtensionUpgrades is what an extension has installed, and what there is beyond it.
type ExtensionUpgrades struct {
	// extension is the name of the ClusterExtension.
	Extension string `json:"extension"`
	// installed is the version that is installed, empty for none.
	// +optional
	Installed string `json:"installed,omitempty"`
	// allowed is the version that spec leads to now; it may be the installed one. It is
	// empty when spec leads to none.
	// +optional
	Allowed string `json:"allowed,omitempty"`
	// channel and catalog lead to the allowed version.
	// +optional
	Channel string `json:"channel,omitempty"`
	// catalog has the allowed version.
	// +optional
	Catalog string `json:"catalog,omitempty"`
	// approval is Automatic or Manual: then an upgrade waits until somebody approves it.
	// +optional
	Approval string `json:"approval,omitempty"`
	// newest is the highest version in the channels and catalogs that spec asks for.
	// +optional
	Newest string `json:"newest,omitempty"`
	// blocked are versions above the installed and the allowed one, the newest first, at
	// most 10.
	// +optional
	// +listType=atomic
	Blocked []BlockedVersion `json:"blocked,omitempty"`
	// omitted is how many more there are.
	// +optional
	Omitted int32 `json:"omitted,omitempty"`
	// message says why spec leads to no version, or why that is not known.
	// +optional
	Message string `json:"message,omitempty"`
}

// BlockedVersion is a version that does not come.
type BlockedVersion struct {
	// version of the package.
	Version string `json:"version"`
	// catalog that has it.
	Catalog string `json:"catalog"`
	// cause is OtherCatalog, Channel, Range, NotSuccessor, Deprecated, Priority, Tie or
	// Unsupported.
	Cause string `json:"cause"`
	// message says it in words, and what helps.
	Message string `json:"message"`
}
