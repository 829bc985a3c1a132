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
// from their indexes whenever it is read, and nothing of it is stored. If several
// catalogs have a package, it shows the package of the catalog with the highest
// priority, of several the first by name, and names the other catalogs.
type CatalogPackage struct {
	metav1.TypeMeta `json:",inline"`
	// metadata has the name of the package; the labels of the catalog, and the label
	// catalog with the name of the catalog; and a resourceVersion that identifies one
	// state of the catalogs.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// catalog is the catalog that everything below is from.
	Catalog string `json:"catalog"`
	// catalogs are all catalogs that have the package; the first one is the one that
	// is used.
	// +listType=map
	// +listMapKey=name
	Catalogs []PackageCatalog `json:"catalogs"`
	// description is the beginning of the description in the catalog.
	// +optional
	Description string `json:"description,omitempty"`
	// defaultChannel is the channel that is followed when none is asked for.
	// +optional
	DefaultChannel string `json:"defaultChannel,omitempty"`
	// latest is the version that is installed when nothing is asked for: the highest
	// one that is not deprecated.
	// +optional
	Latest string `json:"latest,omitempty"`
	// deprecation is set when the catalog says that the package should not be used.
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
	// versionCount is the number of versions.
	VersionCount int32 `json:"versionCount"`
	// kinds are the kinds that all its versions together bring, at most 200.
	// +optional
	// +listType=atomic
	Kinds []PackageKind `json:"kinds,omitempty"`
	// installed are the installed versions of the package. It is left out for
	// users who cannot list clusterextensionrevisions.
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
	// priority of the ClusterCatalog: of two catalogs, the one with the higher
	// priority is used.
	Priority int32 `json:"priority"`
	// latest is the version that this catalog would install when nothing is asked for.
	// +optional
	Latest string `json:"latest,omitempty"`
}

// Deprecation is a catalog's message about a deprecated package, channel or version.
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
	// deprecation is set when the catalog says that the channel should not be used.
	// +optional
	Deprecation *Deprecation `json:"deprecation,omitempty"`
}

// PackageVersion is a version of a package.
type PackageVersion struct {
	// version is as the bundle has it.
	Version string `json:"version"`
	// channels are the channels that have the version.
	// +optional
	// +listType=atomic
	Channels []string `json:"channels,omitempty"`
	// deprecation is set when the catalog says that the version should not be used.
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
	// omitted is the number of entries that are left out.
	// +optional
	Omitted int32 `json:"omitted,omitempty"`
}

// BundleVersion is one version, as its bundle and the channels that have it say.
type BundleVersion struct {
	// version is empty when the bundle has none that can be read.
	Version string `json:"version"`
	// bundle is its name.
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
	// skips are other versions that can be upgraded to this version, without the
	// versions between.
	// +optional
	// +listType=atomic
	Skips []string `json:"skips,omitempty"`
	// skipRanges are ranges of versions that can be upgraded to this version in the
	// same way.
	// +optional
	// +listType=atomic
	SkipRanges []string `json:"skipRanges,omitempty"`
	// deprecation is set when the catalog says that the version should not be used.
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

// CatalogPackageGraph has the upgrades in the channels of a package.
type CatalogPackageGraph struct {
	metav1.TypeMeta `json:",inline"`
	// metadata has the name of the package.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// catalog that it is from.
	Catalog string `json:"catalog"`
	// defaultChannel is the channel that is followed when none is asked for.
	// +optional
	DefaultChannel string `json:"defaultChannel,omitempty"`
	// entries are the entries of the channels, by channel, the highest version first.
	// +listType=atomic
	Entries []GraphEntry `json:"entries"`
	// upgrades are all upgrades in one step, at most 30000.
	// +listType=atomic
	Upgrades []GraphUpgrade `json:"upgrades"`
	// omitted is the number of upgrades that are left out.
	// +optional
	Omitted int32 `json:"omitted,omitempty"`
	// installed are the installed versions of the package. It is left out for
	// users who cannot list clusterextensionrevisions.
	// +optional
	// +listType=map
	// +listMapKey=extension
	Installed []InstalledVersion `json:"installed,omitempty"`
	// paths are the shortest upgrade paths from the installed version, or from the
	// parameter from, to the latest version of each channel that can be reached, and
	// to the parameter to.
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
	// upgradeOf says in words which versions can be upgraded to this one.
	// +optional
	UpgradeOf string `json:"upgradeOf,omitempty"`
	// deprecation is set when the catalog says that the version should not be used.
	// +optional
	Deprecation *Deprecation `json:"deprecation,omitempty"`
	// path is the upgrade path from the installed version, in words: the versions in
	// order. It is empty when no upgrades lead to this version, and when nothing is
	// installed.
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

// GraphPath is a path of upgrades.
type GraphPath struct {
	// from is the version where it begins.
	From string `json:"from"`
	// to is the version where it ends.
	To string `json:"to"`
	// versions are the versions to upgrade to, in order, including to.
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
	// mediaType is the type that the catalog names, such as image/svg+xml. Penstock does not
	// check the picture: it may contain scripts.
	MediaType string `json:"mediaType"`
	// data is the picture.
	Data []byte `json:"data"`
}

// +k8s:conversion-gen:explicit-from=net/url.Values
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// CatalogPackageOptions are the query parameters of the subresources of a package.
type CatalogPackageOptions struct {
	metav1.TypeMeta `json:",inline"`
	// catalog to read instead of the one that is used by default.
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
	// version makes the subresource upgrades answer as if specs asked for this range, instead
	// of their own. It may be given once. An empty range is any version.
	// +optional
	// +listType=atomic
	Version []string `json:"version,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// CatalogPackageUpgrades lists the ClusterExtensions that ask for a package, and what they
// could be upgraded to.
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

// ExtensionUpgrades has the installed version of an extension, and the newer ones.
type ExtensionUpgrades struct {
	// extension is the name of the ClusterExtension.
	Extension string `json:"extension"`
	// installed is the version that is installed, empty for none.
	// +optional
	Installed string `json:"installed,omitempty"`
	// allowed is the version that spec allows now; it may be the installed one. It is
	// empty when spec allows none.
	// +optional
	Allowed string `json:"allowed,omitempty"`
	// channel has the allowed version.
	// +optional
	Channel string `json:"channel,omitempty"`
	// catalog has the allowed version.
	// +optional
	Catalog string `json:"catalog,omitempty"`
	// approval is Automatic, Reviewed or Manual: with Manual, an upgrade waits until somebody
	// approves it; with Reviewed, one does whose diff has notes that hold it.
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
	// omitted is the number of entries that are left out.
	// +optional
	Omitted int32 `json:"omitted,omitempty"`
	// message says why spec allows no version, or why that is not known.
	// +optional
	Message string `json:"message,omitempty"`
}

// BlockedVersion is a version that the extension is not upgraded to.
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
