package status

// Condition types of OLM v1.
const (
	Installed         = "Installed"
	Progressing       = "Progressing"
	Available         = "Available"
	Deprecated        = "Deprecated"
	PackageDeprecated = "PackageDeprecated"
	ChannelDeprecated = "ChannelDeprecated"
	BundleDeprecated  = "BundleDeprecated"
)

// Condition types that OLM v1 does not have.
const (
	// Ready is True when the content of the spec is installed and available. Otherwise its message
	// has the problem and the remedy.
	Ready = "Ready"
	// Stalled is True when a user must act before anything changes (kstatus).
	Stalled = "Stalled"
	// UpgradeAvailable is True when a newer version exists, allowed or not.
	UpgradeAvailable = "UpgradeAvailable"
)

// ReasonHandedToHelm is the reason on revisions whose objects Helm applies.
const ReasonHandedToHelm = "HandedToHelm"

// Condition reasons of OLM v1.
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
