package olm

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// LifecycleState decides how Penstock treats a revision's objects.
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
type OnFailure string

const (
	// OnFailureNone only reports the failure in status.
	OnFailureNone OnFailure = "None"
	// OnFailureRollback rolls back to the newest earlier revision that has succeeded.
	OnFailureRollback OnFailure = "Rollback"
)

// TeardownPolicy decides whether the objects are deleted with the revision.
type TeardownPolicy string

const (
	// TeardownPolicyDelete deletes the objects, in reverse order of the rollout.
	TeardownPolicyDelete TeardownPolicy = "Delete"
	// TeardownPolicyOrphan keeps the objects in the cluster. Penstock does not manage them any
	// more.
	TeardownPolicyOrphan TeardownPolicy = "Orphan"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ClusterExtensionRevision is one immutable revision of an extension. Its objects are in phases.
// Penstock rolls out one phase after the other, and begins a phase when the objects of the phases
// before it pass their probes. Its name is <extension>-<revision>.
type ClusterExtensionRevision struct {
	metav1.TypeMeta
	// metadata is the standard object metadata.
	metav1.ObjectMeta
	// Spec has the content to roll out. Its phases never change.
	Spec ClusterExtensionRevisionSpec
	// Status is the observed state.
	Status ClusterExtensionRevisionStatus
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ClusterExtensionRevisionList is a list of revisions.
type ClusterExtensionRevisionList struct {
	metav1.TypeMeta
	// metadata is the standard list metadata.
	metav1.ListMeta
	// Items are the revisions.
	Items []ClusterExtensionRevision
}

// ClusterExtensionRevisionSpec is the content of a revision and how to roll it out. Only
// lifecycleState, progressDeadlineMinutes, successDelaySeconds, metricChecks, onFailure,
// teardownPolicy and adoptedTeardownPolicy can change after creation.
type ClusterExtensionRevisionSpec struct {
	// LifecycleState is Active (the default), Paused or Archived. Archived is
	// final.
	LifecycleState LifecycleState
	// Revision is the number of this revision in its extension, from 1 to 2147483647. Each revision
	// has a higher number than the revisions before it. Immutable.
	Revision int64
	// Previous lists the revisions before this one, newest first. The server fills it in if it is
	// absent. Immutable.
	Previous []PreviousRevision
	// TargetRef names the Secret with the kubeconfig of the cluster for this revision. Without it,
	// the cluster is that of --target-kubeconfig, or the cluster that serves this API. All
	// revisions of an extension have the same targetRef. Immutable.
	TargetRef *TargetReference
	// Phases are rolled out in order. Penstock writes objects of a phase once all objects of the
	// phases before it are applied and pass their probes. Immutable.
	Phases []RevisionPhase
	// CollisionProtection applies to all objects whose phase and entry do not set it: Prevent (the
	// default), IfNoController or None. Immutable.
	CollisionProtection CollisionProtection
	// ProgressDeadlineMinutes bounds the time of a rollout, in minutes. When it has passed, status
	// reports Stalled, and the rollout continues. 0 (the default) means no deadline.
	ProgressDeadlineMinutes int32
	// SuccessDelaySeconds is the time for which all objects must stay Available before Succeeded
	// turns True and Penstock archives the older revisions. It is in seconds, at most 86400. 0 (the
	// default) means no delay. If an object fails during the delay, the delay begins again once all
	// objects are Available. The progress deadline does not count during the delay. The delay may
	// change: 0 ends it.
	SuccessDelaySeconds int32
	// MetricChecks are names of MetricChecks, at most 8. Penstock evaluates them while all objects
	// are Available. The revision succeeds after successDelaySeconds if the last verdict of each is
	// Yes. It fails on the verdict No, and waits while a verdict is Unknown.
	MetricChecks []string
	// OnFailure is the reaction when the progress deadline passes, or a MetricCheck gives the
	// verdict No, before the revision has ever succeeded. None (the default): only status reports
	// it. Rollback: Penstock rolls back once, to the newest earlier revision that has succeeded. It
	// does not roll back a revision that is a rollback itself. Rollback needs
	// progressDeadlineMinutes. onFailure and progressDeadlineMinutes may change during a rollout,
	// to request or cancel the rollback.
	OnFailure OnFailure
	// ProgressionProbes hold phases back until the selected objects fulfil their assertions. The
	// built-in probes of well-known kinds still apply. Immutable.
	ProgressionProbes []ProgressionProbe
	// Yield lists fields that Penstock leaves to other field managers, such as an autoscaler.
	// Penstock applies the manifest's value of a field until another manager owns the field. Fields
	// that are set through the subresource scale need no rule. Immutable.
	Yield []YieldRule
	// TeardownPolicy decides whether the objects are deleted when this revision is deleted: Delete
	// (the default) or Orphan. `kubectl delete --cascade=orphan` sets Orphan.
	TeardownPolicy TeardownPolicy
	// AdoptedTeardownPolicy applies to objects that existed before the extension and that no tool
	// had installed (Helm, OLM or Penstock). If such an object would be deleted, Orphan (the
	// default) keeps it, and Delete deletes it like other objects. For each object, the policy of
	// the revision whose content the object has applies. The policy may change.
	AdoptedTeardownPolicy TeardownPolicy
}

// TargetReference names the Secret with the kubeconfig of a cluster.
type TargetReference struct {
	// Name of a Secret in the namespace of Penstock. The Secret has the kubeconfig at the key
	// kubeconfig, or at the key value as in Cluster API. The kubeconfig must be self-contained: it
	// must not name programs or files. A user who changes the revision needs the verb use on
	// targets.policy.penstock.dev, for the resource of this name. The name default is not allowed:
	// in that rule it means the cluster of --target-kubeconfig.
	Name string
}

// IsLayer reports whether the engine keeps the objects of a revision in the cluster.
func (r *ClusterExtensionRevision) IsLayer() bool {
	return r.DeletionTimestamp.IsZero() && r.Spec.LifecycleState != LifecycleStateArchived
}

// Target returns the name of the Secret with the kubeconfig of the revision's cluster. It is "" if
// spec has no targetRef.
func (r *ClusterExtensionRevision) Target() string {
	if r.Spec.TargetRef == nil {
		return ""
	}
	return r.Spec.TargetRef.Name
}

// YieldRule leaves fields of selected objects to other field managers.
type YieldRule struct {
	// Selector selects the objects.
	Selector YieldSelector
	// Fields are paths. Each path includes all fields below it (see manifest.FieldPath).
	Fields []string
}

// YieldSelector selects objects of the revision by kind, and by namespace and name if given.
type YieldSelector struct {
	// GroupKind selects objects of one kind.
	GroupKind metav1.GroupKind
	// Namespace of the objects; empty for all namespaces.
	Namespace string
	// Name of the objects; empty for all names.
	Name string
}

// PreviousRevision names a revision of the same extension.
type PreviousRevision struct {
	// Name is the revision's name.
	Name string
	// UID is the revision's uid, when known.
	UID types.UID
}

// RevisionPhase is a named step of a rollout.
type RevisionPhase struct {
	// Name is the phase's name, a DNS label, unique in the revision.
	Name string
	// CollisionProtection applies to the objects of this phase whose entry does not set it.
	CollisionProtection CollisionProtection
	// Objects are the phase's objects.
	Objects []RevisionObject
	// Packed has the entries of Objects in less memory. Revisions in the watch cache, and in lists
	// and events from it, have Packed in place of Objects; other revisions have nil. See Unpack.
	Packed *PackedObjects
}

// RevisionObject is one object of a phase. A write may have the manifest in object. A read returns
// the identity and digest of the manifest. The subresource manifests returns the manifest itself.
type RevisionObject struct {
	// Object is the manifest, on write only. Without it, a revision of this extension must have an
	// object with the identity and digest of this entry.
	Object *Manifest
	// APIVersion of the object.
	APIVersion string
	// Kind of the object.
	Kind string
	// Namespace of the object; empty for cluster-scoped objects.
	Namespace string
	// Name of the object.
	Name string
	// Digest of the manifest: sha256:<hex>, or hmac-sha256:<hex> for a Secret.
	Digest string
	// Size of the canonical manifest, in bytes. It is absent for a Secret. Ignored on write.
	Size int64
	// CreateOnly objects are created and never changed. Ignored on write.
	CreateOnly bool
	// InstallLevel of a create-only object, 0 or 1. The first installation creates level 0 before
	// level 1. Ignored on write.
	InstallLevel int32
	// CollisionProtection applies to this object only.
	CollisionProtection CollisionProtection
}

// ProgressionProbe makes a phase wait until all selected objects fulfil all assertions.
type ProgressionProbe struct {
	// Selector selects the objects.
	Selector ProbeSelector
	// Assertions must all be true.
	Assertions []ProbeAssertion
}

// ProbeSelector selects objects of the revision by kind, by labels, or by both. At least one must
// be given.
type ProbeSelector struct {
	// GroupKind selects objects of one kind.
	GroupKind *metav1.GroupKind
	// LabelSelector selects objects by their live labels.
	LabelSelector *metav1.LabelSelector
}

// ProbeAssertion is one requirement. Exactly one of its fields is set.
type ProbeAssertion struct {
	// ConditionEqual requires that a condition in status.conditions has a given status. The
	// condition must be current for the object's generation.
	ConditionEqual *ConditionEqual
	// FieldsEqual requires two fields of the object to be equal.
	FieldsEqual *FieldsEqual
	// FieldValue requires a field of the object to have a value.
	FieldValue *FieldValue
	// CEL requires a CEL expression over the object, `self`, to be true.
	CEL *CELAssertion
}

// ConditionEqual names a condition and the status it must have.
type ConditionEqual struct {
	// Type of the condition.
	Type string
	// Status that the condition must have: True, False or Unknown.
	Status metav1.ConditionStatus
}

// FieldsEqual names two fields by path, such as spec.replicas and
// status.readyReplicas.
type FieldsEqual struct {
	// FieldA is the path of a field, parts joined by dots.
	FieldA string
	// FieldB is the path of the field that must equal fieldA.
	FieldB string
}

// FieldValue names a field by path and the value that it must have.
type FieldValue struct {
	// FieldPath is the path of the field, parts joined by dots.
	FieldPath string
	// Value that the field must have, as text. Numbers and booleans are in their JSON form.
	Value string
}

// CELAssertion is a CEL expression and the message for a false result.
type CELAssertion struct {
	// Expression over `self`, the live object. It must return a bool.
	Expression string
	// Message to report when the expression is false.
	Message string
}

// PhaseState is the progress of a phase in one word.
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
	// ObservedGeneration is the generation that status describes.
	ObservedGeneration int64
	// RequestedBy is the user who created the revision. The server sets it.
	RequestedBy *Requester
	// Conditions are Ready, Available, Progressing, Succeeded, Failing and Stalled. Some revisions
	// also have RolledBack, DriftReported or Held.
	Conditions []metav1.Condition
	// Phases are in the order of spec.phases.
	Phases []PhaseStatus
	// MetricChecks are the last measurements of spec.metricChecks.
	MetricChecks []MetricMeasurement
}

// MetricMeasurement is the last measurement of a MetricCheck.
type MetricMeasurement struct {
	// Name of the MetricCheck.
	Name string
	// Time of the measurement.
	Time metav1.Time
	// Verdict is Yes, No or Unknown.
	Verdict MetricVerdict
	// Value of the sample; empty when there is no usable sample.
	Value string
	// Message is the reason of a verdict other than Yes.
	Message string
	// Digest of the spec of the MetricCheck. A measurement for another spec does not count.
	Digest string
}

// MetricVerdict is the meaning of a measurement.
type MetricVerdict string

// Requester is the user who asked for a change, as authenticated by kube-apiserver.
type Requester struct {
	// Username of the requester.
	Username string
	// UID of the requester, if the authenticator provided it.
	UID string
	// Groups of the requester.
	Groups []string
	// Extra is the additional information from the authenticator.
	Extra map[string]ExtraValue
}

// ExtraValue is the list of values of one extra key.
type ExtraValue []string

// PhaseStatus is the progress of a phase.
type PhaseStatus struct {
	// Name of the phase.
	Name string
	// State is Pending, Progressing, Available, Failing, Superseded or
	// Archived.
	State PhaseState
	// Objects is the number of objects of the phase.
	Objects int32
	// Applied is the number of objects in the cluster that have the content of this revision.
	Applied int32
	// Available is the number of applied objects that pass their probes.
	Available int32
	// Superseded is the number of objects that belong to a newer revision.
	Superseded int32
	// Failing lists the objects that hold the phase back, at most 20.
	Failing []ObjectFailure
	// FailingOmitted is the number of failing objects that the list omits.
	FailingOmitted int32
	// StartedAt is the time at which the rollout of the phase began. It never changes. It is absent
	// for Pending phases and for phases of imported revisions.
	StartedAt *metav1.Time
	// AvailableAt is the time at which the phase was Available for the first time. It does not
	// change when objects are repaired, or when the phase is archived.
	AvailableAt *metav1.Time
}

// ObjectFailure is one object that holds a phase back.
type ObjectFailure struct {
	// APIVersion of the object.
	APIVersion string
	// Kind of the object.
	Kind string
	// Namespace of the object; empty for cluster-scoped objects.
	Namespace string
	// Name of the object.
	Name string
	// Reason is one CamelCase word, such as Collision, ProbeFailed or ApplyRejected.
	Reason string
	// Message explains the failure to a person.
	Message string
	// Cause is the reason why the object is not ready, if it is known.
	Cause *FailureCause
}
