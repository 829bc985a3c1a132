package extension

import "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"

// AnnotationPrefix begins our annotations.
const AnnotationPrefix = "penstock.dev/"

// Annotations of ClusterExtensions. OLM's definition has no fields for what they say, and
// prunes no annotations.
const (
	// ApprovalAnnotation is Automatic, the default, Manual, or Reviewed. With Manual an upgrade,
	// and an installation, waits as a Paused revision until a user approves it. With Reviewed an
	// automatic upgrade waits only when its diff has a note that holds.
	ApprovalAnnotation = "penstock.dev/upgrade-approval"
	// HoldOnAnnotation lists the reasons of the notes that hold, separated by commas: see package
	// note.
	HoldOnAnnotation = "penstock.dev/hold-on"
	// ProgressDeadlineAnnotation is the deadline of a rollout, in minutes, 0 to 10080.
	// spec.progressDeadlineMinutes takes precedence.
	ProgressDeadlineAnnotation = "penstock.dev/progress-deadline-minutes"
	// SuccessDelayAnnotation is the time for which all objects must stay available before a
	// revision has succeeded, in seconds, 0 to 86400.
	SuccessDelayAnnotation = "penstock.dev/success-delay-seconds"
	// MetricChecksAnnotation names MetricChecks, separated by commas, that must say Yes before a
	// revision has succeeded.
	MetricChecksAnnotation = "penstock.dev/metric-checks"
	// OnFailureAnnotation is None, the default, or Rollback.
	OnFailureAnnotation = "penstock.dev/on-failure"
	// CollisionProtectionAnnotation is Prevent, the default, IfNoController or None.
	CollisionProtectionAnnotation = "penstock.dev/collision-protection"
	// TeardownPolicyAnnotation is Delete, the default, or Orphan.
	TeardownPolicyAnnotation = "penstock.dev/teardown-policy"
	// AcceptRequirementsAnnotation is "true" to install a bundle without a check of the packages
	// and kinds that it requires, or "false", the default.
	AcceptRequirementsAnnotation = "penstock.dev/accept-requirements"
	// YieldAnnotation lists fields that are left to other field managers, as YAML or JSON of
	// spec.yield of revisions.
	YieldAnnotation = "penstock.dev/yield"
	// ReportDriftUntilAnnotation is the time until which drift is reported and not repaired.
	ReportDriftUntilAnnotation = v1alpha1.ReportDriftUntilAnnotation
	// TargetAnnotation names the Secret with the kubeconfig of another cluster, in the namespace of
	// Penstock. It cannot change.
	TargetAnnotation = "penstock.dev/target"
	// RequiresAnnotation names the ClusterExtensions that must be installed before, see
	// ParseRequires.
	RequiresAnnotation = "penstock.dev/requires"
	// AcknowledgeDependentsAnnotation allows one change, named by the value that the message asks
	// for, although installed extensions require something else.
	AcknowledgeDependentsAnnotation = "penstock.dev/acknowledge-dependents"
	// PatchesAnnotation lists changes of single fields of rendered objects, see package patch.
	PatchesAnnotation = "penstock.dev/patches"
	// SetAnnotation names the ClusterExtensionSet of the extension. Only Penstock writes it, and
	// then only Penstock writes the extension.
	SetAnnotation = "penstock.dev/set"
	// ContentAnnotation is the digest of the approved content of the extension. Its revisions have
	// the annotation too, and the extension gets no revision with other content. Only Penstock
	// writes it.
	ContentAnnotation = "penstock.dev/content"
	// RolloutAnnotation is the ClusterExtensionRollout that the extension follows, a slash, and the
	// number of the attempt. Only Penstock writes it.
	RolloutAnnotation = "penstock.dev/rollout"
	// ValuesFromAnnotation lists Secrets and ConfigMaps with configuration, see package values.
	ValuesFromAnnotation = "penstock.dev/values-from"
	// AuthorAnnotation names the user who changed the spec or one of these annotations last, signed
	// by the server. Only the server writes it.
	AuthorAnnotation = "penstock.dev/author"
)

// Annotations of revisions that were made of a ClusterExtension. Only Penstock writes them, see
// Notes.
const (
	// GenerationAnnotation is the generation of the ClusterExtension from which the revision was
	// made.
	GenerationAnnotation = "penstock.dev/extension-generation"
	// ChannelAnnotation is the channel that led to the bundle, absent without one.
	ChannelAnnotation = "penstock.dev/channel"
	// CatalogAnnotation is the ClusterCatalog that has the bundle. A child of a ClusterExtensionSet
	// has it too: its image is verified by the rules of that catalog.
	CatalogAnnotation = "penstock.dev/catalog"
	// MadeOfAnnotation is a digest of the inputs of the revision: the reference of the image, and
	// every part of the ClusterExtension that affects its content. While it is the same, Penstock
	// pulls nothing.
	MadeOfAnnotation = "penstock.dev/made-of"
	// StampAnnotation names the author's stamp at the time when the revision was made, or was found
	// to be the desired one. A stamp decides one revision.
	StampAnnotation = "penstock.dev/author-stamp"
	// WarningsAnnotation has the warnings of rendering the bundle or chart, one a line, at most
	// MaxWarnings bytes.
	WarningsAnnotation = "penstock.dev/warnings"
	// PatchedAnnotation lists the fields that PatchesAnnotation has written, by object, as a JSON
	// list of patch.Applied, at most MaxPatched bytes.
	PatchedAnnotation = "penstock.dev/patched"
	// ReleaseAnnotation is OLM v1's annotation for the release of a bundle beside its version.
	ReleaseAnnotation = "olm.operatorframework.io/bundle-release"
	// ProposedAnnotation is "true" on a revision that was made Paused and has no approval yet.
	ProposedAnnotation = v1alpha1.ProposedAnnotation
)

// MaxWarnings bounds the value of WarningsAnnotation, in bytes.
const MaxWarnings = 4096

// MaxPatched bounds the value of PatchedAnnotation, in bytes.
const MaxPatched = 16 << 10

// Notes returns the annotations in which Penstock records the inputs of a revision. No client sets
// or changes them.
func Notes() []string {
	return []string{GenerationAnnotation, ChannelAnnotation, CatalogAnnotation, MadeOfAnnotation, StampAnnotation, WarningsAnnotation, PatchedAnnotation, ContentAnnotation}
}

// BundleNotes returns annotations that users can set on their own revisions. On a revision with
// MadeOfAnnotation only Penstock writes them, because they name the version from which it upgrades.
func BundleNotes() []string {
	return []string{v1alpha1.PackageAnnotation, v1alpha1.BundleAnnotation, v1alpha1.VersionAnnotation, v1alpha1.ReferenceAnnotation, ReleaseAnnotation,
		v1alpha1.KubeVersionAnnotation, v1alpha1.MaxOpenShiftAnnotation}
}
