package olm

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// FailureCause is why an object is not ready, without what containers, registries and
// schedulers write.
type FailureCause struct {
	// Reason in one CamelCase word, such as Unschedulable, ImagePullBackOff or OOMKilled.
	Reason string
	// Object shows it, such as a Pod.
	Object ObjectName
	// Container of the Pod, when it is about one.
	Container string
	// ExitCode of the container when it ended last.
	ExitCode *int32
	// Restarts of the container.
	Restarts int32
	// Related is what is missing, not bound, used up or refuses, when that is known.
	Related *ObjectName
}

// ObjectName names an object of the cluster.
type ObjectName struct {
	// Group of the object's API; empty for the core group.
	Group string
	// Kind of the object.
	Kind string
	// Namespace of the object; empty for cluster-scoped ones.
	Namespace string
	// Name of the object.
	Name string
}

// ObjectState says how an object of a revision is.
type ObjectState string

const (
	// ObjectStatePending is for objects whose turn has not come.
	ObjectStatePending ObjectState = "Pending"
	// ObjectStateFailing is for objects that cannot be written or removed.
	ObjectStateFailing ObjectState = "Failing"
	// ObjectStateUnready is for objects that are in the cluster and do not pass their
	// probes, or are not there although they should be.
	ObjectStateUnready ObjectState = "Unready"
	// ObjectStateAvailable is for objects that are in the cluster and pass their probes.
	ObjectStateAvailable ObjectState = "Available"
	// ObjectStateSuperseded is for objects that have the content of another revision.
	ObjectStateSuperseded ObjectState = "Superseded"
	// ObjectStateLeaving is for objects of an archived or deleted revision that are still
	// there.
	ObjectStateLeaving ObjectState = "Leaving"
	// ObjectStateGone is for objects that an archived or deleted revision has given up.
	ObjectStateGone ObjectState = "Gone"
	// ObjectStateUnknown is for objects that could not be read.
	ObjectStateUnknown ObjectState = "Unknown"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// RevisionObjects says how each object of a revision is now. It is computed when it is
// read, from the cluster, under the rights of the caller.
type RevisionObjects struct {
	metav1.TypeMeta
	// metadata has the name of the revision, and nothing else.
	metav1.ObjectMeta
	// Objects in the order of rollout, those apart that the caller may not get.
	Objects []RevisionObjectStatus
	// Withheld is how many objects the caller may not get.
	Withheld int32
}

// RevisionObjectStatus is how one object of a revision is now.
type RevisionObjectStatus struct {
	// Phase of the object.
	Phase string
	// APIVersion of the object.
	APIVersion string
	// Kind of the object.
	Kind string
	// Namespace of the object; empty for cluster-scoped ones.
	Namespace string
	// Name of the object.
	Name string
	// State is Pending, Failing, Unready, Available, Superseded, Leaving, Gone or Unknown.
	State ObjectState
	// Reason in one CamelCase word, when there is something to say.
	Reason string
	// Message for a person.
	Message string
	// Cause is why the object is not ready, when that is known.
	Cause *FailureCause
	// Detail is what a container, a registry, the scheduler or a controller wrote about
	// the cause. Only callers who may list the Pods and Events of the namespace see it.
	Detail string
	// LastRepair is the last time that Penstock brought the object back, when that is not
	// long ago: it is as old as Events may be in the host.
	LastRepair *ObjectRepair
}

// ObjectRepair says that an object was brought back to its manifest.
type ObjectRepair struct {
	// Time of the repair.
	Time metav1.Time
	// Message says which fields were changed, and by whom.
	Message string
}
