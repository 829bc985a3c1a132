package status

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Result is the result of a pass. Its values are reasons of the condition Ready.
type Result string

// Results. Besides the first two, all say why no revision was made.
const (
	// Pending: revisions or catalogs are not known yet.
	Pending Result = "Pending"
	// Settled: the newest revision is the one that the spec asks for.
	Settled Result = "Settled"

	// Invalid: the spec or an annotation is not valid.
	Invalid Result = "InvalidExtension"
	// Unresolved: the catalogs have no bundle for the spec, or more than one.
	Unresolved Result = "Unresolved"
	// CatalogUnavailable: a requested catalog cannot be read now.
	CatalogUnavailable Result = "CatalogUnavailable"
	// NoCatalog: no requested ClusterCatalog exists. The installed version stays as it is.
	NoCatalog Result = "NoCatalog"
	// PullFailed: the image cannot be pulled now.
	PullFailed Result = "PullFailed"
	// Unsupported: no objects can be made from the bundle, chart or image.
	Unsupported Result = "UnsupportedContent"
	// SignatureVerificationFailed: a signature policy refuses the image.
	SignatureVerificationFailed Result = "SignatureVerificationFailed"
	// SignatureFormatUnsupported: the signature policy refuses the image, because its signatures
	// are in a format that the policy cannot verify.
	SignatureFormatUnsupported Result = "SignatureFormatUnsupported"
	// InvalidConfiguration: the bundle does not accept spec.config, or a patch does not match.
	InvalidConfiguration Result = "InvalidConfiguration"
	// UnsafeDefinitions: a CustomResourceDefinition would change in an unsafe way.
	UnsafeDefinitions Result = "UnsafeDefinitions"
	// InvalidManifests: the objects cannot be stored as a revision.
	InvalidManifests Result = "InvalidManifests"

	// ChangedSinceReview: the content differs from the approved content of a child of a
	// ClusterExtensionSet.
	ChangedSinceReview Result = "ChangedSinceReview"

	// AuthorUnknown: the current spec has no valid stamp.
	AuthorUnknown Result = "AuthorUnknown"
	// Denied: the author, or the ServiceAccount, lacks rights for the revision.
	Denied Result = "Denied"
	// Refused: the revision was refused for another reason, for instance by a policy, or by
	// the quota of its author.
	Refused Result = "RevisionRefused"
	// NameTaken: the revisions of this name belong to another owner.
	NameTaken Result = "NameTaken"
	// Failed: an error, which is tried again.
	Failed Result = "PassFailed"

	// ReleaseBlocked: the Helm release of the extension cannot be read, or its objects have another
	// owner too.
	ReleaseBlocked Result = "ReleaseBlocked"

	// Frozen: the cluster is frozen, and Helm would write to it.
	Frozen Result = "Frozen"
	// WaitingForWindow: an automatic upgrade waits for a maintenance window.
	WaitingForWindow Result = "WaitingForWindow"
	// NotUpgradeable: an OperatorCondition of the installed operator holds an automatic upgrade.
	NotUpgradeable Result = "NotUpgradeable"
	// RequirementsUnmet: other extensions must be installed first.
	RequirementsUnmet Result = "RequirementsUnmet"
	// RequiredByOthers: installed extensions require the installed version.
	RequiredByOthers Result = "RequiredByOthers"
	// Held: a rollback keeps the extension from making a revision, or a user has paused a revision
	// that Helm would continue.
	Held Result = "Held"
)

// verdict is the meaning of a result.
type verdict struct {
	// progressing and reason are those of OLM v1's condition Progressing.
	progressing metav1.ConditionStatus
	reason      string
	// resolved says that the message begins with the resolved bundle, when there is one.
	resolved bool
	// person is true when nothing changes before a user acts.
	person bool
}

// verdicts has those of every result besides Pending and Settled.
func verdicts() map[Result]verdict {
	const yes, no = metav1.ConditionTrue, metav1.ConditionFalse
	return map[Result]verdict{
		Invalid:                     {progressing: no, reason: ReasonBlocked, person: true},
		Unresolved:                  {progressing: yes, reason: ReasonRetrying, person: true},
		CatalogUnavailable:          {progressing: yes, reason: ReasonRetrying},
		NoCatalog:                   {progressing: yes, reason: ReasonRetrying, person: true},
		PullFailed:                  {progressing: yes, reason: ReasonRetrying, resolved: true},
		Unsupported:                 {progressing: yes, reason: ReasonRetrying, resolved: true, person: true},
		SignatureVerificationFailed: {progressing: yes, reason: ReasonRetrying, resolved: true, person: true},
		SignatureFormatUnsupported:  {progressing: yes, reason: ReasonRetrying, resolved: true, person: true},
		InvalidConfiguration:        {progressing: no, reason: ReasonInvalidConfiguration, resolved: true, person: true},
		UnsafeDefinitions:           {progressing: yes, reason: ReasonRetrying, resolved: true, person: true},
		InvalidManifests:            {progressing: yes, reason: ReasonRetrying, resolved: true, person: true},
		ChangedSinceReview:          {progressing: no, reason: ReasonBlocked, resolved: true, person: true},
		AuthorUnknown:               {progressing: no, reason: ReasonBlocked, resolved: true, person: true},
		Denied:                      {progressing: no, reason: ReasonBlocked, resolved: true, person: true},
		Refused:                     {progressing: yes, reason: ReasonRetrying, resolved: true, person: true},
		NameTaken:                   {progressing: no, reason: ReasonBlocked, person: true},
		Failed:                      {progressing: yes, reason: ReasonRetrying, resolved: true},
		ReleaseBlocked:              {progressing: no, reason: ReasonBlocked, person: true},
		Frozen:                      {progressing: no, reason: ReasonBlocked, person: true},
		WaitingForWindow:            {progressing: yes, reason: ReasonRollingOut},
		NotUpgradeable:              {progressing: yes, reason: ReasonRollingOut},
		RequirementsUnmet:           {progressing: yes, reason: ReasonRetrying, resolved: true},
		RequiredByOthers:            {progressing: no, reason: ReasonBlocked, resolved: true, person: true},
		Held:                        {progressing: no, reason: ReasonBlocked, person: true},
	}
}

// Waits returns whether a reason of UpgradeAvailable is of an upgrade that begins by itself later,
// and that a user can begin now by a write.
func Waits(reason string) bool {
	return reason == string(WaitingForWindow) || reason == string(NotUpgradeable)
}

// waits is Waits of how a pass ended.
func (o Outcome) waits() bool { return Waits(string(o.Result)) }

// Retried returns whether a reason of Ready is of a failed pass that is tried again.
func Retried(reason string) bool {
	verdict, failed := verdicts()[Result(reason)]
	return failed && verdict.reason == ReasonRetrying && !verdict.person
}

// NeedsPerson returns whether a reason of Ready is of a pass that made no revision, and after which
// a user must act.
func NeedsPerson(reason string) bool { return verdicts()[Result(reason)].person }
