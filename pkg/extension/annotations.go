package extension

import "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"

// AnnotationPrefix is the prefix of Penstock's annotations.
const AnnotationPrefix = "penstock.dev/"

// Annotations of ClusterExtensions. OLM's CustomResourceDefinition has no fields for these
// settings, and does not prune annotations.
const (
	// ApprovalAnnotation is Automatic (the default), Manual or Reviewed. With Manual, installations
	// and upgrades wait as Paused revisions until a user approves them. With Reviewed, an automatic
	// upgrade waits only if its diff has a note that holds.
	ApprovalAnnotation = "penstock.dev/upgrade-approval"
	// HoldOnAnnotation lists the reasons of the notes that hold, separated by commas; see package
	// note.
	HoldOnAnnotation = "penstock.dev/hold-on"
	// ProgressDeadlineAnnotation is the deadline of a rollout, in minutes, 0 to 10080.
	// spec.progressDeadlineMinutes takes precedence.
	ProgressDeadlineAnnotation = "penstock.dev/progress-deadline-minutes"
	// SuccessDelayAnnotation is the time during which all objects must stay available before a
	// revision has succeeded, in seconds, 0 to 86400.
	SuccessDelayAnnotation = "penstock.dev/success-delay-seconds"
	// MetricChecksAnnotation names MetricChecks, separated by commas. All must answer Yes before a
	// revision has succeeded.
	MetricChecksAnnotation = "penstock.dev/metric-checks"
	// OnFailureAnnotation is None (the default) or Rollback.
	OnFailureAnnotation = "penstock.dev/on-failure"
	// CollisionProtectionAnnotation is Prevent (the default), IfNoController or None.
	CollisionProtectionAnnotation = "penstock.dev/collision-protection"
	// TeardownPolicyAnnotation is Delete (the default) or Orphan.
	TeardownPolicyAnnotation = "penstock.dev/teardown-policy"
	// AcceptRequirementsAnnotation is "true" to install a bundle without checking its required
	// packages and kinds, or "false" (the default).
	AcceptRequirementsAnnotation = "penstock.dev/accept-requirements"
	// YieldAnnotation lists fields that Penstock leaves to other field managers, in the format of
	// spec.yield of revisions, as YAML or JSON.
	YieldAnnotation = "penstock.dev/yield"
	// ReportDriftUntilAnnotation is the time until which Penstock reports drift and does not repair
	// it.
	ReportDriftUntilAnnotation = v1alpha1.ReportDriftUntilAnnotation
	// TargetAnnotation names a Secret in Penstock's namespace with the kubeconfig of another
	// cluster. It is immutable.
	TargetAnnotation = "penstock.dev/target"
	// RequiresAnnotation names the ClusterExtensions that must be installed first; see
	// ParseRequires.
	RequiresAnnotation = "penstock.dev/requires"
	// AcknowledgeDependentsAnnotation allows one change although installed extensions require
	// something else. The message of the refusal has the value to set.
	AcknowledgeDependentsAnnotation = "penstock.dev/acknowledge-dependents"
	// PatchesAnnotation lists changes of single fields of rendered objects; see package patch.
	PatchesAnnotation = "penstock.dev/patches"
	// SetAnnotation names the ClusterExtensionSet of the extension. Only Penstock writes the
	// annotation. While an extension has it, only Penstock writes the extension.
	SetAnnotation = "penstock.dev/set"
	// ContentAnnotation is the digest of the approved content of the extension. Its revisions have
	// the annotation, too, and the extension gets no revision with other content. Only Penstock
	// writes it.
	ContentAnnotation = "penstock.dev/content"
	// RolloutAnnotation is the name of the extension's ClusterExtensionRollout, a slash, and the
	// number of the attempt. Only Penstock writes it.
	RolloutAnnotation = "penstock.dev/rollout"
	// ValuesFromAnnotation lists Secrets and ConfigMaps with configuration; see package values.
	ValuesFromAnnotation = "penstock.dev/values-from"
	// AuthorAnnotation names the last user who changed the spec or one of these annotations. The
	// server signs it, and only the server writes it.
	AuthorAnnotation = "penstock.dev/author"
)

// Annotations of revisions that were created from a ClusterExtension. Only Penstock writes them;
// see Notes.
const (
	// GenerationAnnotation is the generation of the ClusterExtension from which the revision was
	// created.
	GenerationAnnotation = "penstock.dev/extension-generation"
	// ChannelAnnotation is the channel that led to the bundle; absent without a channel.
	ChannelAnnotation = "penstock.dev/channel"
	// CatalogAnnotation is the ClusterCatalog that has the bundle. A child of a ClusterExtensionSet
	// has it, too; the signature policy of that catalog applies to its image.
	CatalogAnnotation = "penstock.dev/catalog"
	// MadeOfAnnotation is the digest of the revision's inputs: the image reference, and every part
	// of the ClusterExtension that affects the content. While it is unchanged, Penstock pulls
	// nothing.
	MadeOfAnnotation = "penstock.dev/made-of"
	// StampAnnotation identifies the author's stamp when the revision was created or found to be
	// the desired one. A stamp decides one revision.
	StampAnnotation = "penstock.dev/author-stamp"
	// WarningsAnnotation has the warnings from rendering the bundle or chart, one per line, at most
	// MaxWarnings bytes.
	WarningsAnnotation = "penstock.dev/warnings"
	// PatchedAnnotation lists the fields that PatchesAnnotation changed, by object, as a JSON list
	// of patch.Applied, at most MaxPatched bytes.
	PatchedAnnotation = "penstock.dev/patched"
	// ReleaseAnnotation is OLM v1's annotation for the release of a bundle, next to its version.
	ReleaseAnnotation = "olm.operatorframework.io/bundle-release"
	// ProposedAnnotation is "true" on a revision that was created Paused and is not approved yet.
	ProposedAnnotation = v1alpha1.ProposedAnnotation
)

// MaxWarnings limits the value of WarningsAnnotation, in bytes.
const MaxWarnings = 4096

// MaxPatched limits the value of PatchedAnnotation, in bytes.
const MaxPatched = 16 << 10

// Notes returns the annotations in which Penstock records the inputs of a revision. Clients must
// not set or change them.
func Notes() []string {
	return []string{GenerationAnnotation, ChannelAnnotation, CatalogAnnotation, MadeOfAnnotation, StampAnnotation, WarningsAnnotation, PatchedAnnotation, ContentAnnotation}
}

// BundleNotes returns annotations that users can set on their own revisions. On a revision with
// MadeOfAnnotation only Penstock writes them, because they identify the version that the next
// upgrade starts from.
func BundleNotes() []string {
	return []string{v1alpha1.PackageAnnotation, v1alpha1.BundleAnnotation, v1alpha1.VersionAnnotation, v1alpha1.ReferenceAnnotation, ReleaseAnnotation,
		v1alpha1.KubeVersionAnnotation, v1alpha1.MaxOpenShiftAnnotation}
}
