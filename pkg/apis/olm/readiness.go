package olm

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// UpgradeVerdict sums up an UpgradeReadiness. There is no verdict "ready": most extensions state no
// upper bound.
type UpgradeVerdict string

const (
	// UpgradeBlocked means that a finding has the severity Blocks.
	UpgradeBlocked UpgradeVerdict = "Blocked"
	// UpgradeUnknown means that Penstock could not look at everything.
	UpgradeUnknown UpgradeVerdict = "Unknown"
	// UpgradeNothingFound means that Penstock looked at everything, and no finding has the severity Blocks.
	UpgradeNothingFound UpgradeVerdict = "NothingFound"
)

// UpgradeSeverity says how much a finding matters.
type UpgradeSeverity string

const (
	// UpgradeBlocks means that what is rolled out now cannot be applied after the upgrade.
	UpgradeBlocks UpgradeSeverity = "Blocks"
	// UpgradeBreaksRollback means that only earlier revisions cannot be applied after the upgrade.
	UpgradeBreaksRollback UpgradeSeverity = "BreaksRollback"
	// UpgradeActBefore means that the upgrade itself is disturbed, such as the drain of a node.
	UpgradeActBefore UpgradeSeverity = "ActBefore"
	// UpgradeLook means that a person has to judge.
	UpgradeLook UpgradeSeverity = "Look"
)

// UpgradeCertainty says how sure a finding is.
type UpgradeCertainty string

const (
	// UpgradeCertain is for what the libraries of that version, a manifest or a package state.
	UpgradeCertain UpgradeCertainty = "Certain"
	// UpgradeDeclared is for what is announced for a version later than that of the lifecycle table.
	UpgradeDeclared UpgradeCertainty = "Declared"
	// UpgradeGuess is for alpha versions, and for what depends on the running cluster.
	UpgradeGuess UpgradeCertainty = "Guess"
)

// UpgradeOrder says when the next version of an extension can be installed.
type UpgradeOrder string

const (
	// UpgradeBefore means before the upgrade of the cluster.
	UpgradeBefore UpgradeOrder = "Before"
	// UpgradeEither means before or after the upgrade of the cluster.
	UpgradeEither UpgradeOrder = "Either"
	// UpgradeAfter means after the upgrade of the cluster.
	UpgradeAfter UpgradeOrder = "After"
	// UpgradeDeadlock means that the installed version blocks the upgrade of the cluster, and every
	// version that does not block needs the upgraded cluster.
	UpgradeDeadlock UpgradeOrder = "Deadlock"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// UpgradeReadiness says what an upgrade of the cluster to the version in its name breaks, such as
// 1.38 for Kubernetes or 4.22 for OpenShift. It is computed when it is read, from the revisions whose
// manifests the caller may get, and never stored.
type UpgradeReadiness struct {
	metav1.TypeMeta
	// metadata has the version as name, and nothing else.
	metav1.ObjectMeta
	// Current is the version of Kubernetes that the cluster has; empty when it is not known.
	Current string
	// Target is the version of Kubernetes that the answer is about.
	Target string
	// Lifecycle is the version of Kubernetes whose libraries say which kinds are removed.
	Lifecycle string
	// Verdict is Blocked, Unknown or NothingFound.
	Verdict UpgradeVerdict
	// Message is the verdict in words.
	Message string
	// Findings, the most severe first.
	Findings []UpgradeFinding
	// Omitted is how many findings are left out, because there are too many.
	Omitted int32
	// Extensions are all that the caller may list, by name.
	Extensions []ExtensionReadiness
	// Steps of the upgrade, in order: extensions before the cluster, with either, after it, and those
	// without a way out. Only subresource plan has them.
	Steps []UpgradeStep
	// Pending is how many packages are not rendered yet; ask again.
	Pending int32
}

// UpgradeStep is the upgrade of one extension.
type UpgradeStep struct {
	// Order is when it can be done: Before, Either, After or Deadlock. It is empty when no version follows
	// that the target takes.
	Order UpgradeOrder
	// Extension to upgrade.
	Extension string
	// Version that is installed.
	Version string
	// Next is the lowest version that follows, and whose package has nothing that blocks.
	Next string
	// Passed says why lower versions were not chosen.
	Passed string
	// Command does it.
	Command string
}

// UpgradeFinding is one thing that an upgrade breaks, or that a person has to judge.
type UpgradeFinding struct {
	// Severity is Blocks, BreaksRollback, ActBefore or Look.
	Severity UpgradeSeverity
	// Certainty is Certain, Declared or Guess.
	Certainty UpgradeCertainty
	// Extension that the finding is about; empty when it is about a plan or a ChartKind.
	Extension string
	// Plan is the ConfigurationPlan that the finding is about.
	Plan string
	// ChartKind that the finding is about.
	ChartKind string
	// Revision that has the object, the newest one when several have it.
	Revision string
	// APIVersion of the object; empty when the finding is about the whole extension.
	APIVersion string
	// Kind of the object.
	Kind string
	// Namespace of the object; empty for cluster-scoped ones.
	Namespace string
	// Name of the object.
	Name string
	// Field of the object that shows it.
	Field string
	// RemovedIn is the version of Kubernetes that does not serve the object's apiVersion.
	RemovedIn string
	// Replacement is the apiVersion and kind to use instead.
	Replacement string
	// Evidence says in a sentence what was found, and where.
	Evidence string
	// Fix is a command that helps.
	Fix string
	// ID names the finding in an acknowledgement; a finding of another severity is another one. Findings that
	// block have none, and neither have those of plans and ChartKinds.
	ID string
	// Acknowledged says who accepts the finding for the target.
	Acknowledged *UpgradeAcknowledgement
}

// UpgradeAcknowledgement is the word of a person who accepts a finding for one minor of Kubernetes.
type UpgradeAcknowledgement struct {
	// By is the user.
	By string
	// At is when.
	At metav1.Time
	// Reason is the user's.
	Reason string
}

// ExtensionReadiness is the answer for one extension.
type ExtensionReadiness struct {
	// Name of the extension.
	Name string
	// Revision that is rolled out.
	Revision string
	// Version that is installed, when it comes from a package.
	Version string
	// Severity is that of the worst finding that nobody acknowledges; empty when there is none.
	Severity UpgradeSeverity
	// Findings is how many there are.
	Findings int32
	// Statement is which versions the package or chart says that it supports; empty when it says nothing.
	Statement string
	// NotLooked says why Penstock could not look at the extension, or at part of it.
	NotLooked string
	// Next is the lowest version in the catalogs that follows the installed one, and whose package
	// does not exclude the target. Its manifests are not looked at.
	Next string
	// Order is when next can be installed: Before, Either, After or Deadlock.
	Order UpgradeOrder
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// UpgradeReadinessOptions are the query parameters.
type UpgradeReadinessOptions struct {
	metav1.TypeMeta
	// Extension limits the answer to one extension.
	Extension string
}
