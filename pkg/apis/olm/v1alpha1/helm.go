package v1alpha1

const (
	// HelmReleaseAnnotation, on a revision, names the Helm release that its extension was adopted
	// from, and the newest Helm revision that Penstock knows, as <namespace>/<release>:<revision>.
	// While Helm has a newer revision, Penstock writes no objects of the extension. If several
	// revisions of an extension have the annotation, the highest Helm revision counts.
	HelmReleaseAnnotation = "penstock.dev/helm-release"
	// HelmRevisionAnnotation, on a revision, is the number of the Helm revision with the same
	// content.
	HelmRevisionAnnotation = "penstock.dev/helm-revision"
	// SupersededByAnnotation, on the Secret of a Helm release, names the extension that owns its
	// objects now. The release record in the Secret does not change.
	SupersededByAnnotation = "penstock.dev/superseded-by"
	// SupersededByLabel, on the Secrets of the Helm release of a ClusterExtension, names the
	// extension once the engine owns the objects. Penstock deletes these Secrets after the first
	// upgrade.
	SupersededByLabel = "penstock.dev/superseded-by"

	// HandedToHelmAnnotation, on a revision of a ClusterExtension, names the Helm revision that
	// took over its objects, as <namespace>/<release>:<revision>. Penstock keeps the revision and
	// applies none of its objects. Only the server writes it.
	HandedToHelmAnnotation = "penstock.dev/handed-to-helm"
	// AdoptedReleaseAnnotation, on a revision of a ClusterExtension, names the Helm revision that
	// it was created from, in the same form. Only the server writes it.
	AdoptedReleaseAnnotation = "penstock.dev/adopted-release"
	// ReleaseSecretsAnnotation, on such a revision, is the state of the Secrets of the release:
	// kept or removed. It is absent while Penstock takes over the objects. Only the server writes
	// it.
	ReleaseSecretsAnnotation = "penstock.dev/release-secrets"
)
