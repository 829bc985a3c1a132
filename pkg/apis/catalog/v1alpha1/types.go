package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// CatalogLabel of a package names its catalog.
const CatalogLabel = "catalog"

// +genclient
// +genclient:nonNamespaced
// +genclient:onlyVerbs=get,list,watch
// +genclient:method=GetVersions,verb=get,subresource=versions,result=github.com/penstock-project/penstock/pkg/apis/catalog/v1alpha1.CatalogPackageVersions
// +genclient:method=GetGraph,verb=get,subresource=graph,result=github.com/penstock-project/penstock/pkg/apis/catalog/v1alpha1.CatalogPackageGraph
// +genclient:method=GetUpgrades,verb=get,subresource=upgrades,result=github.com/penstock-project/penstock/pkg/apis/catalog/v1alpha1.CatalogPackageUpgrades
// +genclient:method=GetIcon,verb=get,subresource=icon,result=github.com/penstock-project/penstock/pkg/apis/catalog/v1alpha1.CatalogPackageIcon
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// CatalogPackage is a package in the catalogs of this cluster. The server computes it from the
// catalogs' indexes for each read and does not store it. If several catalogs have the package, the
// catalog with the highest priority is used. Of catalogs with the same priority, the first by name
// is used.
type CatalogPackage struct {
	metav1.TypeMeta `json:",inline"`
	// metadata has the name of the package, the labels of the catalog, the label catalog with the
	// name of the catalog, and a resourceVersion that identifies one state of the catalogs.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// catalog is the catalog that the fields below come from.
	Catalog string `json:"catalog"`
	// catalogs are all catalogs that have the package. The first catalog is used.
	// +listType=map
	// +listMapKey=name
	Catalogs []PackageCatalog `json:"catalogs"`
	// description is the beginning of the description in the catalog.
	// +optional
	Description string `json:"description,omitempty"`
	// defaultChannel is the channel for extensions that name no channel.
	// +optional
	DefaultChannel string `json:"defaultChannel,omitempty"`
	// latest is the version for extensions that name no version: the highest version that is not
	// deprecated.
	// +optional
	Latest string `json:"latest,omitempty"`
	// deprecation is set if the catalog advises against the package.
	// +optional
	Deprecation *Deprecation `json:"deprecation,omitempty"`
	// channels of the package, at most 100, ordered by name.
	// +optional
	// +listType=atomic
	Channels []PackageChannel `json:"channels,omitempty"`
	// versions are the highest 100 versions. The subresource versions returns all versions.
	// +optional
	// +listType=atomic
	Versions []PackageVersion `json:"versions,omitempty"`
	// versionCount is the number of all versions.
	VersionCount int32 `json:"versionCount"`
	// kinds are the kinds that the versions define, at most 200.
	// +optional
	// +listType=atomic
	Kinds []PackageKind `json:"kinds,omitempty"`
	// installed are the installed versions of the package. It is absent for users who cannot list
	// clusterextensionrevisions.
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
	// items are the packages, ordered by name.
	Items []CatalogPackage `json:"items"`
}

// PackageCatalog is a catalog that has a package.
type PackageCatalog struct {
	// name of the ClusterCatalog.
	Name string `json:"name"`
	// priority of the ClusterCatalog. The catalog with the highest priority is used.
	Priority int32 `json:"priority"`
	// latest is the version that this catalog would install for extensions that name no version.
	// +optional
	Latest string `json:"latest,omitempty"`
}

// Deprecation is a catalog's message about a deprecated package, channel or version.
type Deprecation struct {
	// message is the reason of the deprecation, and what to do.
	Message string `json:"message"`
}

// PackageChannel is a channel of a package: a part of the upgrade graph that users can choose.
type PackageChannel struct {
	// name of the channel.
	Name string `json:"name"`
	// latest is the highest version in the channel that is not deprecated.
	// +optional
	Latest string `json:"latest,omitempty"`
	// deprecation is set if the catalog advises against the channel.
	// +optional
	Deprecation *Deprecation `json:"deprecation,omitempty"`
}

// PackageVersion is a version of a package.
type PackageVersion struct {
	// version as the bundle states it.
	Version string `json:"version"`
	// channels are the channels that have the version.
	// +optional
	// +listType=atomic
	Channels []string `json:"channels,omitempty"`
	// deprecation is set if the catalog advises against the version.
	// +optional
	Deprecation *Deprecation `json:"deprecation,omitempty"`
	// unsupported is the reason why Penstock cannot install the version, as far as the catalog
	// shows it.
	// +optional
	Unsupported string `json:"unsupported,omitempty"`
}

// PackageKind is a kind that a package defines.
type PackageKind struct {
	// group of the kind.
	Group string `json:"group"`
	// version of the kind.
	Version string `json:"version"`
	// kind is the name of the kind.
	Kind string `json:"kind"`
}

// InstalledVersion is a version of a package that is installed.
type InstalledVersion struct {
	// extension that has the version.
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
	// catalog that the versions come from.
	Catalog string `json:"catalog"`
	// versions of the package, at most 2000.
	// +listType=atomic
	Versions []BundleVersion `json:"versions"`
	// omitted is the number of versions that the list omits.
	// +optional
	Omitted int32 `json:"omitted,omitempty"`
}

// BundleVersion is one version, as its bundle and its channels describe it.
type BundleVersion struct {
	// version of the bundle; empty if it has no valid version.
	Version string `json:"version"`
	// bundle is the name of the bundle.
	Bundle string `json:"bundle"`
	// channels are the channels that have the version.
	// +optional
	// +listType=atomic
	Channels []string `json:"channels,omitempty"`
	// replaces are the versions that this version replaces, or names of bundles that
	// are not in the catalog.
	// +optional
	// +listType=atomic
	Replaces []string `json:"replaces,omitempty"`
	// skips are other versions that can be upgraded to this version directly, without the versions
	// between.
	// +optional
	// +listType=atomic
	Skips []string `json:"skips,omitempty"`
	// skipRanges are ranges of versions that can be upgraded to this version directly.
	// +optional
	// +listType=atomic
	SkipRanges []string `json:"skipRanges,omitempty"`
	// deprecation is set if the catalog advises against the version.
	// +optional
	Deprecation *Deprecation `json:"deprecation,omitempty"`
	// unsupported is the reason why Penstock cannot install the version, as far as the catalog
	// shows it.
	// +optional
	Unsupported string `json:"unsupported,omitempty"`
	// image of the bundle.
	// +optional
	Image string `json:"image,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// CatalogPackageGraph has the upgrades in the channels of a package.
type CatalogPackageGraph struct {
	metav1.TypeMeta `json:",inline"`
	// metadata has the name of the package.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// catalog that the upgrades come from.
	Catalog string `json:"catalog"`
	// defaultChannel is the channel for extensions that name no channel.
	// +optional
	DefaultChannel string `json:"defaultChannel,omitempty"`
	// entries of the channels, ordered by channel, the highest version first.
	// +listType=atomic
	Entries []GraphEntry `json:"entries"`
	// upgrades are all single upgrade steps, at most 30000.
	// +listType=atomic
	Upgrades []GraphUpgrade `json:"upgrades"`
	// omitted is the number of upgrades that the list omits.
	// +optional
	Omitted int32 `json:"omitted,omitempty"`
	// installed are the installed versions of the package. It is absent for users who cannot list
	// clusterextensionrevisions.
	// +optional
	// +listType=map
	// +listMapKey=extension
	Installed []InstalledVersion `json:"installed,omitempty"`
	// paths are the shortest upgrade paths to the latest reachable version of each channel, and to
	// the parameter to. They begin at the installed version, or at the parameter from.
	// +optional
	// +listType=atomic
	Paths []GraphPath `json:"paths,omitempty"`
}

// GraphEntry is a version in a channel.
type GraphEntry struct {
	// channel that has the version.
	Channel string `json:"channel"`
	// version, or the name of a bundle that is not in the catalog.
	Version string `json:"version"`
	// upgradeOf describes in words which versions can be upgraded to this version.
	// +optional
	UpgradeOf string `json:"upgradeOf,omitempty"`
	// deprecation is set if the catalog advises against the version.
	// +optional
	Deprecation *Deprecation `json:"deprecation,omitempty"`
	// path is the upgrade path from the installed version as text: the versions in order. It is
	// empty if nothing is installed, or if no path leads to this version.
	// +optional
	Path string `json:"path,omitempty"`
}

// GraphUpgrade is a single upgrade step.
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

// GraphPath is a path of upgrades.
type GraphPath struct {
	// from is the first version of the path.
	From string `json:"from"`
	// to is the last version of the path.
	To string `json:"to"`
	// versions are the versions to upgrade to, in order, with to as the last.
	// +listType=atomic
	Versions []string `json:"versions"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// CatalogPackageIcon is the icon of a package.
type CatalogPackageIcon struct {
	metav1.TypeMeta `json:",inline"`
	// metadata has the name of the package.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// catalog that the icon comes from.
	Catalog string `json:"catalog"`
	// mediaType that the catalog states, such as image/svg+xml. Penstock does not check the icon:
	// it may contain scripts.
	MediaType string `json:"mediaType"`
	// data of the icon.
	Data []byte `json:"data"`
}

// +k8s:conversion-gen:explicit-from=net/url.Values
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// CatalogPackageOptions are the query parameters of the subresources of a package.
type CatalogPackageOptions struct {
	metav1.TypeMeta `json:",inline"`
	// catalog to read. Default: the catalog that the package shows.
	// +optional
	Catalog string `json:"catalog,omitempty"`
	// channel limits the answer to versions and upgrades of a channel. It can be given several
	// times.
	// +optional
	// +listType=atomic
	Channel []string `json:"channel,omitempty"`
	// from is the version or bundle where the paths of graph begin. Default: the installed version.
	// +optional
	From string `json:"from,omitempty"`
	// to is a version or bundle where a path of graph ends, in addition to the latest version of
	// each channel.
	// +optional
	To string `json:"to,omitempty"`
	// version is a range of versions. The subresource upgrades uses it in place of the range in
	// each spec. It can be given once. An empty range means any version.
	// +optional
	// +listType=atomic
	Version []string `json:"version,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// CatalogPackageUpgrades lists the ClusterExtensions that use a package, and their possible
// upgrades.
type CatalogPackageUpgrades struct {
	metav1.TypeMeta `json:",inline"`
	// metadata has the name of the package.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// extensions are the ClusterExtensions, ordered by name.
	// +listType=map
	// +listMapKey=extension
	Extensions []ExtensionUpgrades `json:"extensions"`
}

// ExtensionUpgrades has the installed version of an extension and the newer versions.
type ExtensionUpgrades struct {
	// extension is the name of the ClusterExtension.
	Extension string `json:"extension"`
	// installed is the installed version; empty if nothing is installed.
	// +optional
	Installed string `json:"installed,omitempty"`
	// allowed is the version that spec selects now, which can be the installed version. It is empty
	// if spec allows no version.
	// +optional
	Allowed string `json:"allowed,omitempty"`
	// channel of the allowed version.
	// +optional
	Channel string `json:"channel,omitempty"`
	// catalog of the allowed version.
	// +optional
	Catalog string `json:"catalog,omitempty"`
	// approval of upgrades. Automatic: none is needed. Manual: each upgrade waits for an approval.
	// Reviewed: an upgrade waits for an approval if its diff has notes that hold it.
	// +optional
	Approval string `json:"approval,omitempty"`
	// newest is the highest version in the channels and catalogs that spec names.
	// +optional
	Newest string `json:"newest,omitempty"`
	// blocked are versions above the installed and the allowed version, the newest first, at most
	// 10.
	// +optional
	// +listType=atomic
	Blocked []BlockedVersion `json:"blocked,omitempty"`
	// omitted is the number of blocked versions that the list omits.
	// +optional
	Omitted int32 `json:"omitted,omitempty"`
	// message is the reason why spec allows no version, or why that is unknown.
	// +optional
	Message string `json:"message,omitempty"`
}

// BlockedVersion is a version that the extension cannot be upgraded to.
type BlockedVersion struct {
	// version of the package.
	Version string `json:"version"`
	// catalog that has the version.
	Catalog string `json:"catalog"`
	// cause is OtherCatalog, Channel, Range, NotSuccessor, Deprecated, Priority, Tie or
	// Unsupported.
	Cause string `json:"cause"`
	// message explains the cause to a person, and what helps.
	Message string `json:"message"`
}
