package clustercatalog

import (
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/penstock-project/penstock/pkg/text"
)

const (
	Serving     = "Serving"
	Progressing = "Progressing"

	ReasonAvailable   = "Available"
	ReasonUnavailable = "Unavailable"
	ReasonUserOff     = "UserSpecifiedUnavailable"
	ReasonSucceeded   = "Succeeded"
	ReasonRetrying    = "Retrying"
	ReasonBlocked     = "Blocked"
)

// longestMessage is the definition's limit for the message of a condition, in bytes.
const longestMessage = 32768

// Content is the served content of a catalog.
type Content struct {
	// Ref is the image reference with its digest.
	Ref string
	// Unpacked is the time when the image was unpacked.
	Unpacked time.Time
	// Base is the URL of the content; "" if no content server runs.
	Base string
}

// Outcome is the content of a catalog, with the result of the last attempt to fetch it.
type Outcome struct {
	// Content is nil if no content is served.
	Content *Content
	// Err is the error of the last attempt to fetch the content; nil after a success.
	Err error
	// Blocked is true if another attempt cannot succeed.
	Blocked bool
	// Tried is true if there was an attempt since the spec changed. Otherwise the condition
	// Progressing does not change.
	Tried bool
}

// Next returns the status for an outcome. It equals the previous status if nothing has changed.
func Next(catalog *Catalog, outcome Outcome, now time.Time) Status {
	next := Status{Conditions: append([]metav1.Condition(nil), catalog.Status.Conditions...)}
	set := func(kind string, status metav1.ConditionStatus, reason, message string) {
		// The transition time is in full seconds, as it is stored.
		meta.SetStatusCondition(&next.Conditions, metav1.Condition{
			Type: kind, Status: status, Reason: reason, Message: text.Clip(message, longestMessage),
			ObservedGeneration: catalog.Generation, LastTransitionTime: metav1.NewTime(now.Truncate(time.Second)),
		})
	}
	if catalog.Off() {
		const why = "spec.availabilityMode is Unavailable"
		set(Serving, metav1.ConditionFalse, ReasonUserOff, why)
		set(Progressing, metav1.ConditionTrue, ReasonSucceeded, why)
		return next
	}
	content := outcome.Content
	switch {
	case content == nil:
		set(Serving, metav1.ConditionFalse, ReasonUnavailable, "there is no content yet; Progressing says why")
	case content.Base == "":
		next.resolved(content)
		set(Serving, metav1.ConditionFalse, ReasonUnavailable, "the packages can be listed and installed, but no content is served: --catalog-addr is empty")
	default:
		next.resolved(content)
		next.URLs = &URLs{Base: content.Base}
		set(Serving, metav1.ConditionTrue, ReasonAvailable, "the content of "+content.Ref+" is served")
	}
	switch {
	case !outcome.Tried:
	case outcome.Err == nil:
		set(Progressing, metav1.ConditionTrue, ReasonSucceeded, "the image was pulled, indexed, and is in use")
	case outcome.Blocked:
		set(Progressing, metav1.ConditionFalse, ReasonBlocked, outcome.Err.Error())
	default:
		set(Progressing, metav1.ConditionTrue, ReasonRetrying, outcome.Err.Error())
	}
	return next
}

func (s *Status) resolved(content *Content) {
	s.ResolvedSource = &ResolvedSource{Type: SourceImage, Image: &ResolvedImage{Ref: content.Ref}}
	unpacked := metav1.NewTime(content.Unpacked.Truncate(time.Second))
	s.LastUnpacked = &unpacked
}

// Same reports whether two statuses are equal. Time zones do not matter.
func Same(a, b Status) bool { return equality.Semantic.DeepEqual(a, b) }

// Done reports whether the current spec was completed. Then the image in the status need not be
// resolved again.
func (c *Catalog) Done() bool {
	condition := meta.FindStatusCondition(c.Status.Conditions, Progressing)
	return condition != nil && condition.ObservedGeneration == c.Generation && condition.Reason == ReasonSucceeded && c.Resolved() != ""
}

// Served reports whether the status has the condition that the content is served.
func (c *Catalog) Served() bool {
	return meta.IsStatusConditionTrue(c.Status.Conditions, Serving) && c.Status.URLs != nil && c.Resolved() != ""
}
