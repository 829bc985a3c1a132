package olm

// FailureCause is the cause for which an object is not ready, without the texts that containers,
// registries and schedulers write.
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
	// Related is the object that is missing, not bound, used up or refuses, if it is known.
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
