package olm

// FailureCause is the reason why an object is not ready, without the texts of containers,
// registries and schedulers.
type FailureCause struct {
	// Reason is one CamelCase word, such as Unschedulable, ImagePullBackOff or OOMKilled.
	Reason string
	// Object that shows the cause, such as a Pod.
	Object ObjectName
	// Container of the Pod, if the cause is in a container.
	Container string
	// ExitCode of the last termination of the container.
	ExitCode *int32
	// Restarts is the number of restarts of the container.
	Restarts int32
	// Related is the object that is missing, unbound, used up or that refuses the object, if it is
	// known.
	Related *ObjectName
}

// ObjectName names an object of the cluster.
type ObjectName struct {
	// Group of the object's API; empty for the core group.
	Group string
	// Kind of the object.
	Kind string
	// Namespace of the object; empty for cluster-scoped objects.
	Namespace string
	// Name of the object.
	Name string
}
