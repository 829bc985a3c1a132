package olm

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// LifecycleState says what is done with a revision's objects.
type LifecycleState string

const (
	// LifecycleStateActive rolls the revision out and keeps it that way.
	LifecycleStateActive LifecycleState = "Active"
	// LifecycleStatePaused writes nothing; status still tells what is.
	LifecycleStatePaused LifecycleState = "Paused"
	// LifecycleStateArchived ends the rollout for good: what belongs to
	// no other active revision of the extension is deleted. It is final.
	LifecycleStateArchived LifecycleState = "Archived"
)

// CollisionProtection says what may be done with an object that exists already
// and was not made by this extension.
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
type OnFailure string

const (
	// OnFailureNone leaves it to people.
	OnFailureNone OnFailure = "None"
	// OnFailureRollback rolls out again what has succeeded before.
	OnFailureRollback OnFailure = "Rollback"
)

// TeardownPolicy says what becomes of the objects when the revision is deleted.
type TeardownPolicy string

const (
	// TeardownPolicyDelete deletes them, in reverse order.
	TeardownPolicyDelete TeardownPolicy = "Delete"
	// TeardownPolicyOrphan leaves them as they are and forgets them.
	TeardownPolicyOrphan TeardownPolicy = "Orphan"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ClusterExtensionRevision is one immutable revision of an extension: phases of
// objects that are rolled out one after the other, each gated by probes. Its
// name is <extension>-<revision>.
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

// ClusterExtensionRevisionSpec is the content of a revision and how to roll it
// out. Only lifecycleState, progressDeadlineMinutes, successDelaySeconds, metricChecks,
// onFailure and teardownPolicy may change after creation.
type ClusterExtensionRevisionSpec struct {
	// LifecycleState is Active (the default), Paused or Archived. Archived is
	// final.
	LifecycleState LifecycleState
	// Revision is the number of this revision in its extension, 1 to 2147483647.
	// Numbers of an extension only grow. Immutable.
	Revision int64
	// Previous lists the revisions that this one follows, newest first. The
	// server fills it in when it is absent. Immutable.
	Previous []PreviousRevision
	// TargetRef names another cluster into which the revision is rolled out, by a
	// kubeconfig Secret in the namespace of Penstock. Without it that is the cluster of
	// --target-kubeconfig, or the one that serves this API. All revisions of an
	// extension have the same. Immutable.
	TargetRef *TargetReference
	// Phases are rolled out in order: objects of a phase are touched when all
	// objects of the phases before it are applied and pass their probes.
	// Immutable.
	Phases []RevisionPhase
	// CollisionProtection is for all objects whose phase and entry say nothing
	// else: Prevent (the default), IfNoController or None. Immutable.
	CollisionProtection CollisionProtection
	// ProgressDeadlineMinutes bounds the time of a rollout before status says Stalled, in
	// minutes; 0 (the default) is no deadline. The rollout continues after it.
	ProgressDeadlineMinutes int32
	// SuccessDelaySeconds is the time for which all objects must stay Available before Succeeded
	// turns True and Penstock archives the older revisions. It is in seconds, at most 86400; 0
	// (the default) means no delay. If an object fails meanwhile, the delay begins again once all
	// objects are Available. The progress deadline does not count while the delay runs. The delay
	// may change: 0 ends it.
	SuccessDelaySeconds int32
	// MetricChecks are names of MetricChecks, at most 8. The revision succeeds after
	// SuccessDelaySeconds when the last answer of each is Yes. An answer No fails it.
	MetricChecks []string
	// OnFailure is the reaction when the progress deadline passes and the rollout has never
	// succeeded. None (the default): only status says so. Rollback: Penstock rolls back to
	// the newest earlier revision that has succeeded, once, and not when this revision is a
	// rollback itself. Rollback needs progressDeadlineMinutes. Both fields may change
	// during a rollout.
	OnFailure OnFailure
	// ProgressionProbes hold phases back until selected objects fulfil their
	// assertions, in addition to the built-in probes of well-known kinds.
	// Immutable.
	ProgressionProbes []ProgressionProbe
	// Yield lists fields that are left to the manager that changes them, such as an
	// autoscaler: each has the manifest's value until another manager has it, and
	// is not applied from then on. Fields that are set through the subresource
	// scale are left without being listed. Immutable.
	Yield []YieldRule
	// TeardownPolicy decides about the objects when this revision is deleted: Delete (the
	// default) or Orphan. `kubectl delete --cascade=orphan` sets it.
	TeardownPolicy TeardownPolicy
	// AdoptedTeardownPolicy decides about objects that existed before the extension, and that no
	// extension had installed: Orphan or Delete.
	AdoptedTeardownPolicy TeardownPolicy
}

// TargetReference names a cluster by the Secret that has a kubeconfig for it.
type TargetReference struct {
	// Name is the name of a Secret in the namespace of Penstock. The Secret has the kubeconfig at
	// the key kubeconfig, or at the key value as in Cluster API. The kubeconfig must be
	// self-contained: it must not name programs or files. A user who changes the revision needs
	// the verb use on the resource of this name in targets.policy.penstock.dev. The name default
	// is no Secret there: it is the cluster of --target-kubeconfig.
	Name string
}

// IsLayer is true for revisions whose objects are wanted in the cluster.
func (r *ClusterExtensionRevision) IsLayer() bool {
	return r.DeletionTimestamp.IsZero() && r.Spec.LifecycleState != LifecycleStateArchived
}

// Target returns the name of the Secret that leads to the cluster of a revision, ""
// when it names none.
func (r *ClusterExtensionRevision) Target() string {
	if r.Spec.TargetRef == nil {
		return ""
	}
	return r.Spec.TargetRef.Name
}

// YieldRule leaves fields of selected objects to others.
type YieldRule struct {
	// Selector picks the objects.
	Selector YieldSelector
	// Fields are paths, with all that is below them (see manifest.FieldPath).
	Fields []string
}

// YieldSelector picks objects of the revision by kind, and by name if given.
type YieldSelector struct {
	// GroupKind selects objects of one kind.
	GroupKind metav1.GroupKind
	// Namespace of the objects; empty for any.
	Namespace string
	// Name of the objects; empty for any.
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
	// CollisionProtection is for the objects of this phase whose entry says
	// nothing else.
	CollisionProtection CollisionProtection
	// Objects are the phase's objects.
	Objects []RevisionObject
	// Packed has the same in less memory, in place of Objects, and is nil elsewhere. Revisions have it within the
	// watch cache, and in lists and events that come from it; see Unpack.
	Packed *PackedObjects
}

// RevisionObject is one object of a phase. On write it may carry the manifest
// inline, in object; on read it is the manifest's identity and digest, and the
// manifest is at the subresource manifests.
type RevisionObject struct {
	// Object is the manifest, on write only. Without it, the identity and
	// digest must be those of an object that a revision of this extension holds.
	Object *Manifest
	// APIVersion of the object.
	APIVersion string
	// Kind of the object.
	Kind string
	// Namespace of the object; empty for cluster-scoped ones.
	Namespace string
	// Name of the object.
	Name string
	// Digest of the canonical manifest: sha256:<hex>, or hmac-sha256:<hex> for
	// a Secret.
	Digest string
	// Size of the canonical manifest in bytes; absent for a Secret. Ignored on
	// write.
	Size int64
	// CreateOnly objects are created when they are absent and never touched
	// after that. It is read from the manifest, and ignored on write.
	CreateOnly bool
	// InstallLevel is the level of an installation at which a create-only object
	// is created. It is read from the manifest, and ignored on write.
	InstallLevel int32
	// CollisionProtection is for this object alone.
	CollisionProtection CollisionProtection
}

// ProgressionProbe makes a phase wait until the objects it selects fulfil all
// its assertions.
type ProgressionProbe struct {
	// Selector picks the objects.
	Selector ProbeSelector
	// Assertions must all hold.
	Assertions []ProbeAssertion
}

// ProbeSelector picks objects of the revision by kind, by labels, or both. At
// least one must be given.
type ProbeSelector struct {
	// GroupKind selects objects of one kind.
	GroupKind *metav1.GroupKind
	// LabelSelector selects objects by their live labels.
	LabelSelector *metav1.LabelSelector
}

// ProbeAssertion is one requirement. Exactly one of its members is set.
type ProbeAssertion struct {
	// ConditionEqual requires a condition in status.conditions, current for the
	// object's generation, to have a status.
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
	// Status that it must have: True, False or Unknown.
	Status metav1.ConditionStatus
}

// FieldsEqual names two fields by path, such as spec.replicas and
// status.readyReplicas.
type FieldsEqual struct {
	// FieldA is the path of a field, parts joined by dots.
	FieldA string
	// FieldB is the path of the field that must equal it.
	FieldB string
}

// FieldValue names a field by path and the value it must have.
type FieldValue struct {
	// FieldPath is the path of the field, parts joined by dots.
	FieldPath string
	// Value it must have, as text: numbers and booleans in their JSON form.
	Value string
}

// CELAssertion is a CEL expression and what to say when it is false.
type CELAssertion struct {
	// Expression over `self`, the live object; its type is bool.
	Expression string
	// Message when the expression is false.
	Message string
}

// PhaseState says how far a phase is.
type PhaseState string

const (
	// PhaseStatePending has not been reached.
	PhaseStatePending PhaseState = "Pending"
	// PhaseStateProgressing is being applied, or waits for probes.
	PhaseStateProgressing PhaseState = "Progressing"
	// PhaseStateAvailable is applied, and its probes pass.
	PhaseStateAvailable PhaseState = "Available"
	// PhaseStateFailing has objects that only a person can help.
	PhaseStateFailing PhaseState = "Failing"
	// PhaseStateSuperseded has only objects that belong to newer revisions.
	PhaseStateSuperseded PhaseState = "Superseded"
	// PhaseStateArchived was given up.
	PhaseStateArchived PhaseState = "Archived"
)

// ClusterExtensionRevisionStatus is the observed state of a revision.
type ClusterExtensionRevisionStatus struct {
	// ObservedGeneration is the generation that status speaks of.
	ObservedGeneration int64
	// RequestedBy is the user who created the revision. The server sets it.
	RequestedBy *Requester
	// Conditions are Ready, Available, Progressing, Succeeded, Failing and
	// Stalled, and where there is something to say, RolledBack and Held.
	Conditions []metav1.Condition
	// Phases are in the order of spec.phases.
	Phases []PhaseStatus
	// MetricChecks are the last answers of spec.metricChecks.
	MetricChecks []MetricMeasurement
}

// MetricMeasurement is the last answer of a MetricCheck.
type MetricMeasurement struct {
	// Name of the MetricCheck.
	Name string
	// Time of the answer.
	Time metav1.Time
	// Verdict is Yes, No or Unknown.
	Verdict MetricVerdict
	// Value of the sample; empty when there is no usable sample.
	Value string
	// Message says why the verdict is not Yes.
	Message string
	// Digest is that of the spec of the MetricCheck.
	Digest string
}

// MetricVerdict is the meaning of a measurement: Yes, No or Unknown.
type MetricVerdict string

// Requester is the user who asked for a change, as authenticated by kube-apiserver.
type Requester struct {
	// Username of the requester.
	Username string
	// UID of the requester, when the authenticator gave one.
	UID string
	// Groups of the requester.
	Groups []string
	// Extra has further facts from the authenticator.
	Extra map[string]ExtraValue
}

// ExtraValue is a list of values of one extra key.
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
	// Applied is the number of objects that are in the cluster with the content of this revision.
	Applied int32
	// Available is the number of applied objects that pass their probes.
	Available int32
	// Superseded is the number of objects that belong to a newer revision by now.
	Superseded int32
	// Failing lists the objects that hold the phase back, at most 20.
	Failing []ObjectFailure
	// FailingOmitted is the number of entries that are left out.
	FailingOmitted int32
	// StartedAt is the time at which the rollout of the phase began. It never changes. Phases
	// that are Pending have none, nor have those of imported revisions.
	StartedAt *metav1.Time
	// AvailableAt is the time at which the phase was Available for the first time. It does not
	// change while objects are repaired, or when the phase is archived.
	AvailableAt *metav1.Time
}

// ObjectFailure is one object that holds a phase back.
type ObjectFailure struct {
	// APIVersion of the object.
	APIVersion string
	// Kind of the object.
	Kind string
	// Namespace of the object; empty for cluster-scoped ones.
	Namespace string
	// Name of the object.
	Name string
	// Reason in one CamelCase word, such as Collision, ProbeFailed or
	// ApplyRejected.
	Reason string
	// Message for a person.
	Message string
	// Cause is the known cause for which the object is not ready.
	Cause *FailureCause
}
