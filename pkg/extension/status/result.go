package status

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Result is the result of a pass. Its values are reasons of Ready.
type Result string

// Results. All except the first two are reasons why no revision was created.
const (
	// Pending: the revisions or the catalogs are not known yet.
	Pending Result = "Pending"
	// Settled: the newest revision is the one that the spec requests.
	Settled Result = "Settled"

	// Invalid: the spec or an annotation is not valid.
	Invalid Result = "InvalidExtension"
	// Unresolved: the catalogs have no bundle for the spec, or more than one.
	Unresolved Result = "Unresolved"
	// CatalogUnavailable: a requested catalog cannot be read now.
	CatalogUnavailable Result = "CatalogUnavailable"
	// NoCatalog: no requested ClusterCatalog exists. The installed version stays.
	NoCatalog Result = "NoCatalog"
	// PullFailed: the image cannot be pulled now.
	PullFailed Result = "PullFailed"
	// Unsupported: the bundle, chart or image cannot be rendered.
	Unsupported Result = "UnsupportedContent"
	// SignatureVerificationFailed: a signature policy refuses the image.
	SignatureVerificationFailed Result = "SignatureVerificationFailed"
	// SignatureFormatUnsupported: the signature policy refuses the image, because it cannot verify
	// the format of the signatures.
	SignatureFormatUnsupported Result = "SignatureFormatUnsupported"
	// InvalidConfiguration: the bundle does not accept spec.config, or a patch does not match.
	InvalidConfiguration Result = "InvalidConfiguration"
	// UnsafeDefinitions: a CustomResourceDefinition would change in an unsafe way.
	UnsafeDefinitions Result = "UnsafeDefinitions"
	// InvalidManifests: the objects are not valid in a revision.
	InvalidManifests Result = "InvalidManifests"

	// ChangedSinceReview: the content of a ClusterExtensionSet's child differs from the approved
	// content.
	ChangedSinceReview Result = "ChangedSinceReview"

	// AuthorUnknown: the current spec has no valid stamp.
	AuthorUnknown Result = "AuthorUnknown"
	// Denied: the author, or the ServiceAccount, lacks rights for the revision.
	Denied Result = "Denied"
	// Refused: the revision was refused for another reason, for example by a policy or by the
	// author's quota.
	Refused Result = "RevisionRefused"
	// NameTaken: the revisions with this name belong to another owner.
	NameTaken Result = "NameTaken"
	// Failed: an error that the next pass may solve.
	Failed Result = "PassFailed"

	// ReleaseBlocked: the extension's Helm release cannot be read, or its objects also have another
	// owner.
	ReleaseBlocked Result = "ReleaseBlocked"

	// Frozen: the cluster is frozen, so Helm must not write.
	Frozen Result = "Frozen"
	// WaitingForWindow: an automatic upgrade waits for a maintenance window.
	WaitingForWindow Result = "WaitingForWindow"
	// NotUpgradeable: an OperatorCondition of the installed operator holds an automatic upgrade.
	NotUpgradeable Result = "NotUpgradeable"
	// RequirementsUnmet: other extensions must be installed first.
	RequirementsUnmet Result = "RequirementsUnmet"
	// RequiredByOthers: installed extensions require the installed version.
	RequiredByOthers Result = "RequiredByOthers"
	// Held: a rollback prevents new revisions, or a user has paused a revision whose rollout Helm
	// would continue.
	Held Result = "Held"
)

// verdict has the consequences of a result.
type verdict struct {
	// progressing and reason are the status and reason of OLM v1's condition Progressing.
	progressing metav1.ConditionStatus
	reason      string
	// resolved is true if the message begins with the resolved bundle, if there is one.
	resolved bool
	// person is true if a user must act.
	person bool
}

// verdicts returns the verdicts of all results except Pending and Settled.
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

// Waits reports whether a reason of UpgradeAvailable means that an upgrade begins by itself later.
// A user can start such an upgrade now by a write.
func Waits(reason string) bool {
	return reason == string(WaitingForWindow) || reason == string(NotUpgradeable)
}

// waits reports whether the outcome is a waiting upgrade.
func (o Outcome) waits() bool { return Waits(string(o.Result)) }

// Retried reports whether a reason of Ready means that a failed pass is retried.
func Retried(reason string) bool {
	verdict, failed := verdicts()[Result(reason)]
	return failed && verdict.reason == ReasonRetrying && !verdict.person
}

// NeedsPerson reports whether a reason of Ready means that the pass created no revision and a user
// must act.
func NeedsPerson(reason string) bool { return verdicts()[Result(reason)].person }
