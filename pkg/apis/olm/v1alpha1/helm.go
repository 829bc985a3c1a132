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
	// has its objects now. What Helm notes there stays as it is.
	SupersededByAnnotation = "penstock.dev/superseded-by"
)
