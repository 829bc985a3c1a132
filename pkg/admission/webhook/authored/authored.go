// Package authored adds a signed stamp of the author to an object, and checks that a written object
// has the stamp of its writer. The subject defines the part of the object for which the author is
// responsible.
package authored

import (
	"fmt"
	"net/http"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/penstock-project/penstock/pkg/admission/webhook"
	"github.com/penstock-project/penstock/pkg/extension"
	"github.com/penstock-project/penstock/pkg/extension/author"
)

// Stamps creates and checks the stamps of a kind.
type Stamps struct {
	Subject author.Subject
	// Key returns the key of the store, or an error while it is unavailable.
	Key func() (author.Key, error)
	Now func() time.Time
	// ForOthers reports whether a user writes on behalf of others, with Penstock's rights. Such a
	// user never becomes an author. A nil function reports none.
	ForOthers func(username string) bool
	// Brings reports whether a user may write the stamp of another author, if it is signed for the
	// written content. A nil function reports none.
	Brings func(username string) bool
}

// Stamp records the author of a write. It ignores the annotation of the request. It keeps the old stamp
// if no field changes for which an author is responsible, and writes a new one otherwise.
func (s Stamps) Stamp(r webhook.Review, bypass bool) webhook.Answer {
	w, refused := s.Read(r)
	if refused != nil {
		return *refused
	}
	return w.Stamp(r, bypass)
}

// StampForThemselves is like Stamp, and refuses a write on behalf of others, because the author
// would be Penstock, with its rights.
func (s Stamps) StampForThemselves(r webhook.Review, bypass bool) webhook.Answer {
	w, refused := s.Read(r)
	if refused != nil {
		return *refused
	}
	if w.IsBrought(w.generation()) || w.IsDropped() {
		return webhook.Answer{}
	}
	if w.ForOthers && w.MakesStamp() {
		return webhook.Refuse(fmt.Sprintf("the author of %s would be %s, which writes for other users: create it in your own name, not through a revision or a plan", r, r.User.Username))
	}
	return w.Stamp(r, bypass)
}

// Check validates a write after all mutating webhooks, because another webhook may have changed it.
// It checks the fields, and that the stamp is of this user for this content.
func (s Stamps) Check(r webhook.Review, validate func(w *Write) field.ErrorList) webhook.Answer {
	w, refused := s.Read(r)
	if refused != nil {
		return *refused
	}
	if errs := validate(w); len(errs) > 0 {
		return s.Invalid(r, errs)
	}
	if !w.Changes() && !w.ChangesStamp() || w.IsStamped(w.Object.GetGeneration()) || w.IsBrought(w.Object.GetGeneration()) || w.IsDropped() {
		return webhook.Answer{}
	}
	return webhook.Refuse(fmt.Sprintf("%s has no stamp of %s for this write (annotation %s): mutatingwebhookconfigurations penstock must be registered, and no other webhook may change the spec or this annotation after it",
		r, r.User.Username, extension.AuthorAnnotation))
}

// Invalid returns the answer to invalid fields.
func (s Stamps) Invalid(r webhook.Review, errs field.ErrorList) webhook.Answer {
	status := apierrors.NewInvalid(s.Subject.Kind.GroupKind(), r.Name, errs).Status()
	return webhook.Answer{Refusal: &status}
}

// Stamp returns the answer to a write. An object written on behalf of others has no stamp until a
// user edits it in their own name.
func (w *Write) Stamp(r webhook.Review, bypass bool) webhook.Answer {
	switch {
	case w.ForOthers && w.Changes():
		return w.unsigned()
	case w.ForOthers:
		return w.keepOld()
	}
	if w.IsStamped(w.generation()) {
		return webhook.Answer{} // the second call for the same write
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

// Read reads the objects of a review. It returns a refusal if the review is of another kind or
// unreadable, or if the key is unavailable.
func (s Stamps) Read(r webhook.Review) (*Write, *webhook.Answer) {
	key, err := s.Key()
	if err != nil {
		return nil, &webhook.Answer{Refusal: &metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusServiceUnavailable, Reason: metav1.StatusReasonServiceUnavailable,
			Message: fmt.Sprintf("the author of %s cannot be noted now: %s", r, err),
		}}
	}
	if r.Operation != admissionv1.Create && r.Operation != admissionv1.Update || r.SubResource != "" || r.Group != s.Subject.Kind.Group || r.Kind != s.Subject.Kind.Kind {
		refused := webhook.Refuse(fmt.Sprintf("this webhook does not handle %s of %s %s", r.Operation, r, r.SubResource))
		return nil, &refused
	}
	w, err := newWrite(r, s.Subject, key, s.Now().UTC().Truncate(time.Second))
	if err != nil {
		refused := webhook.Refuse(fmt.Sprintf("%s cannot be read: %s", r, err))
		return nil, &refused
	}
	w.ForOthers = s.ForOthers != nil && s.ForOthers(r.User.Username)
	w.Brings = s.Brings != nil && s.Brings(r.User.Username)
	return w, nil
}
