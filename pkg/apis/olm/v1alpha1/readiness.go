package v1alpha1

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
	// UpgradeBlocks means that objects that are rolled out now cannot be applied after the
	// upgrade.
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

// +genclient
// +genclient:nonNamespaced
// +genclient:onlyVerbs=get
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// UpgradeReadiness says what an upgrade of the cluster to the version in its name breaks, such as
// 1.38 for Kubernetes or 4.22 for OpenShift. It is computed when it is read, from the revisions whose
// manifests the caller may get, and never stored.
type UpgradeReadiness struct {
	metav1.TypeMeta `json:",inline"`
	// metadata has the version as name, and nothing else.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// current is the version of Kubernetes that the cluster has; empty when it is not known.
	// +optional
	Current string `json:"current,omitempty"`
	// target is the version of Kubernetes that the answer is about.
	Target string `json:"target"`
	// lifecycle is the version of Kubernetes whose libraries say which kinds are removed.
	Lifecycle string `json:"lifecycle"`
	// verdict is Blocked, Unknown or NothingFound.
	Verdict UpgradeVerdict `json:"verdict"`
	// message is the verdict in words.
	Message string `json:"message"`
	// findings, the most severe first.
	// +listType=atomic
	// +optional
	Findings []UpgradeFinding `json:"findings,omitempty"`
	// omitted is the number of findings that are left out, because there are too many.
	// +optional
	Omitted int32 `json:"omitted,omitempty"`
	// extensions are all that the caller may list, by name.
	// +listType=atomic
	// +optional
	Extensions []ExtensionReadiness `json:"extensions,omitempty"`
	// steps of the upgrade, in order: extensions before the cluster, with either, after it, and those
	// without a way out. Only subresource plan has them.
	// +listType=atomic
	// +optional
	Steps []UpgradeStep `json:"steps,omitempty"`
	// pending is the number of packages that are not rendered yet: ask again.
	// +optional
	Pending int32 `json:"pending,omitempty"`
}

// UpgradeStep is the upgrade of one extension.
type UpgradeStep struct {
	// order is the order with the cluster's upgrade: Before, Either, After or Deadlock. It is
	// empty if no next version is suitable for the target.
	// +optional
	Order UpgradeOrder `json:"order,omitempty"`
	// extension to upgrade.
	Extension string `json:"extension"`
	// version that is installed.
	// +optional
	Version string `json:"version,omitempty"`
	// next is the lowest version that follows, and whose package has nothing that blocks.
	// +optional
	Next string `json:"next,omitempty"`
	// passed says why lower versions were not chosen.
	// +optional
	Passed string `json:"passed,omitempty"`
	// command does it.
	// +optional
	Command string `json:"command,omitempty"`
}

// UpgradeFinding is one thing that an upgrade breaks, or that a person has to judge.
type UpgradeFinding struct {
	// severity is Blocks, BreaksRollback, ActBefore or Look.
	Severity UpgradeSeverity `json:"severity"`
	// certainty is Certain, Declared or Guess.
	Certainty UpgradeCertainty `json:"certainty"`
	// extension that the finding is about; empty when it is about a plan or a ChartKind.
	// +optional
	Extension string `json:"extension,omitempty"`
	// plan is the ConfigurationPlan that the finding is about.
	// +optional
	Plan string `json:"plan,omitempty"`
	// chartKind that the finding is about.
	// +optional
	ChartKind string `json:"chartKind,omitempty"`
	// revision that has the object, the newest one when several have it.
	// +optional
	Revision string `json:"revision,omitempty"`
	// apiVersion of the object; empty when the finding is about the whole extension.
	// +optional
	APIVersion string `json:"apiVersion,omitempty"`
	// kind of the object.
	// +optional
	Kind string `json:"kind,omitempty"`
	// namespace of the object; empty for cluster-scoped ones.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// name of the object.
	// +optional
	Name string `json:"name,omitempty"`
	// field of the object that shows it.
	// +optional
	Field string `json:"field,omitempty"`
	// removedIn is the version of Kubernetes that does not serve the object's apiVersion.
	// +optional
	RemovedIn string `json:"removedIn,omitempty"`
	// replacement is the apiVersion and kind to use instead.
	// +optional
	Replacement string `json:"replacement,omitempty"`
	// evidence says in a sentence what was found, and where.
	Evidence string `json:"evidence"`
	// fix is a command that helps.
	// +optional
	Fix string `json:"fix,omitempty"`
	// id names the finding in an acknowledgement; a finding of another severity is another one. Findings that
	// block have none, and neither have those of plans and ChartKinds.
	// +optional
	ID string `json:"id,omitempty"`
	// acknowledged says who accepts the finding for the target.
	// +optional
	Acknowledged *UpgradeAcknowledgement `json:"acknowledged,omitempty"`
}

// UpgradeAcknowledgement records the user who accepts a finding for one minor of
// Kubernetes.
type UpgradeAcknowledgement struct {
	// by is the user.
	By string `json:"by"`
	// at is the time of the acknowledgement.
	At metav1.Time `json:"at"`
	// reason is the user's.
	Reason string `json:"reason"`
}

// ExtensionReadiness is the answer for one extension.
type ExtensionReadiness struct {
	// name of the extension.
	Name string `json:"name"`
	// revision that is rolled out.
	// +optional
	Revision string `json:"revision,omitempty"`
	// version that is installed, when it comes from a package.
	// +optional
	Version string `json:"version,omitempty"`
	// severity is that of the worst finding that nobody acknowledges; empty when there is none.
	// +optional
	Severity UpgradeSeverity `json:"severity,omitempty"`
	// findings is the number of findings.
	// +optional
	Findings int32 `json:"findings,omitempty"`
	// statement is which versions the package or chart says that it supports; empty when it says nothing.
	// +optional
	Statement string `json:"statement,omitempty"`
	// notLooked says why Penstock could not look at the extension, or at part of it.
	// +optional
	NotLooked string `json:"notLooked,omitempty"`
	// next is the lowest version in the catalogs that follows the installed one, and whose package
	// does not exclude the target. Its manifests are not looked at.
	// +optional
	Next string `json:"next,omitempty"`
	// order is the order of next with the cluster's upgrade: Before, Either, After or Deadlock.
	// +optional
	Order UpgradeOrder `json:"order,omitempty"`
}

// +k8s:conversion-gen:explicit-from=net/url.Values
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// UpgradeReadinessOptions are the query parameters.
type UpgradeReadinessOptions struct {
	metav1.TypeMeta `json:",inline"`
	// extension limits the answer to one extension.
	// +optional
	Extension string `json:"extension,omitempty"`
}
