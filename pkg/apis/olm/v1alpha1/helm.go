package v1alpha1

const (
	// HelmReleaseAnnotation, on a revision, names the Helm release that its extension was
	// adopted from, and the newest revision of Helm that was taken into account, as
	// <namespace>/<release>:<revision>. While Helm has a newer one, Penstock writes none of
	// the extension's objects. Of several revisions of an extension the highest counts.
	HelmReleaseAnnotation = "penstock.dev/helm-release"
	// HelmRevisionAnnotation, on a revision, is the number of the revision of Helm that has
	// its content.
	HelmRevisionAnnotation = "penstock.dev/helm-revision"
	// SupersededByAnnotation, on the Secret of a Helm release, names the extension that
	// has its objects now. Helm's notes there stay as they are.
	SupersededByAnnotation = "penstock.dev/superseded-by"
	// SupersededByLabel, on the Secrets of the Helm release of a ClusterExtension, names the
	// extension when the engine has its objects. They go after the first upgrade.
	SupersededByLabel = "penstock.dev/superseded-by"

	// HandedToHelmAnnotation, on a revision of a ClusterExtension, names the revision of the
	// Helm release that its objects were handed to, as <namespace>/<release>:<revision>. The
	// revision is kept, and nothing of it is rolled out. Only the server writes it.
	HandedToHelmAnnotation = "penstock.dev/handed-to-helm"
	// AdoptedReleaseAnnotation, on a revision of a ClusterExtension, names the revision of the
	// Helm release that it was made of, in the same form. Only the server writes it.
	AdoptedReleaseAnnotation = "penstock.dev/adopted-release"
	// ReleaseSecretsAnnotation, on such a revision, says what became of the Secrets of the
	// release: kept, or removed. Without it the objects are still being taken over. Only the
	// server writes it.
	ReleaseSecretsAnnotation = "penstock.dev/release-secrets"
)
