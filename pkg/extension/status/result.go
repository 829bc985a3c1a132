package status

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Result is how far a pass came. Its words are reasons of the condition Ready.
type Result string

// Results. Besides the first two, all say why no revision was made.
const (
	// Pending has not found out enough: revisions or catalogs are not known yet.
	Pending Result = "Pending"
	// Settled has nothing left to do: the newest revision is what the spec asks for.
	Settled Result = "Settled"

	// Invalid is a spec, or an annotation, that cannot be followed.
	Invalid Result = "InvalidExtension"
	// Unresolved: the catalogs have no bundle for the spec, or more than one.
	Unresolved Result = "Unresolved"
	// CatalogUnavailable: a catalog that is asked cannot be read now.
	CatalogUnavailable Result = "CatalogUnavailable"
	// NoCatalog: no ClusterCatalog that is asked is there. The installed version stays as it is.
	NoCatalog Result = "NoCatalog"
	// PullFailed: the image cannot be had now.
	PullFailed Result = "PullFailed"
	// Unsupported is a bundle, a chart or an image of which no objects can be made.
	Unsupported Result = "UnsupportedContent"
	// SignatureVerificationFailed: a policy about signatures refuses the image.
	SignatureVerificationFailed Result = "SignatureVerificationFailed"
	// SignatureFormatUnsupported: the signature policy refuses the image, whose signatures are in a
	// format that is not verified here.
	SignatureFormatUnsupported Result = "SignatureFormatUnsupported"
	// InvalidConfiguration: the bundle does not take spec.config, or a patch does not match.
	InvalidConfiguration Result = "InvalidConfiguration"
	// UnsafeDefinitions: a CustomResourceDefinition would change in a way that is not safe.
	UnsafeDefinitions Result = "UnsafeDefinitions"
	// InvalidManifests: the objects are no revision that can be stored.
	InvalidManifests Result = "InvalidManifests"

	// ChangedSinceReview: the content is not what was approved for a child of a ClusterExtensionSet.
	ChangedSinceReview Result = "ChangedSinceReview"

	// AuthorUnknown: nobody has signed the spec as it is.
	AuthorUnknown Result = "AuthorUnknown"
	// Denied: the author, or the ServiceAccount, cannot do what the revision does.
	Denied Result = "Denied"
	// Refused: the revision was refused for another reason, for instance by a policy, or by
	// the quota of its author.
	Refused Result = "RevisionRefused"
	// NameTaken: the revisions of this name belong to somebody else.
	NameTaken Result = "NameTaken"
	// Failed is an error that is tried again.
	Failed Result = "PassFailed"

	// ReleaseBlocked: the Helm release of the extension cannot be read, or its objects are
	// somebody else's too.
	ReleaseBlocked Result = "ReleaseBlocked"

	// Frozen: the cluster is frozen, and Helm would write to it.
	Frozen Result = "Frozen"
	// WaitingForWindow: an upgrade that nobody asked for just now waits for a maintenance window.
	WaitingForWindow Result = "WaitingForWindow"
	// NotUpgradeable: an OperatorCondition of what is installed holds an upgrade that nobody asked for
	// just now.
	NotUpgradeable Result = "NotUpgradeable"
	// RequirementsUnmet: other extensions must be installed before.
	RequirementsUnmet Result = "RequirementsUnmet"
	// RequiredByOthers: installed extensions require the version that is installed.
	RequiredByOthers Result = "RequiredByOthers"
	// Held: a rollback keeps the extension from making a revision, or somebody has paused what
	// Helm would go on with.
	Held Result = "Held"
)

// verdict is what a result means.
type verdict struct {
	// progressing and reason are those of OLM v1's condition Progressing.
	progressing metav1.ConditionStatus
	reason      string
	// resolved says that the message begins with the resolved bundle, when there is one.
	resolved bool
	// person says that nothing changes before somebody acts.
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

// Waits is whether a reason of UpgradeAvailable is of an upgrade that begins by itself later, and that a person
// can begin now by their own write.
func Waits(reason string) bool {
	return reason == string(WaitingForWindow) || reason == string(NotUpgradeable)
}

// waits is Waits of how a pass ended.
func (o Outcome) waits() bool { return Waits(string(o.Result)) }

// Retried is whether a reason of Ready is of a pass that has failed, and is tried again by itself.
func Retried(reason string) bool {
	verdict, failed := verdicts()[Result(reason)]
	return failed && verdict.reason == ReasonRetrying && !verdict.person
}

// NeedsPerson is whether a reason of Ready is of a pass that made no revision, where nothing changes before
// a person acts.
func NeedsPerson(reason string) bool { return verdicts()[Result(reason)].person }
