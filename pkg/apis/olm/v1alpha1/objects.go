package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// FailureCause is the reason why an object is not ready, without the texts of containers,
// registries and schedulers.
type FailureCause struct {
	// reason is one CamelCase word, such as Unschedulable, ImagePullBackOff or OOMKilled.
	Reason string `json:"reason"`
	// object that shows the cause, such as a Pod.
	Object ObjectName `json:"object"`
	// container of the Pod, if the cause is in a container.
	// +optional
	Container string `json:"container,omitempty"`
	// exitCode of the last termination of the container.
	// +optional
	ExitCode *int32 `json:"exitCode,omitempty"`
	// restarts is the number of restarts of the container.
	// +optional
	Restarts int32 `json:"restarts,omitempty"`
	// related is the object that is missing, unbound, used up or that refuses the object, if it is
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
	// namespace of the object; empty for cluster-scoped objects.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// name of the object.
	Name string `json:"name"`
}

// ObjectState is the state of an object of a revision.
type ObjectState string

const (
	// ObjectStatePending means that the rollout has not reached the object.
	ObjectStatePending ObjectState = "Pending"
	// ObjectStateFailing means that Penstock cannot write or delete the object.
	ObjectStateFailing ObjectState = "Failing"
	// ObjectStateUnready means that the object does not pass its probes, or is missing from the
	// cluster.
	ObjectStateUnready ObjectState = "Unready"
	// ObjectStateAvailable means that the object exists and passes its probes.
	ObjectStateAvailable ObjectState = "Available"
	// ObjectStateSuperseded means that the object has the content of a newer revision.
	ObjectStateSuperseded ObjectState = "Superseded"
	// ObjectStateLeaving means that the object of an archived or deleted revision still exists.
	ObjectStateLeaving ObjectState = "Leaving"
	// ObjectStateGone means that the archived or deleted revision does not have the object any
	// more.
	ObjectStateGone ObjectState = "Gone"
	// ObjectStateUnknown means that Penstock could not read the object.
	ObjectStateUnknown ObjectState = "Unknown"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// RevisionObjects reports the current state of each object of a revision. The server computes it
// for each read, from the cluster, with the rights of the caller.
type RevisionObjects struct {
	metav1.TypeMeta `json:",inline"`
	// metadata has the name of the revision, and nothing else.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// objects in the order of the rollout, without objects that the caller cannot get.
	// +listType=atomic
	Objects []RevisionObjectStatus `json:"objects"`
	// withheld is the number of objects that the caller cannot get.
	// +optional
	Withheld int32 `json:"withheld,omitempty"`
}

// RevisionObjectStatus is the current state of one object of a revision.
type RevisionObjectStatus struct {
	// phase of the object.
	Phase string `json:"phase"`
	// apiVersion of the object.
	APIVersion string `json:"apiVersion"`
	// kind of the object.
	Kind string `json:"kind"`
	// namespace of the object; empty for cluster-scoped objects.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// name of the object.
	Name string `json:"name"`
	// state is Pending, Failing, Unready, Available, Superseded, Leaving, Gone or Unknown.
	State ObjectState `json:"state"`
	// reason of the state in one CamelCase word; empty if the state needs no reason.
	// +optional
	Reason string `json:"reason,omitempty"`
	// message explains the state to a person.
	// +optional
	Message string `json:"message,omitempty"`
	// cause is the reason why the object is not ready, if it is known.
	// +optional
	Cause *FailureCause `json:"cause,omitempty"`
	// detail is the text of a container, a registry, the scheduler or a controller about the cause.
	// Only callers who can list the Pods and Events of the namespace see it.
	// +optional
	Detail string `json:"detail,omitempty"`
	// createdAt is the creation time of the object, if it is in the cluster.
	// +optional
	CreatedAt *metav1.Time `json:"createdAt,omitempty"`
	// lastRepair is the last time that Penstock restored the object's manifest. It is absent if the
	// extension had 50 later repairs.
	// +optional
	LastRepair *ObjectRepair `json:"lastRepair,omitempty"`
}

// ObjectRepair reports that Penstock restored an object's manifest.
type ObjectRepair struct {
	// time of the repair.
	Time metav1.Time `json:"time"`
	// message describes the changed fields and names their writer.
	Message string `json:"message"`
}
