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
	// Ready is True when the content of the spec is installed and available. Otherwise its message
	// says what is wrong, and what to do.
	Ready = "Ready"
	// Stalled is True when a user must act before anything changes (kstatus).
	Stalled = "Stalled"
	// UpgradeAvailable is True when there is a newer version, allowed or not.
	UpgradeAvailable = "UpgradeAvailable"
)

// ReasonHandedToHelm is the reason of revisions whose objects Helm applies.
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
