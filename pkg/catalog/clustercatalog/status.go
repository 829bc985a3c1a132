package clustercatalog

import (
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/penstock-project/penstock/pkg/text"
)

// Types of conditions, and their reasons, as OLM v1 has them.
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

// longestMessage is the longest message of a condition that the definition allows, in bytes.
const longestMessage = 32768

// Content is the served content of a catalog.
type Content struct {
	// Ref is the image with its digest.
	Ref string
	// Unpacked is the time when the content was unpacked from the image.
	Unpacked time.Time
	// Base is the URL where it is served, "" when nobody listens.
	Base string
}

// Outcome is the content of a catalog and the result of the last attempt to fetch it.
type Outcome struct {
	// Content is nil when nothing is served.
	Content *Content
	// Err is the error of the last attempt to get the content, nil after a success.
	Err error
	// Blocked is true when another attempt cannot succeed.
	Blocked bool
	// Tried is true if there was an attempt since the spec changed. Without it the condition
	// Progressing stays as it is.
	Tried bool
}

// Next returns the status that follows from an outcome. It is equal to the one before when
// nothing has changed.
func Next(catalog *Catalog, outcome Outcome, now time.Time) Status {
	next := Status{Conditions: append([]metav1.Condition(nil), catalog.Status.Conditions...)}
	set := func(kind string, status metav1.ConditionStatus, reason, message string) {
		// The transition is when status changed. Fractions of a second are not stored.
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

// Same reports whether two statuses are equal, whatever their time zones.
func Same(a, b Status) bool { return equality.Semantic.DeepEqual(a, b) }

// Done reports whether the status says that the current spec was completed. Then the image named in
// the status need not be resolved again.
func (c *Catalog) Done() bool {
	condition := meta.FindStatusCondition(c.Status.Conditions, Progressing)
	return condition != nil && condition.ObservedGeneration == c.Generation && condition.Reason == ReasonSucceeded && c.Resolved() != ""
}

// Served reports whether the status says that the content is served.
func (c *Catalog) Served() bool {
	return meta.IsStatusConditionTrue(c.Status.Conditions, Serving) && c.Status.URLs != nil && c.Resolved() != ""
}
