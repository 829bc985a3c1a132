package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Limits of a revision. A revision beyond one of them is refused with 422
// Invalid (or 413 for a request body), naming the limit and what was found.
const (
	// MaxPhases is the number of phases of one revision.
	MaxPhases = 64
	// MaxObjects is the number of objects of one revision, over all phases.
	MaxObjects = 4000
	// MaxManifestBytes bounds the canonical JSON of all objects of one revision.
	MaxManifestBytes = 16 << 20
	// MaxRecordBytes bounds a stored revision, in JSON.
	MaxRecordBytes = 1 << 20
	// MaxSpecBytes bounds the stored spec (identities and digests, probes), so
	// that the record with status and managed fields stays below 1 MiB.
	MaxSpecBytes = 768 << 10
	// MaxExtensionNameLength is the length of an extension's name, in
	// characters: with "-" and a number of up to ten digits behind it the
	// revision's name still fits where Kubernetes allows 63.
	MaxExtensionNameLength = 52
	// MaxStatusBytes bounds status, in JSON, for the same reason: with
	// MaxSpecBytes of spec there is as much left again for metadata. Writers of
	// status shorten what they report to fit.
	MaxStatusBytes = 192 << 10
	// MaxRevision is the highest number a revision can have: ten digits, so that
	// with the longest extension name a revision's name has 63 characters.
	MaxRevision = 1<<31 - 1
	// MaxSuccessDelaySeconds is the longest that a rollout may have to stay
	// Available before it has succeeded, in seconds: a day.
	MaxSuccessDelaySeconds = 86400
	// MaxMetricChecks bounds the MetricChecks of a revision.
	MaxMetricChecks = 8
	// MaxProgressionProbes is the number of progression probes of one revision.
	MaxProgressionProbes = 64
	// MaxAssertions is the number of assertions of one revision, over all its
	// progression probes.
	MaxAssertions = 128
	// MaxExpressionBytes is the length of one CEL expression, and
	// MaxExpressionsBytes that of all different ones of a revision together, in
	// bytes: compiling them takes time that nobody has been asked for yet.
	MaxExpressionBytes  = 4 << 10
	MaxExpressionsBytes = 6 << 10
	// MaxYieldRules is the number of yield rules of one revision, and of the
	// fields of one rule.
	MaxYieldRules = 64
	// MaxCreateOnlyObjects is the number of create-only objects of one revision:
	// each is watched by name.
	MaxCreateOnlyObjects = 256
	// MaxReportedFailures bounds the failing objects that status lists per
	// phase; what is left out is counted.
	MaxReportedFailures = 20
	// MaxMessageLength bounds a failing object's message, in bytes.
	MaxMessageLength = 512
)

// Names that Penstock puts on objects.
const (
	// ChainLabel names the extension that a revision or a managed object belongs to.
	ChainLabel = "penstock.dev/chain"
	// FieldManagerPrefix begins the field manager of every extension; its name follows.
	FieldManagerPrefix = "penstock/"
	// AppliedAnnotation holds, on a managed object, the digest of the manifest
	// that was applied last.
	AppliedAnnotation = "penstock.dev/applied"
	// TeardownAnnotation, on a managed object, asks with the value Orphan that the
	// object is left when it would be deleted.
	TeardownAnnotation = "penstock.dev/teardown-policy"
	// TeardownFinalizer keeps a deleted revision until the objects that belong
	// to no other revision of its extension are gone.
	TeardownFinalizer = "penstock.dev/teardown"
	// SummaryAnnotation is status in one line, kept by the server for those who
	// read a revision from the top.
	SummaryAnnotation = "penstock.dev/summary"
	// RollbackOfAnnotation, on a revision, names the one whose content it brought
	// back. The server sets it; no client can.
	RollbackOfAnnotation = "penstock.dev/rollback-of"
	// ChangeCauseAnnotation, on a revision, says why it was created, as on
	// Deployments.
	ChangeCauseAnnotation = "kubernetes.io/change-cause"
	// VersionAnnotation, on a revision, is the version of the extension that it
	// installs.
	VersionAnnotation = "olm.operatorframework.io/bundle-version"
	// PackageAnnotation, on a revision, is the package of a catalog that its version
	// is one of.
	PackageAnnotation = "olm.operatorframework.io/package-name"
	// BundleAnnotation and ReferenceAnnotation, on a revision that was made of an image,
	// name its bundle and the image with its digest.
	BundleAnnotation    = "olm.operatorframework.io/bundle-name"
	ReferenceAnnotation = "olm.operatorframework.io/bundle-reference"
	// VerifiedAnnotation, on a revision that was made of an image, says as JSON by which rule and
	// signers the image was verified, and when. Only Penstock writes it. It stays when another image
	// with the same content is installed: the next diff compares its signers.
	VerifiedAnnotation = "penstock.dev/verified"
	// KubeVersionAnnotation, on a revision, is the range of versions of Kubernetes that its chart
	// states, and MaxOpenShiftAnnotation the last version of OpenShift that its bundle states, as JSON.
	KubeVersionAnnotation  = "penstock.dev/kube-version"
	MaxOpenShiftAnnotation = "penstock.dev/max-openshift-version"
	// AllowCRDDeletionAnnotation, set on a revision, acknowledges that a
	// CustomResourceDefinition which still has instances may be deleted with
	// them. Its value lists the CustomResourceDefinitions by name, separated
	// by commas.
	AllowCRDDeletionAnnotation = "penstock.dev/allow-crd-deletion"
	// ProtectLabel, with the value "true" on a namespace, protects the objects that extensions
	// have rolled out there.
	ProtectLabel = "policy.penstock.dev/protect"
	// TakeOverFromAnnotation, set on a revision, lists extensions, separated by commas, from
	// which the revision may take objects that their namespace protects. It needs the verb
	// bypass on privilegechecks.policy.penstock.dev for each of them.
	TakeOverFromAnnotation = "penstock.dev/take-over-from"
	// AcknowledgeDeletionAnnotation, set on a revision, allows deletions that wait for an
	// acknowledgement. Its value has the words that status of the revision asks for,
	// separated by commas. It is refused before status asks for it, with one exception: the
	// update that resumes a paused revision may set it to summary.removedDigest of its
	// diff.
	AcknowledgeDeletionAnnotation = "penstock.dev/acknowledge-deletion"
	// AcknowledgeFindingPrefix begins annotations of revisions that acknowledge a finding of upgrade readiness.
	// The name is the id of the finding, the value a minor of Kubernetes and a reason: "1.38 nobody uses it".
	AcknowledgeFindingPrefix = "acknowledge.penstock.dev/"
	// AcknowledgedByPrefix begins annotations that say when (RFC 3339) and by whom a finding was acknowledged.
	// The server sets them; no client can.
	AcknowledgedByPrefix = "acknowledged-by.penstock.dev/"
	// ProposedAnnotation, on a paused revision, is "true" while somebody has to approve it
	// before it is rolled out. The server sets it on revisions that it makes in nobody's
	// name, and removes it when somebody approves; no client can.
	ProposedAnnotation = "penstock.dev/proposed"
	// HeldByAnnotation, on a proposal that was held by what it changes, lists the reasons of the
	// notes that hold it, with commas between them. HeldUnderAnnotation tells the list that was
	// asked for, and what the proposal was compared with, from others. Only Penstock writes them.
	HeldByAnnotation    = "penstock.dev/held-by"
	HeldUnderAnnotation = "penstock.dev/held-under"
	// LifecycleReasonAnnotation says why somebody has paused, resumed or archived a revision,
	// or why a proposal waits for somebody.
	LifecycleReasonAnnotation = "penstock.dev/lifecycle-reason"
	// ApproveAnnotation, set on a proposed revision in the update that sets lifecycleState
	// to Active, approves it. Its value is summary.approvalDigest of the diff with what is
	// rolled out.
	ApproveAnnotation = "penstock.dev/approve"
	// ReportDriftUntilAnnotation is a time as in RFC 3339, at most MaxReportDrift ahead when it is
	// written. Until then Penstock reports what others change or delete of the objects, and repairs
	// nothing of that, except objects that decide who may do what.
	ReportDriftUntilAnnotation = "penstock.dev/report-drift-until"
	// ApproveNotBeforeAnnotation, set on a proposed revision together with ApproveAnnotation while it
	// stays Paused, approves it for later (RFC 3339): when upgrades of its ClusterExtension may begin by the maintenance
	// windows, and not before that time. To remove it withdraws the approval.
	ApproveNotBeforeAnnotation = "penstock.dev/approve-not-before"
	// ScheduledApprovalAnnotation records on a proposal the user who approved it for later.
	// When that approval had no effect, it also has the reason. The server writes it; no
	// client can.
	ScheduledApprovalAnnotation = "penstock.dev/scheduled-approval"
	// ApprovedByAnnotation and ApprovedAtAnnotation, on a revision that was proposed, tell
	// who approved it, and when (RFC 3339). The server sets them; no client can.
	ApprovedByAnnotation = "penstock.dev/approved-by"
	ApprovedAtAnnotation = "penstock.dev/approved-at"
	// DeletedByAnnotation, on a revision that is being deleted, names the user who deleted
	// it, or is DeletedByRetention. The server sets it; no client can.
	DeletedByAnnotation = "penstock.dev/deleted-by"
	// DeletedByRetention is the value of DeletedByAnnotation on an archived revision that
	// is removed because newer ones are kept.
	DeletedByRetention = "penstock:retention"
	// FreezeConfigMap, in the namespace of Penstock, freezes the cluster for as long as
	// it exists: Penstock writes nothing to it. Its keys are reason and author.
	FreezeConfigMap = "penstock-freeze"
	// TargetKey and TargetClusterAPIKey are where a Secret of a target has its
	// kubeconfig; the first one that is there counts.
	TargetKey           = "kubeconfig"
	TargetClusterAPIKey = "value"
	// ReleaseHoldAnnotation, set on a revision of an extension, releases the
	// extension's owner from the hold of a rollback. Its value is the name of the revision
	// that the rollback made, so it releases no later hold; it is refused before status
	// of the revision that it is set on asks for it.
	ReleaseHoldAnnotation = "penstock.dev/release-hold"
)

// LifecycleState says what is done with a revision's objects.
// +enum
type LifecycleState string

const (
	// LifecycleStateActive rolls the revision out and keeps it that way.
	LifecycleStateActive LifecycleState = "Active"
	// LifecycleStatePaused writes nothing; status still reports the state of the
	// objects.
	LifecycleStatePaused LifecycleState = "Paused"
	// LifecycleStateArchived ends the rollout of the revision for good: Penstock deletes
	// its objects that belong to no other active revision of the extension.
	LifecycleStateArchived LifecycleState = "Archived"
)

// CollisionProtection says what may be done with an object that exists already
// and was not made by this extension.
// +enum
type CollisionProtection string

const (
	// CollisionProtectionPrevent never touches it.
	CollisionProtectionPrevent CollisionProtection = "Prevent"
	// CollisionProtectionIfNoController takes it over when it has no
	// controller owner and belongs to no other extension.
	CollisionProtectionIfNoController CollisionProtection = "IfNoController"
	// CollisionProtectionNone takes it over from anyone.
	CollisionProtectionNone CollisionProtection = "None"
)

// OnFailure says what happens when a rollout misses its progress deadline.
// +enum
type OnFailure string

const (
	// OnFailureNone leaves it to people.
	OnFailureNone OnFailure = "None"
	// OnFailureRollback rolls out again what has succeeded before.
	OnFailureRollback OnFailure = "Rollback"
)

// TeardownPolicy says whether the objects are deleted with the revision.
// +enum
type TeardownPolicy string

const (
	// TeardownPolicyDelete deletes them, in reverse order.
	TeardownPolicyDelete TeardownPolicy = "Delete"
	// TeardownPolicyOrphan leaves them as they are and forgets them.
	TeardownPolicyOrphan TeardownPolicy = "Orphan"
)

// +genclient
// +genclient:nonNamespaced
// +genclient:method=GetManifests,verb=get,subresource=manifests,result=github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1.RevisionManifestList
// +genclient:method=GetDiff,verb=get,subresource=diff,result=github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1.RevisionDiff
// +genclient:method=GetHistory,verb=get,subresource=history,result=github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1.RevisionHistory
// +genclient:method=GetObjects,verb=get,subresource=objects,result=github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1.RevisionObjects
// +genclient:method=Rollback,verb=create,subresource=rollback,input=github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1.RevisionRollback,result=github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1.RevisionRollback
// +genclient:method=Propose,verb=create,subresource=proposal,input=github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1.ClusterExtensionRevision,result=github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1.RevisionDiff
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ClusterExtensionRevision is one immutable revision of an extension: phases of
// objects that are rolled out one after the other, each gated by probes. Its
// name is <extension>-<revision>.
type ClusterExtensionRevision struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec has the content to roll out. Its phases never change.
	Spec ClusterExtensionRevisionSpec `json:"spec"`
	// status is the observed state.
	// +optional
	Status ClusterExtensionRevisionStatus `json:"status,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ClusterExtensionRevisionList is a list of revisions.
type ClusterExtensionRevisionList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the revisions.
	Items []ClusterExtensionRevision `json:"items"`
}

// ClusterExtensionRevisionSpec is the content of a revision and how to roll it
// out. Only lifecycleState, progressDeadlineMinutes, successDelaySeconds, metricChecks,
// onFailure, teardownPolicy and adoptedTeardownPolicy may change after creation.
type ClusterExtensionRevisionSpec struct {
	// lifecycleState is Active (the default), Paused or Archived. Archived is
	// final.
	// +optional
	// +default="Active"
	LifecycleState LifecycleState `json:"lifecycleState,omitempty"`
	// revision is the number of this revision in its extension, 1 to 2147483647.
	// Numbers of an extension only grow. Immutable.
	Revision int64 `json:"revision"`
	// previous lists the revisions that this one follows, newest first. The
	// server fills it in when it is absent. Immutable.
	// +optional
	// +listType=atomic
	Previous []PreviousRevision `json:"previous,omitempty"`
	// targetRef names the cluster into which the revision is rolled out, by a
	// kubeconfig Secret in the namespace of Penstock. Without it, that is the cluster
	// of --target-kubeconfig, or the cluster that serves this API. All revisions of an
	// extension have the same targetRef. Immutable.
	// +optional
	TargetRef *TargetReference `json:"targetRef,omitempty"`
	// phases are rolled out in order: objects of a phase are touched when all
	// objects of the phases before it are applied and pass their probes.
	// Immutable.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +patchMergeKey=name
	// +patchStrategy=merge
	Phases []RevisionPhase `json:"phases,omitempty" patchStrategy:"merge" patchMergeKey:"name"`
	// collisionProtection applies to all objects whose phase and entry do not set it:
	// Prevent (the default), IfNoController or None. Immutable.
	// +optional
	// +default="Prevent"
	CollisionProtection CollisionProtection `json:"collisionProtection,omitempty"`
	// progressDeadlineMinutes bounds the time of a rollout before status says Stalled, in
	// minutes; 0 (the default) is no deadline. The rollout continues after the deadline.
	// +optional
	ProgressDeadlineMinutes int32 `json:"progressDeadlineMinutes,omitempty"`
	// successDelaySeconds is the time for which all objects must stay Available before Succeeded
	// turns True and Penstock archives the older revisions. It is in seconds, at most 86400; 0
	// (the default) means no delay. If an object fails meanwhile, the delay begins again once all
	// objects are Available. The progress deadline does not count while the delay runs. The delay
	// may change: 0 ends it.
	// +optional
	SuccessDelaySeconds int32 `json:"successDelaySeconds,omitempty"`
	// metricChecks are names of MetricChecks, at most 8. Penstock asks them while all objects are
	// Available. The revision succeeds after successDelaySeconds when the last answer of each is
	// Yes. An answer No fails it. While an answer is Unknown, the revision waits.
	// +optional
	// +listType=set
	MetricChecks []string `json:"metricChecks,omitempty"`
	// onFailure is the reaction when the progress deadline passes and the rollout has
	// never succeeded. None (the default): only status says so. Rollback: the newest
	// earlier revision that has succeeded is rolled out again as the next revision,
	// once, through the subresource rollback; not when this revision is a rollback
	// itself. Rollback needs progressDeadlineMinutes. Both fields may change during a
	// rollout, to ask for the rollback or to call it off.
	// +optional
	// +default="None"
	OnFailure OnFailure `json:"onFailure,omitempty"`
	// progressionProbes hold phases back until selected objects fulfil their
	// assertions, in addition to the built-in probes of well-known kinds.
	// Immutable.
	// +optional
	// +listType=atomic
	ProgressionProbes []ProgressionProbe `json:"progressionProbes,omitempty"`
	// yield lists fields that are left to other field managers, such as an autoscaler:
	// each field has the manifest's value until another manager owns it, and is not
	// applied from then on. Fields that are set through the subresource scale need not
	// be listed. Immutable.
	// +optional
	// +listType=atomic
	Yield []YieldRule `json:"yield,omitempty"`
	// teardownPolicy decides about the objects when this revision is deleted: Delete (the
	// default) or Orphan. `kubectl delete --cascade=orphan` sets it.
	// +optional
	// +default="Delete"
	TeardownPolicy TeardownPolicy `json:"teardownPolicy,omitempty"`
	// adoptedTeardownPolicy decides about objects that existed before the extension, and that no
	// extension had installed, when they would be deleted. Orphan (the default) leaves them as
	// they are, and Delete deletes them like all others. For each object, the policy of the
	// revision whose content it has applies. Objects that Helm, OLM or Penstock had installed do
	// not count as such objects. The policy may change.
	// +optional
	// +default="Orphan"
	AdoptedTeardownPolicy TeardownPolicy `json:"adoptedTeardownPolicy,omitempty"`
}

// TargetReference names a cluster by the Secret that has a kubeconfig for it.
type TargetReference struct {
	// name of a Secret in the namespace of Penstock, with the kubeconfig at the key
	// kubeconfig, or at the key value as in Secrets of Cluster API. The kubeconfig
	// must be self-contained: it names no program and no file. Users who change the
	// revision need the right to use the resource of this name in
	// targets.policy.penstock.dev. The name default stands there for the cluster of
	// --target-kubeconfig, and not for a Secret.
	Name string `json:"name"`
}

// Target returns the name of the Secret that leads to the cluster of a revision, ""
// when it names none.
func (r *ClusterExtensionRevision) Target() string {
	if r.Spec.TargetRef == nil {
		return ""
	}
	return r.Spec.TargetRef.Name
}

// DefaultTarget is the name of the cluster of --target-kubeconfig in rules of RBAC. No Secret of
// this name can be a target, because a right to one would be a right to the other.
const DefaultTarget = "default"

// YieldRule leaves fields of selected objects to others.
type YieldRule struct {
	// selector picks the objects.
	Selector YieldSelector `json:"selector"`
	// fields are paths, with all that is below them: spec.replicas,
	// spec.template.spec.containers[name=main].resources,
	// metadata.annotations["example.com/note"]; [*] is every item of a list.
	// +listType=atomic
	Fields []string `json:"fields"`
}

// YieldSelector picks objects of the revision by kind, and by name if given.
type YieldSelector struct {
	// groupKind selects objects of one kind.
	GroupKind metav1.GroupKind `json:"groupKind"`
	// namespace of the objects; empty for any.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// name of the objects; empty for any.
	// +optional
	Name string `json:"name,omitempty"`
}

// PreviousRevision names a revision of the same extension.
type PreviousRevision struct {
	// name is the revision's name.
	Name string `json:"name"`
	// uid is the revision's uid, when known.
	// +optional
	UID types.UID `json:"uid,omitempty"`
}

// RevisionPhase is a named step of a rollout.
type RevisionPhase struct {
	// name is the phase's name, a DNS label, unique in the revision.
	Name string `json:"name"`
	// collisionProtection applies to the objects of this phase whose entry does not
	// set it.
	// +optional
	CollisionProtection CollisionProtection `json:"collisionProtection,omitempty"`
	// objects are the phase's objects.
	// +optional
	// +listType=atomic
	Objects []RevisionObject `json:"objects,omitempty"`
}

// RevisionObject is one object of a phase. On write it may carry the manifest
// inline, in object; on read it is the manifest's identity and digest, and the
// manifest is at the subresource manifests.
type RevisionObject struct {
	// object is the manifest, on write only. Without it, the identity and
	// digest must be those of an object that a revision of this extension holds.
	// +optional
	Object *Manifest `json:"object,omitempty"`
	// apiVersion of the object.
	// +optional
	APIVersion string `json:"apiVersion,omitempty"`
	// kind of the object.
	// +optional
	Kind string `json:"kind,omitempty"`
	// namespace of the object; empty for cluster-scoped ones.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// name of the object.
	// +optional
	Name string `json:"name,omitempty"`
	// digest of the canonical manifest: sha256:<hex>, or hmac-sha256:<hex> for
	// a Secret.
	// +optional
	Digest string `json:"digest,omitempty"`
	// size of the canonical manifest in bytes; absent for a Secret. Ignored on
	// write.
	// +optional
	Size int64 `json:"size,omitempty"`
	// createOnly objects are created, and never changed. Ignored on write.
	// +optional
	CreateOnly bool `json:"createOnly,omitempty"`
	// installLevel of a create-only object, 0 or 1. Ignored on write.
	// +optional
	InstallLevel int32 `json:"installLevel,omitempty"`
	// collisionProtection applies to this object only.
	// +optional
	CollisionProtection CollisionProtection `json:"collisionProtection,omitempty"`
}

// ProgressionProbe makes a phase wait until the objects it selects fulfil all
// its assertions.
type ProgressionProbe struct {
	// selector picks the objects.
	Selector ProbeSelector `json:"selector"`
	// assertions must all hold.
	// +listType=atomic
	Assertions []ProbeAssertion `json:"assertions"`
}

// ProbeSelector picks objects of the revision by kind, by labels, or both. At
// least one must be given.
type ProbeSelector struct {
	// groupKind selects objects of one kind.
	// +optional
	GroupKind *metav1.GroupKind `json:"groupKind,omitempty"`
	// labelSelector selects objects by their live labels.
	// +optional
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`
}

// ProbeAssertion is one requirement. Exactly one of its members is set.
type ProbeAssertion struct {
	// conditionEqual requires a condition in status.conditions, current for the
	// object's generation, to have a status.
	// +optional
	ConditionEqual *ConditionEqual `json:"conditionEqual,omitempty"`
	// fieldsEqual requires two fields of the object to be equal.
	// +optional
	FieldsEqual *FieldsEqual `json:"fieldsEqual,omitempty"`
	// fieldValue requires a field of the object to have a value.
	// +optional
	FieldValue *FieldValue `json:"fieldValue,omitempty"`
	// cel requires a CEL expression over the object, `self`, to be true.
	// +optional
	CEL *CELAssertion `json:"cel,omitempty"`
}

// ConditionEqual names a condition and the status it must have.
type ConditionEqual struct {
	// type of the condition.
	Type string `json:"type"`
	// status that it must have: True, False or Unknown.
	Status metav1.ConditionStatus `json:"status"`
}

// FieldsEqual names two fields by path, such as spec.replicas and
// status.readyReplicas.
type FieldsEqual struct {
	// fieldA is the path of a field, parts joined by dots.
	FieldA string `json:"fieldA"`
	// fieldB is the path of the field that must equal it.
	FieldB string `json:"fieldB"`
}

// FieldValue names a field by path and the value it must have.
type FieldValue struct {
	// fieldPath is the path of the field, parts joined by dots.
	FieldPath string `json:"fieldPath"`
	// value it must have, as text: numbers and booleans in their JSON form.
	Value string `json:"value"`
}

// CELAssertion is a CEL expression and what to say when it is false.
type CELAssertion struct {
	// expression over `self`, the live object; its type is bool.
	Expression string `json:"expression"`
	// message when the expression is false.
	// +optional
	Message string `json:"message,omitempty"`
}

// Condition types of a revision.
const (
	// ConditionReady is True when the revision Succeeded once and is Available
	// now, at this generation. A new revision has it as Unknown.
	ConditionReady = "Ready"
	// ConditionAvailable is True when all objects are as rolled out and pass
	// their probes.
	ConditionAvailable = "Available"
	// ConditionProgressing is True while the rollout, an archival or a teardown
	// goes on, False when it is done.
	ConditionProgressing = "Progressing"
	// ConditionSucceeded turns True when the rollout is complete for the first
	// time, and stays True.
	ConditionSucceeded = "Succeeded"
	// ConditionFailing is True when only a person can help, or the API server has
	// refused an object for two minutes for the same reason.
	ConditionFailing = "Failing"
	// ConditionStalled is True when nothing moves: only a person can help, or the
	// progress deadline has passed (kstatus).
	ConditionStalled = "Stalled"
	// ConditionRolledBack is True when the next revision of the extension brought an
	// earlier one back, and False when that should have happened by itself and
	// did not. Others do not have it.
	ConditionRolledBack = "RolledBack"
	// ConditionDriftReported is True while ReportDriftUntilAnnotation has changes of others to the
	// objects reported and not repaired. Others do not have it.
	ConditionDriftReported = "DriftReported"
	// ConditionHeld, on the newest revision of an extension, is True while a rollback
	// keeps the extension's owner from rolling forward.
	ConditionHeld = "Held"
)

// PhaseState says how far a phase is.
// +enum
type PhaseState string

const (
	// PhaseStatePending has not been reached.
	PhaseStatePending PhaseState = "Pending"
	// PhaseStateProgressing is being applied, or waits for probes.
	PhaseStateProgressing PhaseState = "Progressing"
	// PhaseStateAvailable is applied, and its probes pass.
	PhaseStateAvailable PhaseState = "Available"
	// PhaseStateFailing has objects that only a person can help, or that have been
	// refused for long.
	PhaseStateFailing PhaseState = "Failing"
	// PhaseStateSuperseded has only objects that belong to newer revisions.
	PhaseStateSuperseded PhaseState = "Superseded"
	// PhaseStateArchived was given up.
	PhaseStateArchived PhaseState = "Archived"
)

// ClusterExtensionRevisionStatus is the observed state of a revision.
type ClusterExtensionRevisionStatus struct {
	// observedGeneration is the generation that status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// requestedBy is the user who created the revision. The server stamps it.
	// +optional
	RequestedBy *Requester `json:"requestedBy,omitempty"`
	// conditions are Ready, Available, Progressing, Succeeded, Failing and
	// Stalled, and where there is something to say, RolledBack and Held.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +patchMergeKey=type
	// +patchStrategy=merge
	Conditions []metav1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`
	// phases are in the order of spec.phases.
	// +optional
	// +listType=map
	// +listMapKey=name
	Phases []PhaseStatus `json:"phases,omitempty"`
	// metricChecks are the last answers of spec.metricChecks.
	// +optional
	// +listType=map
	// +listMapKey=name
	MetricChecks []MetricMeasurement `json:"metricChecks,omitempty"`
}

// MetricMeasurement is the last answer of a MetricCheck.
type MetricMeasurement struct {
	// name of the MetricCheck.
	Name string `json:"name"`
	// time of the answer.
	Time metav1.Time `json:"time"`
	// verdict is Yes, No or Unknown.
	Verdict MetricVerdict `json:"verdict"`
	// value of the sample; empty when there is no usable sample.
	// +optional
	Value string `json:"value,omitempty"`
	// message says why the verdict is not Yes.
	// +optional
	Message string `json:"message,omitempty"`
	// digest is that of the spec of the MetricCheck. An answer to another spec does not count.
	// +optional
	Digest string `json:"digest,omitempty"`
}

// MetricVerdict is the meaning of a measurement.
type MetricVerdict string

// Verdicts of measurements.
const (
	// MetricYes is a sample within the bounds.
	MetricYes MetricVerdict = "Yes"
	// MetricNo is a sample outside of the bounds.
	MetricNo MetricVerdict = "No"
	// MetricUnknown is no usable sample.
	MetricUnknown MetricVerdict = "Unknown"
)

// Requester is the user who asked for a change, as authenticated by kube-apiserver.
type Requester struct {
	// username of the requester.
	Username string `json:"username"`
	// uid of the requester, when the authenticator gave one.
	// +optional
	UID string `json:"uid,omitempty"`
	// groups of the requester.
	// +optional
	// +listType=atomic
	Groups []string `json:"groups,omitempty"`
	// extra is the additional information from the authenticator.
	// +optional
	Extra map[string]ExtraValue `json:"extra,omitempty"`
}

// ExtraValue is a list of values of one extra key.
type ExtraValue []string

// PhaseStatus is the progress of a phase.
type PhaseStatus struct {
	// name of the phase.
	Name string `json:"name"`
	// state is Pending, Progressing, Available, Failing, Superseded or
	// Archived.
	State PhaseState `json:"state"`
	// objects is the number of objects of the phase.
	Objects int32 `json:"objects"`
	// applied is the number of objects that are in the cluster with the content of this revision.
	// +optional
	Applied int32 `json:"applied,omitempty"`
	// available is the number of applied objects that pass their probes.
	// +optional
	Available int32 `json:"available,omitempty"`
	// superseded is the number of objects that belong to a newer revision by now.
	// +optional
	Superseded int32 `json:"superseded,omitempty"`
	// failing lists the objects that hold the phase back, at most 20.
	// +optional
	// +listType=atomic
	Failing []ObjectFailure `json:"failing,omitempty"`
	// failingOmitted is the number of entries that are left out.
	// +optional
	FailingOmitted int32 `json:"failingOmitted,omitempty"`
	// startedAt is the time at which the rollout of the phase began. It never changes. Pending
	// phases and phases of imported revisions have none.
	// +optional
	StartedAt *metav1.Time `json:"startedAt,omitempty"`
	// availableAt is the time at which the phase was Available for the first time. It does not
	// change while objects are repaired, or when the phase is archived.
	// +optional
	AvailableAt *metav1.Time `json:"availableAt,omitempty"`
}

// ObjectFailure is one object that holds a phase back.
type ObjectFailure struct {
	// apiVersion of the object.
	APIVersion string `json:"apiVersion"`
	// kind of the object.
	Kind string `json:"kind"`
	// namespace of the object; empty for cluster-scoped ones.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// name of the object.
	Name string `json:"name"`
	// reason in one CamelCase word, such as Collision, ProbeFailed or
	// ApplyRejected.
	Reason string `json:"reason"`
	// message for a person.
	Message string `json:"message"`
	// cause is the known cause for which the object is not ready.
	// +optional
	Cause *FailureCause `json:"cause,omitempty"`
}
