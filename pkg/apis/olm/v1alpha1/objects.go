package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// FailureCause is the cause for which an object is not ready, without the texts that containers,
// registries and schedulers write.
type FailureCause struct {
	// reason in one CamelCase word, such as Unschedulable, ImagePullBackOff or OOMKilled.
	Reason string `json:"reason"`
	// object that shows the cause, such as a Pod.
	Object ObjectName `json:"object"`
	// container of the Pod, when the cause is in a container.
	// +optional
	Container string `json:"container,omitempty"`
	// exitCode of the container when it ended last.
	// +optional
	ExitCode *int32 `json:"exitCode,omitempty"`
	// restarts of the container.
	// +optional
	Restarts int32 `json:"restarts,omitempty"`
	// related is the object that is missing, not bound, used up or refuses, when it is
	// known.
	// +optional
	Related *ObjectName `json:"related,omitempty"`
}

// ObjectName names an object of the cluster.
type ObjectName struct {
	// group of the object's API; empty for the core group.
	// +optional
	Group string `json:"group,omitempty"`
	// kind of the object.
	Kind string `json:"kind"`
	// namespace of the object; empty for cluster-scoped ones.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// name of the object.
	Name string `json:"name"`
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
	// ObjectStateGone is for objects that an archived or deleted revision no longer has.
	ObjectStateGone ObjectState = "Gone"
	// ObjectStateUnknown is for objects that could not be read.
	ObjectStateUnknown ObjectState = "Unknown"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// RevisionObjects says how each object of a revision is now. It is computed when it is
// read, from the cluster, under the rights of the caller.
type RevisionObjects struct {
	metav1.TypeMeta `json:",inline"`
	// metadata has the name of the revision, and nothing else.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// objects in the order of rollout, without those that the caller cannot get.
	// +listType=atomic
	Objects []RevisionObjectStatus `json:"objects"`
	// withheld is the number of objects that the caller cannot get.
	// +optional
	Withheld int32 `json:"withheld,omitempty"`
}

// RevisionObjectStatus is the state of one object of a revision now.
type RevisionObjectStatus struct {
	// phase of the object.
	Phase string `json:"phase"`
	// apiVersion of the object.
	APIVersion string `json:"apiVersion"`
	// kind of the object.
	Kind string `json:"kind"`
	// namespace of the object; empty for cluster-scoped ones.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// name of the object.
	Name string `json:"name"`
	// state is Pending, Failing, Unready, Available, Superseded, Leaving, Gone or Unknown.
	State ObjectState `json:"state"`
	// reason in one CamelCase word, when there is something to say.
	// +optional
	Reason string `json:"reason,omitempty"`
	// message for a person.
	// +optional
	Message string `json:"message,omitempty"`
	// cause is the known cause for which the object is not ready.
	// +optional
	Cause *FailureCause `json:"cause,omitempty"`
	// detail is the text about the cause by a container, a registry, the scheduler or a
	// controller. Only callers who may list the Pods and Events of the namespace see it.
	// +optional
	Detail string `json:"detail,omitempty"`
	// createdAt is the creation time of the object, if it is in the cluster.
	// +optional
	CreatedAt *metav1.Time `json:"createdAt,omitempty"`
	// lastRepair is the last time that Penstock brought the object back to its manifest.
	// It is absent when 50 later repairs of the extension are known.
	// +optional
	LastRepair *ObjectRepair `json:"lastRepair,omitempty"`
}

// ObjectRepair says that an object was brought back to its manifest.
type ObjectRepair struct {
	// time of the repair.
	Time metav1.Time `json:"time"`
	// message says which fields were changed, and by whom.
	Message string `json:"message"`
}
