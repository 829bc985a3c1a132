package status

// Types of conditions that OLM v1 has.
const (
	Installed         = "Installed"
	Progressing       = "Progressing"
	Available         = "Available"
	Deprecated        = "Deprecated"
	PackageDeprecated = "PackageDeprecated"
	ChannelDeprecated = "ChannelDeprecated"
	BundleDeprecated  = "BundleDeprecated"
)

// Types of conditions that it does not have.
const (
	// Ready is True when what the spec asks for is installed and available. Otherwise it says
	// in one message what is wrong, and what to do.
	Ready = "Ready"
	// Stalled is True when nothing changes before a person acts (kstatus).
	Stalled = "Stalled"
	// UpgradeAvailable is True when there is a newer version, whether it may come or not.
	UpgradeAvailable = "UpgradeAvailable"
)

// ReasonHandedToHelm is that of revisions whose objects Helm applies.
const ReasonHandedToHelm = "HandedToHelm"

// Reasons of conditions that OLM v1 has.
const (
	ReasonSucceeded                = "Succeeded"
	ReasonFailed                   = "Failed"
	ReasonAbsent                   = "Absent"
	ReasonRollingOut               = "RollingOut"
	ReasonRetrying                 = "Retrying"
	ReasonBlocked                  = "Blocked"
	ReasonInvalidConfiguration     = "InvalidConfiguration"
	ReasonProgressDeadlineExceeded = "ProgressDeadlineExceeded"
	ReasonProbesSucceeded          = "ProbesSucceeded"
	ReasonProbeFailure             = "ProbeFailure"
	ReasonReconciling              = "Reconciling"
	ReasonDeprecated               = "Deprecated"
	ReasonNotDeprecated            = "NotDeprecated"
	ReasonDeprecationStatusUnknown = "DeprecationStatusUnknown"
)
