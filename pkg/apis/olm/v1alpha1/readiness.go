package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// UpgradeVerdict sums up an UpgradeReadiness. There is no verdict "ready", because most extensions
// declare no upper bound.
type UpgradeVerdict string

const (
	// UpgradeBlocked means that a finding has the severity Blocks.
	UpgradeBlocked UpgradeVerdict = "Blocked"
	// UpgradeUnknown means that Penstock could not check everything.
	UpgradeUnknown UpgradeVerdict = "Unknown"
	// UpgradeNothingFound means that Penstock checked everything and found nothing with the
	// severity Blocks.
	UpgradeNothingFound UpgradeVerdict = "NothingFound"
)

// UpgradeSeverity is the importance of a finding.
type UpgradeSeverity string

const (
	// UpgradeBlocks means that objects of an active revision cannot be applied after the upgrade.
	UpgradeBlocks UpgradeSeverity = "Blocks"
	// UpgradeBreaksRollback means that only earlier revisions cannot be applied after the upgrade.
	UpgradeBreaksRollback UpgradeSeverity = "BreaksRollback"
	// UpgradeActBefore means that the object disturbs the upgrade itself, such as the drain of a
	// node.
	UpgradeActBefore UpgradeSeverity = "ActBefore"
	// UpgradeLook means that a person must decide.
	UpgradeLook UpgradeSeverity = "Look"
)

// UpgradeCertainty is the confidence in a finding.
type UpgradeCertainty string

const (
	// UpgradeCertain means that the libraries of the target version, a manifest or a package prove
	// the finding.
	UpgradeCertain UpgradeCertainty = "Certain"
	// UpgradeDeclared means that the change is announced for a version newer than the lifecycle
	// table.
	UpgradeDeclared UpgradeCertainty = "Declared"
	// UpgradeGuess means that the finding is about an alpha version, or depends on the running
	// cluster.
	UpgradeGuess UpgradeCertainty = "Guess"
)

// UpgradeOrder is the time to install the next version of an extension.
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

// UpgradeReadiness reports the problems that an upgrade of the cluster would cause. Its name is the
// target version, such as 1.38 for Kubernetes or 4.22 for OpenShift. The server computes it for
// each read and does not store it. It covers the revisions whose manifests the caller can get.
type UpgradeReadiness struct {
	metav1.TypeMeta `json:",inline"`
	// metadata has the version as name, and nothing else.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// current is the Kubernetes version of the cluster; empty if it is unknown.
	// +optional
	Current string `json:"current,omitempty"`
	// target is the Kubernetes version of the planned upgrade.
	Target string `json:"target"`
	// lifecycle is the newest Kubernetes version that Penstock's table of removed kinds covers.
	Lifecycle string `json:"lifecycle"`
	// verdict is Blocked, Unknown or NothingFound.
	Verdict UpgradeVerdict `json:"verdict"`
	// message explains the verdict to a person.
	Message string `json:"message"`
	// findings are the problems found, the most severe first. Acknowledged findings are last.
	// +listType=atomic
	// +optional
	Findings []UpgradeFinding `json:"findings,omitempty"`
	// omitted is the number of findings that the list omits because there are too many.
	// +optional
	Omitted int32 `json:"omitted,omitempty"`
	// extensions are all extensions that the caller can list, ordered by name.
	// +listType=atomic
	// +optional
	Extensions []ExtensionReadiness `json:"extensions,omitempty"`
	// steps of the upgrade, in order: extensions before the cluster, at any time, after the
	// cluster, and without a solution. Only the subresource plan has steps.
	// +listType=atomic
	// +optional
	Steps []UpgradeStep `json:"steps,omitempty"`
	// pending is the number of packages that are not rendered yet. Read again later.
	// +optional
	Pending int32 `json:"pending,omitempty"`
}

// UpgradeStep is the upgrade of one extension.
type UpgradeStep struct {
	// order of this step and the cluster's upgrade: Before, Either, After or Deadlock. It is empty
	// if no next version fits the target.
	// +optional
	Order UpgradeOrder `json:"order,omitempty"`
	// extension to upgrade.
	Extension string `json:"extension"`
	// version that is installed.
	// +optional
	Version string `json:"version,omitempty"`
	// next is the lowest next version whose package has no finding that blocks.
	// +optional
	Next string `json:"next,omitempty"`
	// passed lists the reasons against lower versions.
	// +optional
	Passed string `json:"passed,omitempty"`
	// command that upgrades the extension.
	// +optional
	Command string `json:"command,omitempty"`
}

// UpgradeFinding is one problem of an upgrade, or a question that a person must decide.
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
	// revision that has the object. If several have it, the newest.
	// +optional
	Revision string `json:"revision,omitempty"`
	// apiVersion of the object; empty when the finding is about the whole extension.
	// +optional
	APIVersion string `json:"apiVersion,omitempty"`
	// kind of the object.
	// +optional
	Kind string `json:"kind,omitempty"`
	// namespace of the object; empty for cluster-scoped objects.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// name of the object.
	// +optional
	Name string `json:"name,omitempty"`
	// field of the object that shows the problem.
	// +optional
	Field string `json:"field,omitempty"`
	// removedIn is the first Kubernetes version that does not serve the object's apiVersion.
	// +optional
	RemovedIn string `json:"removedIn,omitempty"`
	// replacement is the apiVersion and kind to use instead.
	// +optional
	Replacement string `json:"replacement,omitempty"`
	// evidence describes what Penstock found, and where, in one sentence.
	Evidence string `json:"evidence"`
	// fix is a command that helps to solve the problem.
	// +optional
	Fix string `json:"fix,omitempty"`
	// id names the finding in an acknowledgement. It changes when the severity changes. Findings
	// that block have no id, and neither have findings about plans and ChartKinds.
	// +optional
	ID string `json:"id,omitempty"`
	// acknowledged records the user who accepts the finding for the target version.
	// +optional
	Acknowledged *UpgradeAcknowledgement `json:"acknowledged,omitempty"`
}

// UpgradeAcknowledgement records the user who accepts a finding for one minor of Kubernetes.
type UpgradeAcknowledgement struct {
	// by is the name of the user.
	By string `json:"by"`
	// at is the time of the acknowledgement.
	At metav1.Time `json:"at"`
	// reason that the user gave.
	Reason string `json:"reason"`
}

// ExtensionReadiness is the answer for one extension.
type ExtensionReadiness struct {
	// name of the extension.
	Name string `json:"name"`
	// revision that is active.
	// +optional
	Revision string `json:"revision,omitempty"`
	// version that is installed, if it comes from a package.
	// +optional
	Version string `json:"version,omitempty"`
	// severity of the worst finding that is not acknowledged; empty if there is none.
	// +optional
	Severity UpgradeSeverity `json:"severity,omitempty"`
	// findings is the number of findings.
	// +optional
	Findings int32 `json:"findings,omitempty"`
	// statement lists the Kubernetes and OpenShift versions that the package or chart declares as
	// supported; empty if it declares none.
	// +optional
	Statement string `json:"statement,omitempty"`
	// notLooked is the reason why Penstock could not check the extension, or a part of it.
	// +optional
	NotLooked string `json:"notLooked,omitempty"`
	// next is the lowest next version in the catalogs whose package does not exclude the target.
	// Without the subresource plan, Penstock does not check its manifests.
	// +optional
	Next string `json:"next,omitempty"`
	// order of the upgrade to next and the cluster's upgrade: Before, Either, After or Deadlock.
	// +optional
	Order UpgradeOrder `json:"order,omitempty"`
}

// +k8s:conversion-gen:explicit-from=net/url.Values
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// UpgradeReadinessOptions are the query parameters of an UpgradeReadiness.
type UpgradeReadinessOptions struct {
	metav1.TypeMeta `json:",inline"`
	// extension limits the answer to one extension.
	// +optional
	Extension string `json:"extension,omitempty"`
}
