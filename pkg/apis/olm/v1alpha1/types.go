package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Limits of a revision. Penstock refuses a revision beyond a limit with 422 Invalid (a request body
// with 413). The error names the limit and the value found.
const (
	// MaxPhases is the number of phases of one revision.
	MaxPhases = 64
	// MaxObjects is the number of objects of one revision, over all phases.
	MaxObjects = 4000
	// MaxManifestBytes bounds the canonical JSON of all objects of one revision.
	MaxManifestBytes = 16 << 20
	// MaxRecordBytes bounds a stored revision, in JSON.
	MaxRecordBytes = 1 << 20
	// MaxSpecBytes bounds the stored spec (identities, digests and probes). The whole record, with
	// status and managed fields, then stays below 1 MiB.
	MaxSpecBytes = 768 << 10
	// MaxExtensionNameLength is the length of an extension's name, in characters. A revision's name
	// adds "-" and up to ten digits, and Kubernetes allows 63 characters.
	MaxExtensionNameLength = 52
	// MaxStatusBytes bounds status, in JSON. With MaxSpecBytes of spec, it leaves 64 KiB of
	// MaxRecordBytes for metadata. Writers of status shorten their messages to fit.
	MaxStatusBytes = 192 << 10
	// MaxRevision is the highest number of a revision. It has ten digits, so a revision's name has
	// at most 63 characters.
	MaxRevision = 1<<31 - 1
	// MaxSuccessDelaySeconds bounds the time for which a rollout must stay Available before it
	// succeeds, in seconds: one day.
	MaxSuccessDelaySeconds = 86400
	// MaxMetricChecks bounds the MetricChecks of a revision.
	MaxMetricChecks = 8
	// MaxProgressionProbes is the number of progression probes of one revision.
	MaxProgressionProbes = 64
	// MaxAssertions is the number of assertions of one revision, over all its
	// progression probes.
	MaxAssertions = 128
	// MaxExpressionBytes bounds the length of one CEL expression. MaxExpressionsBytes bounds all
	// different expressions of a revision together. Both are in bytes. The server compiles
	// expressions before it checks the privileges of the user, so that work must be bounded.
	MaxExpressionBytes  = 4 << 10
	MaxExpressionsBytes = 6 << 10
	// MaxYieldRules is the number of yield rules of one revision, and of the fields of one rule.
	MaxYieldRules = 64
	// MaxCreateOnlyObjects is the number of create-only objects of one revision. Penstock watches
	// each by name.
	MaxCreateOnlyObjects = 256
	// MaxReportedFailures bounds the failing objects that status lists per phase. failingOmitted
	// counts the rest.
	MaxReportedFailures = 20
	// MaxMessageLength bounds a failing object's message, in bytes.
	MaxMessageLength = 512
)

// Names that Penstock puts on objects.
const (
	// ChainLabel names the extension that a revision or a managed object belongs to.
	ChainLabel = "penstock.dev/chain"
	// FieldManagerPrefix begins the field manager of every extension. The extension's name follows.
	FieldManagerPrefix = "penstock/"
	// AppliedAnnotation, on a managed object, is the digest of the manifest that Penstock applied
	// last.
	AppliedAnnotation = "penstock.dev/applied"
	// TeardownAnnotation, with the value Orphan on a managed object, keeps the object when Penstock
	// would delete it.
	TeardownAnnotation = "penstock.dev/teardown-policy"
	// TeardownFinalizer keeps a deleted revision until its objects are deleted. Objects that belong
	// to another revision of the extension do not count.
	TeardownFinalizer = "penstock.dev/teardown"
	// SummaryAnnotation is status in one line. The server writes it, for readers of `kubectl get -o
	// yaml`, where metadata comes first.
	SummaryAnnotation = "penstock.dev/summary"
	// RollbackOfAnnotation, on a revision that a rollback created, names the revision with the same
	// content. Only the server can set it.
	RollbackOfAnnotation = "penstock.dev/rollback-of"
	// ChangeCauseAnnotation, on a revision, is the reason why it was created, as on Deployments.
	ChangeCauseAnnotation = "kubernetes.io/change-cause"
	// VersionAnnotation, on a revision, is the version of the extension that it
	// installs.
	VersionAnnotation = "olm.operatorframework.io/bundle-version"
	// PackageAnnotation, on a revision, is the package of a catalog that has its version.
	PackageAnnotation = "olm.operatorframework.io/package-name"
	// BundleAnnotation and ReferenceAnnotation, on a revision that comes from an image, name its
	// bundle and the image with its digest.
	BundleAnnotation    = "olm.operatorframework.io/bundle-name"
	ReferenceAnnotation = "olm.operatorframework.io/bundle-reference"
	// VerifiedAnnotation, on a revision that comes from an image, records the verification of the
	// image in JSON: the rule, the signers and the time. Only Penstock writes it. It stays when
	// another image with the same content is installed, because the next diff compares its signers.
	VerifiedAnnotation = "penstock.dev/verified"
	// KubeVersionAnnotation, on a revision, is the range of Kubernetes versions that its chart
	// declares. MaxOpenShiftAnnotation is the last OpenShift version that its bundle declares, as
	// JSON.
	KubeVersionAnnotation  = "penstock.dev/kube-version"
	MaxOpenShiftAnnotation = "penstock.dev/max-openshift-version"
	// AllowCRDDeletionAnnotation, on a revision, allows Penstock to delete
	// CustomResourceDefinitions that still have instances, with those instances. Its value lists
	// the names of the CustomResourceDefinitions, separated by commas.
	AllowCRDDeletionAnnotation = "penstock.dev/allow-crd-deletion"
	// ProtectLabel, with the value "true" on a namespace, protects the objects that extensions have
	// rolled out in that namespace.
	ProtectLabel = "policy.penstock.dev/protect"
	// TakeOverFromAnnotation, on a revision, lists extensions, separated by commas. The revision
	// may take objects from them in spite of ProtectLabel. It needs the verb bypass on
	// privilegechecks.policy.penstock.dev for each of them.
	TakeOverFromAnnotation = "penstock.dev/take-over-from"
	// AcknowledgeDeletionAnnotation, on a revision, allows deletions that wait for an
	// acknowledgement. Its value has the words that status of the revision asks for, separated by
	// commas. Penstock refuses it before status asks for it, with one exception: the update that
	// resumes a paused revision may set it to summary.removedDigest of its diff.
	AcknowledgeDeletionAnnotation = "penstock.dev/acknowledge-deletion"
	// AcknowledgeFindingPrefix begins annotations of revisions that acknowledge a finding of
	// upgrade readiness. The rest of the name is the id of the finding. The value is a minor of
	// Kubernetes and a reason: "1.38 nobody uses it".
	AcknowledgeFindingPrefix = "acknowledge.penstock.dev/"
	// AcknowledgedByPrefix begins annotations that record when (RFC 3339) and by which user a
	// finding was acknowledged. Only the server can set them.
	AcknowledgedByPrefix = "acknowledged-by.penstock.dev/"
	// ProposedAnnotation, on a paused revision, is "true" while the rollout waits for an approval.
	// The server sets it on revisions that Penstock creates without a user, and removes it at the
	// approval. No client can set it.
	ProposedAnnotation = "penstock.dev/proposed"
	// HeldByAnnotation, on a proposal that waits because of its changes, lists the reasons of the
	// notes that hold it, separated by commas. HeldUnderAnnotation is a digest of the list of
	// reasons that was configured and of the revision that the proposal was compared with. Only
	// Penstock writes them.
	HeldByAnnotation    = "penstock.dev/held-by"
	HeldUnderAnnotation = "penstock.dev/held-under"
	// LifecycleReasonAnnotation is the reason why a revision was paused, resumed or archived, or
	// why a proposal waits.
	LifecycleReasonAnnotation = "penstock.dev/lifecycle-reason"
	// ApproveAnnotation, on a proposed revision, approves it, in the update that sets
	// lifecycleState to Active. Its value is summary.approvalDigest of the diff from the active
	// revision.
	ApproveAnnotation = "penstock.dev/approve"
	// ReportDriftUntilAnnotation is a time (RFC 3339), at most MaxReportDrift ahead when it is
	// written. Until then Penstock reports changes and deletions of the objects by other writers,
	// and does not repair them. It still repairs objects that grant rights.
	ReportDriftUntilAnnotation = "penstock.dev/report-drift-until"
	// ApproveNotBeforeAnnotation is a time (RFC 3339). Set with ApproveAnnotation on a proposed
	// revision that stays Paused, it approves the revision for later: when the maintenance windows
	// of its ClusterExtension allow upgrades, and not before that time. Removing the annotation
	// withdraws the approval.
	ApproveNotBeforeAnnotation = "penstock.dev/approve-not-before"
	// ScheduledApprovalAnnotation records on a proposal the user who approved it for later. If that
	// approval had no effect, it also has the reason. Only the server can set it.
	ScheduledApprovalAnnotation = "penstock.dev/scheduled-approval"
	// ApprovedByAnnotation and ApprovedAtAnnotation, on a revision that was proposed, record the
	// user who approved it and the time (RFC 3339). Only the server can set them.
	ApprovedByAnnotation = "penstock.dev/approved-by"
	ApprovedAtAnnotation = "penstock.dev/approved-at"
	// DeletedByAnnotation, on a revision that is being deleted, names the user who deleted it, or
	// is DeletedByRetention. Only the server can set it.
	DeletedByAnnotation = "penstock.dev/deleted-by"
	// DeletedByRetention is the value of DeletedByAnnotation on an archived revision that Penstock
	// deletes because enough newer revisions are kept.
	DeletedByRetention = "penstock:retention"
	// FreezeConfigMap, in the namespace of Penstock, freezes the cluster while it exists: Penstock
	// does not write to the cluster. Its keys are reason and author.
	FreezeConfigMap = "penstock-freeze"
	// TargetKey and TargetClusterAPIKey are the keys of the kubeconfig in a Secret of a target. The
	// first key that the Secret has counts.
	TargetKey           = "kubeconfig"
	TargetClusterAPIKey = "value"
	// ReleaseHoldAnnotation, on a revision of an extension, ends the hold of a rollback, so that
	// the extension's owner can create revisions again. Its value is the name of the revision that
	// the rollback created, so it cannot end a later hold. Penstock refuses it before status of
	// this revision asks for it.
	ReleaseHoldAnnotation = "penstock.dev/release-hold"
)

// LifecycleState decides how Penstock treats a revision's objects.
// +enum
type LifecycleState string

const (
	// LifecycleStateActive applies the objects and repairs changes of them.
	LifecycleStateActive LifecycleState = "Active"
	// LifecycleStatePaused writes nothing. Status still reports the state of the objects.
	LifecycleStatePaused LifecycleState = "Paused"
	// LifecycleStateArchived ends the rollout of the revision for good. Penstock deletes its
	// objects that belong to no other active revision of the extension.
	LifecycleStateArchived LifecycleState = "Archived"
)

// CollisionProtection decides whether Penstock adopts an object that exists already and that this
// extension did not create.
// +enum
type CollisionProtection string

const (
	// CollisionProtectionPrevent never changes the object.
	CollisionProtectionPrevent CollisionProtection = "Prevent"
	// CollisionProtectionIfNoController adopts the object if it has no controller owner and belongs
	// to no other extension.
	CollisionProtectionIfNoController CollisionProtection = "IfNoController"
	// CollisionProtectionNone adopts the object from any owner.
	CollisionProtectionNone CollisionProtection = "None"
)

// OnFailure is the reaction to a rollout that fails or misses its progress deadline.
// +enum
type OnFailure string

const (
	// OnFailureNone only reports the failure in status.
	OnFailureNone OnFailure = "None"
	// OnFailureRollback rolls back to the newest earlier revision that has succeeded.
	OnFailureRollback OnFailure = "Rollback"
)

// TeardownPolicy decides whether the objects are deleted with the revision.
// +enum
type TeardownPolicy string

const (
	// TeardownPolicyDelete deletes the objects, in reverse order of the rollout.
	TeardownPolicyDelete TeardownPolicy = "Delete"
	// TeardownPolicyOrphan keeps the objects in the cluster. Penstock does not manage them any
	// more.
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

// ClusterExtensionRevision is one immutable revision of an extension. Its objects are in phases.
// Penstock rolls out one phase after the other, and begins a phase when the objects of the phases
// before it pass their probes. Its name is <extension>-<revision>.
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

// ClusterExtensionRevisionSpec is the content of a revision and how to roll it out. Only
// lifecycleState, progressDeadlineMinutes, successDelaySeconds, metricChecks, onFailure,
// teardownPolicy and adoptedTeardownPolicy can change after creation.
type ClusterExtensionRevisionSpec struct {
	// lifecycleState is Active (the default), Paused or Archived. Archived is
	// final.
	// +optional
	// +default="Active"
	LifecycleState LifecycleState `json:"lifecycleState,omitempty"`
	// revision is the number of this revision in its extension, from 1 to 2147483647. Each revision
	// has a higher number than the revisions before it. Immutable.
	Revision int64 `json:"revision"`
	// previous lists the revisions before this one, newest first. The server fills it in if it is
	// absent. Immutable.
	// +optional
	// +listType=atomic
	Previous []PreviousRevision `json:"previous,omitempty"`
	// targetRef names the Secret with the kubeconfig of the cluster for this revision. Without it,
	// the cluster is that of --target-kubeconfig, or the cluster that serves this API. All
	// revisions of an extension have the same targetRef. Immutable.
	// +optional
	TargetRef *TargetReference `json:"targetRef,omitempty"`
	// phases are rolled out in order. Penstock writes objects of a phase once all objects of the
	// phases before it are applied and pass their probes. Immutable.
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
	// progressDeadlineMinutes bounds the time of a rollout, in minutes. When it has passed, status
	// reports Stalled, and the rollout continues. 0 (the default) means no deadline.
	// +optional
	ProgressDeadlineMinutes int32 `json:"progressDeadlineMinutes,omitempty"`
	// successDelaySeconds is the time for which all objects must stay Available before Succeeded
	// turns True and Penstock archives the older revisions. It is in seconds, at most 86400. 0 (the
	// default) means no delay. If an object fails during the delay, the delay begins again once all
	// objects are Available. The progress deadline does not count during the delay. The delay may
	// change: 0 ends it.
	// +optional
	SuccessDelaySeconds int32 `json:"successDelaySeconds,omitempty"`
	// metricChecks are names of MetricChecks, at most 8. Penstock evaluates them while all objects
	// are Available. The revision succeeds after successDelaySeconds if the last verdict of each is
	// Yes. It fails on the verdict No, and waits while a verdict is Unknown.
	// +optional
	// +listType=set
	MetricChecks []string `json:"metricChecks,omitempty"`
	// onFailure is the reaction when the progress deadline passes, or a MetricCheck gives the
	// verdict No, before the revision has ever succeeded. None (the default): only status reports
	// it. Rollback: Penstock rolls back once, to the newest earlier revision that has succeeded. It
	// does not roll back a revision that is a rollback itself. Rollback needs
	// progressDeadlineMinutes. onFailure and progressDeadlineMinutes may change during a rollout,
	// to request or cancel the rollback.
	// +optional
	// +default="None"
	OnFailure OnFailure `json:"onFailure,omitempty"`
	// progressionProbes hold phases back until the selected objects fulfil their assertions. The
	// built-in probes of well-known kinds still apply. Immutable.
	// +optional
	// +listType=atomic
	ProgressionProbes []ProgressionProbe `json:"progressionProbes,omitempty"`
	// yield lists fields that Penstock leaves to other field managers, such as an autoscaler.
	// Penstock applies the manifest's value of a field until another manager owns the field. Fields
	// that are set through the subresource scale need no rule. Immutable.
	// +optional
	// +listType=atomic
	Yield []YieldRule `json:"yield,omitempty"`
	// teardownPolicy decides whether the objects are deleted when this revision is deleted: Delete
	// (the default) or Orphan. `kubectl delete --cascade=orphan` sets Orphan.
	// +optional
	// +default="Delete"
	TeardownPolicy TeardownPolicy `json:"teardownPolicy,omitempty"`
	// adoptedTeardownPolicy applies to objects that existed before the extension and that no tool
	// had installed (Helm, OLM or Penstock). If such an object would be deleted, Orphan (the
	// default) keeps it, and Delete deletes it like other objects. For each object, the policy of
	// the revision whose content the object has applies. The policy may change.
	// +optional
	// +default="Orphan"
	AdoptedTeardownPolicy TeardownPolicy `json:"adoptedTeardownPolicy,omitempty"`
}

// TargetReference names the Secret with the kubeconfig of a cluster.
type TargetReference struct {
	// name of a Secret in the namespace of Penstock. The Secret has the kubeconfig at the key
	// kubeconfig, or at the key value as in Cluster API. The kubeconfig must be self-contained: it
	// must not name programs or files. A user who changes the revision needs the verb use on
	// targets.policy.penstock.dev, for the resource of this name. The name default is not allowed:
	// in that rule it means the cluster of --target-kubeconfig.
	Name string `json:"name"`
}

// Target returns the name of the Secret with the kubeconfig of the revision's cluster. It is "" if
// spec has no targetRef.
func (r *ClusterExtensionRevision) Target() string {
	if r.Spec.TargetRef == nil {
		return ""
	}
	return r.Spec.TargetRef.Name
}

// DefaultTarget is the name of the cluster of --target-kubeconfig in RBAC rules. No Secret of this
// name can be a target, because a right to one would be a right to the other.
const DefaultTarget = "default"

// YieldRule leaves fields of selected objects to other field managers.
type YieldRule struct {
	// selector selects the objects.
	Selector YieldSelector `json:"selector"`
	// fields are paths. Each path includes all fields below it. Examples: spec.replicas,
	// spec.template.spec.containers[name=main].resources, metadata.annotations["example.com/note"].
	// [*] means every item of a list.
	// +listType=atomic
	Fields []string `json:"fields"`
}

// YieldSelector selects objects of the revision by kind, and by namespace and name if given.
type YieldSelector struct {
	// groupKind selects objects of one kind.
	GroupKind metav1.GroupKind `json:"groupKind"`
	// namespace of the objects; empty for all namespaces.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// name of the objects; empty for all names.
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

// RevisionObject is one object of a phase. A write may have the manifest in object. A read returns
// the identity and digest of the manifest. The subresource manifests returns the manifest itself.
type RevisionObject struct {
	// object is the manifest, on write only. Without it, a revision of this extension must have an
	// object with the identity and digest of this entry.
	// +optional
	Object *Manifest `json:"object,omitempty"`
	// apiVersion of the object.
	// +optional
	APIVersion string `json:"apiVersion,omitempty"`
	// kind of the object.
	// +optional
	Kind string `json:"kind,omitempty"`
	// namespace of the object; empty for cluster-scoped objects.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// name of the object.
	// +optional
	Name string `json:"name,omitempty"`
	// digest of the manifest: sha256:<hex>, or hmac-sha256:<hex> for a Secret.
	// +optional
	Digest string `json:"digest,omitempty"`
	// size of the canonical manifest, in bytes. It is absent for a Secret. Ignored on write.
	// +optional
	Size int64 `json:"size,omitempty"`
	// createOnly objects are created and never changed. Ignored on write.
	// +optional
	CreateOnly bool `json:"createOnly,omitempty"`
	// installLevel of a create-only object, 0 or 1. The first installation creates level 0 before
	// level 1. Ignored on write.
	// +optional
	InstallLevel int32 `json:"installLevel,omitempty"`
	// collisionProtection applies to this object only.
	// +optional
	CollisionProtection CollisionProtection `json:"collisionProtection,omitempty"`
}

// ProgressionProbe makes a phase wait until all selected objects fulfil all assertions.
type ProgressionProbe struct {
	// selector selects the objects.
	Selector ProbeSelector `json:"selector"`
	// assertions must all be true.
	// +listType=atomic
	Assertions []ProbeAssertion `json:"assertions"`
}

// ProbeSelector selects objects of the revision by kind, by labels, or by both. At least one must
// be given.
type ProbeSelector struct {
	// groupKind selects objects of one kind.
	// +optional
	GroupKind *metav1.GroupKind `json:"groupKind,omitempty"`
	// labelSelector selects objects by their live labels.
	// +optional
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`
}

// ProbeAssertion is one requirement. Exactly one of its fields is set.
type ProbeAssertion struct {
	// conditionEqual requires that a condition in status.conditions has a given status. The
	// condition must be current for the object's generation.
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
	// status that the condition must have: True, False or Unknown.
	Status metav1.ConditionStatus `json:"status"`
}

// FieldsEqual names two fields by path, such as spec.replicas and
// status.readyReplicas.
type FieldsEqual struct {
	// fieldA is the path of a field, parts joined by dots.
	FieldA string `json:"fieldA"`
	// fieldB is the path of the field that must equal fieldA.
	FieldB string `json:"fieldB"`
}

// FieldValue names a field by path and the value that it must have.
type FieldValue struct {
	// fieldPath is the path of the field, parts joined by dots.
	FieldPath string `json:"fieldPath"`
	// value that the field must have, as text. Numbers and booleans are in their JSON form.
	Value string `json:"value"`
}

// CELAssertion is a CEL expression and the message for a false result.
type CELAssertion struct {
	// expression over `self`, the live object. It must return a bool.
	Expression string `json:"expression"`
	// message to report when the expression is false.
	// +optional
	Message string `json:"message,omitempty"`
}

// Condition types of a revision.
const (
	// ConditionReady is True when the revision has Succeeded once and is Available now, at this
	// generation. It is Unknown for a new revision.
	ConditionReady = "Ready"
	// ConditionAvailable is True when all objects match their manifests and pass their probes.
	ConditionAvailable = "Available"
	// ConditionProgressing is True during a rollout, an archival or a teardown, and False
	// afterwards.
	ConditionProgressing = "Progressing"
	// ConditionSucceeded turns True when the rollout is complete for the first
	// time, and stays True.
	ConditionSucceeded = "Succeeded"
	// ConditionFailing is True when the revision needs a person. It is also True when the API
	// server has refused an object for two minutes for the same reason.
	ConditionFailing = "Failing"
	// ConditionStalled is True when the rollout makes no progress: it needs a person, or its
	// progress deadline has passed (kstatus).
	ConditionStalled = "Stalled"
	// ConditionRolledBack is True when the next revision of the extension is a rollback from this
	// revision. It is False when an automatic rollback was due and did not happen. Other revisions
	// do not have this condition.
	ConditionRolledBack = "RolledBack"
	// ConditionDriftReported is True while ReportDriftUntilAnnotation makes Penstock report drift
	// and not repair it. Other revisions do not have this condition.
	ConditionDriftReported = "DriftReported"
	// ConditionHeld, on the newest revision of an extension, is True while a rollback keeps the
	// extension's owner from creating revisions.
	ConditionHeld = "Held"
)

// PhaseState is the progress of a phase in one word.
// +enum
type PhaseState string

const (
	// PhaseStatePending means that the rollout has not reached the phase.
	PhaseStatePending PhaseState = "Pending"
	// PhaseStateProgressing means that Penstock applies the objects, or waits for their probes.
	PhaseStateProgressing PhaseState = "Progressing"
	// PhaseStateAvailable means that the objects are applied and pass their probes.
	PhaseStateAvailable PhaseState = "Available"
	// PhaseStateFailing means that an object needs a person, or that the API server has refused an
	// object for two minutes.
	PhaseStateFailing PhaseState = "Failing"
	// PhaseStateSuperseded means that all objects of the phase belong to newer revisions.
	PhaseStateSuperseded PhaseState = "Superseded"
	// PhaseStateArchived means that the revision was archived.
	PhaseStateArchived PhaseState = "Archived"
)

// ClusterExtensionRevisionStatus is the observed state of a revision.
type ClusterExtensionRevisionStatus struct {
	// observedGeneration is the generation that status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// requestedBy is the user who created the revision. The server sets it.
	// +optional
	RequestedBy *Requester `json:"requestedBy,omitempty"`
	// conditions are Ready, Available, Progressing, Succeeded, Failing and Stalled. Some revisions
	// also have RolledBack, DriftReported or Held.
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
	// metricChecks are the last measurements of spec.metricChecks.
	// +optional
	// +listType=map
	// +listMapKey=name
	MetricChecks []MetricMeasurement `json:"metricChecks,omitempty"`
}

// MetricMeasurement is the last measurement of a MetricCheck.
type MetricMeasurement struct {
	// name of the MetricCheck.
	Name string `json:"name"`
	// time of the measurement.
	Time metav1.Time `json:"time"`
	// verdict is Yes, No or Unknown.
	Verdict MetricVerdict `json:"verdict"`
	// value of the sample; empty when there is no usable sample.
	// +optional
	Value string `json:"value,omitempty"`
	// message is the reason of a verdict other than Yes.
	// +optional
	Message string `json:"message,omitempty"`
	// digest of the spec of the MetricCheck. A measurement for another spec does not count.
	// +optional
	Digest string `json:"digest,omitempty"`
}

// MetricVerdict is the meaning of a measurement.
type MetricVerdict string

// Verdicts of measurements.
const (
	// MetricYes means that the sample is within the bounds.
	MetricYes MetricVerdict = "Yes"
	// MetricNo means that the sample is outside of the bounds.
	MetricNo MetricVerdict = "No"
	// MetricUnknown means that there is no usable sample.
	MetricUnknown MetricVerdict = "Unknown"
)

// Requester is the user who asked for a change, as authenticated by kube-apiserver.
type Requester struct {
	// username of the requester.
	Username string `json:"username"`
	// uid of the requester, if the authenticator provided it.
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

// ExtraValue is the list of values of one extra key.
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
	// applied is the number of objects in the cluster that have the content of this revision.
	// +optional
	Applied int32 `json:"applied,omitempty"`
	// available is the number of applied objects that pass their probes.
	// +optional
	Available int32 `json:"available,omitempty"`
	// superseded is the number of objects that belong to a newer revision.
	// +optional
	Superseded int32 `json:"superseded,omitempty"`
	// failing lists the objects that hold the phase back, at most 20.
	// +optional
	// +listType=atomic
	Failing []ObjectFailure `json:"failing,omitempty"`
	// failingOmitted is the number of failing objects that the list omits.
	// +optional
	FailingOmitted int32 `json:"failingOmitted,omitempty"`
	// startedAt is the time at which the rollout of the phase began. It never changes. It is absent
	// for Pending phases and for phases of imported revisions.
	// +optional
	StartedAt *metav1.Time `json:"startedAt,omitempty"`
	// availableAt is the time at which the phase was Available for the first time. It does not
	// change when objects are repaired, or when the phase is archived.
	// +optional
	AvailableAt *metav1.Time `json:"availableAt,omitempty"`
}

// ObjectFailure is one object that holds a phase back.
type ObjectFailure struct {
	// apiVersion of the object.
	APIVersion string `json:"apiVersion"`
	// kind of the object.
	Kind string `json:"kind"`
	// namespace of the object; empty for cluster-scoped objects.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// name of the object.
	Name string `json:"name"`
	// reason is one CamelCase word, such as Collision, ProbeFailed or ApplyRejected.
	Reason string `json:"reason"`
	// message explains the failure to a person.
	Message string `json:"message"`
	// cause is the reason why the object is not ready, if it is known.
	// +optional
	Cause *FailureCause `json:"cause,omitempty"`
}
