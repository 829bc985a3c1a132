// Package authored notes who writes an object, as a signed stamp, and tells whether an object
// that is being written has that of whoever writes it. What its author answers for, its subject
// says.
package authored

import (
	"fmt"
	"net/http"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/penstock-project/penstock/pkg/admission/webhook"
	"github.com/penstock-project/penstock/pkg/extension"
	"github.com/penstock-project/penstock/pkg/extension/author"
)

// TimeoutSeconds is for two ways through kube-apiserver and an answer that takes a
// millisecond.
const TimeoutSeconds = 5

// Stamps makes stamps for a kind.
type Stamps struct {
	Subject author.Subject
	// Key returns the key of the store, or why there is none now.
	Key func() (author.Key, error)
	Now func() time.Time
	// ForOthers tells the users who write what somebody else asked for, with rights that these
	// may not have: those of Penstock. They are nobody's author. Nil tells none.
	ForOthers func(username string) bool
}

// Stamp notes who writes. What the request has in the annotation does not count: it is
// replaced by a new stamp, or by the old one when nothing changes that an author answers for.
func (s Stamps) Stamp(r webhook.Review, bypass bool) webhook.Answer {
	w, refused := s.Read(r)
	if refused != nil {
		return *refused
	}
	return w.Stamp(r, bypass)
}

// Stamp is the answer to a write that was read. What is written for others has no stamp, until
// somebody takes it over in their own name.
func (w *Write) Stamp(r webhook.Review, bypass bool) webhook.Answer {
	switch {
	case w.ForOthers && w.Changes():
		return w.unsigned()
	case w.ForOthers:
		return w.keepOld()
	}
	if w.IsStamped(w.generation()) {
		return webhook.Answer{} // asked a second time
	}
	if !w.MakesStamp() {
		return w.keepOld()
	}
	stamp, err := w.newStamp(bypass)
	if err != nil {
		return webhook.Refuse(fmt.Sprintf("the author of %s cannot be noted: %s", r, err))
	}
	value, err := stamp.Encode()
	if err != nil {
		return webhook.Refuse(fmt.Sprintf("the author of %s cannot be noted: %s", r, err))
	}
	return webhook.Answer{Annotations: map[string]*string{extension.AuthorAnnotation: &value}, Warnings: w.takeover()}
}

// Read reads the objects of a review, or says why it is none that can be answered.
func (s Stamps) Read(r webhook.Review) (*Write, *webhook.Answer) {
	key, err := s.Key()
	if err != nil {
		return nil, &webhook.Answer{Refusal: &metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusServiceUnavailable, Reason: metav1.StatusReasonServiceUnavailable,
			Message: fmt.Sprintf("the author of %s cannot be noted now: %s", r, err),
		}}
	}
	if r.Operation != admissionv1.Create && r.Operation != admissionv1.Update || r.SubResource != "" || r.Group != s.Subject.Kind.Group || r.Kind != s.Subject.Kind.Kind {
		refused := webhook.Refuse(fmt.Sprintf("%s of %s %s is nothing that this webhook is asked about", r.Operation, r, r.SubResource))
		return nil, &refused
	}
	w, err := newWrite(r, s.Subject, key, s.Now().UTC().Truncate(time.Second))
	if err != nil {
		refused := webhook.Refuse(fmt.Sprintf("%s cannot be read: %s", r, err))
		return nil, &refused
	}
	w.ForOthers = s.ForOthers != nil && s.ForOthers(r.User.Username)
	return w, nil
}
