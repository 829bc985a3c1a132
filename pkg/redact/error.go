package redact

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/penstock-project/penstock/pkg/manifest"
)

// Error is an API server's error about an object without hidden values. It keeps code and reason,
// so that the predicates of package apierrors work.
type Error struct {
	*apierrors.StatusError
}

// Unwrap returns the redacted API error.
func (e *Error) Unwrap() error { return e.StatusError }

// Error redacts an error about an object for status, events and logs. For a kind without hidden
// fields it returns err unchanged.
//
// For a Secret it keeps only the reason and the names of the fields, because the message may
// contain a value in any form. It does the same for a kind with hidden fields if no object is
// known, or if the error is about a hidden field. Otherwise it removes the hidden values of the
// known objects, manifest and live, from the message.
func (r *Redactor) Error(id manifest.ID, err error, known ...map[string]any) error {
	if err == nil || !r.Hides(id.GroupKind()) {
		return err
	}
	if done := (*Error)(nil); errors.As(err, &done) {
		return err
	}
	answer := apierrors.APIStatus(nil)
	if !errors.As(err, &answer) {
		if quotesNothing(err) {
			return err
		}
		return fmt.Errorf("it failed; the error is not repeated here, because it may quote the %s", id.Kind)
	}
	status := answer.Status()
	values := r.Values(id.GroupKind(), known...)
	terse := id.IsSecret() || len(known) == 0 || r.complainsOfHidden(id, status)
	status.Status, status.ListMeta, status.Reason = metav1.StatusFailure, metav1.ListMeta{}, knownReason(status.Reason)
	status.Details = values.details(id, status.Details, terse)
	if terse {
		status.Message = reasonAndFields(status)
	} else {
		status.Message = values.Mask(status.Message)
	}
	return &Error{&apierrors.StatusError{ErrStatus: status}}
}

// SchemaError is part of API servers' messages about fields that a kind does not have. These
// messages have no reason, so Error keeps this text.
const SchemaError = "failed to create typed patch object"

// quotesNothing recognises errors of the connection to the server, which name only addresses and
// kinds.
func quotesNothing(err error) bool {
	var unanswered *url.Error
	return errors.As(err, &unanswered) || meta.IsNoMatchError(err) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// Error returns an API error without the hidden values, and other errors unchanged.
func (v *Values) Error(err error) error {
	answer := apierrors.APIStatus(nil)
	if !errors.As(err, &answer) {
		return err
	}
	status := answer.Status()
	status.Message = v.Mask(status.Message)
	if details := status.Details; details != nil {
		masked := *details
		masked.Causes = nil
		for _, cause := range details.Causes {
			masked.Causes = append(masked.Causes, metav1.StatusCause{
				Type: metav1.CauseType(v.Mask(string(cause.Type))), Field: v.Mask(cause.Field), Message: v.Mask(cause.Message),
			})
		}
		status.Details = &masked
	}
	status.Reason = metav1.StatusReason(v.Mask(string(status.Reason)))
	return &Error{&apierrors.StatusError{ErrStatus: status}}
}

func reasonAndFields(status metav1.Status) string {
	reason := string(status.Reason)
	if status.Reason == metav1.StatusReasonUnknown {
		reason = fmt.Sprintf("Unknown (%d)", status.Code)
	}
	message := "the API server refused it: " + reason
	if strings.Contains(status.Message, SchemaError) {
		message += " (" + SchemaError + ")"
	}
	if status.Details == nil {
		return message
	}
	for _, cause := range status.Details.Causes {
		if cause.Field != "" || cause.Type != "" {
			message += fmt.Sprintf("; %s: %s", cause.Field, cause.Type)
		}
	}
	return message
}

// details keeps the parts that an answer's author cannot choose freely. A webhook writes the whole
// answer, and may put any text into each field.
func (v *Values) details(id manifest.ID, details *metav1.StatusDetails, terse bool) *metav1.StatusDetails {
	if details == nil {
		return nil
	}
	kept := metav1.StatusDetails{Name: id.Name, Group: details.Group, Kind: details.Kind, UID: details.UID, RetryAfterSeconds: details.RetryAfterSeconds}
	for _, cause := range details.Causes {
		one := metav1.StatusCause{Type: knownCause(cause.Type), Field: v.Mask(cause.Field)}
		if id.IsSecret() && !isSecretField(cause.Field) {
			one.Field = ""
		}
		// Only the message names the other field manager, and that name is no value.
		if !terse || cause.Type == metav1.CauseTypeFieldManagerConflict {
			one.Message = v.Mask(cause.Message)
		}
		kept.Causes = append(kept.Causes, one)
	}
	return &kept
}

// isSecretField reports whether a path begins with a field of a Secret.
func isSecretField(path string) bool {
	name := strings.TrimPrefix(path, ".")
	if end := strings.IndexAny(name, ".["); end >= 0 {
		name = name[:end]
	}
	return slices.Contains([]string{"apiVersion", "kind", "metadata", "type", "immutable", "data", "stringData"}, name)
}

// complainsOfHidden reports whether an answer is about a hidden field, or a field with hidden
// fields. The message then has the value in a form that the server chose.
func (r *Redactor) complainsOfHidden(id manifest.ID, status metav1.Status) bool {
	if status.Details == nil {
		return false
	}
	return slices.ContainsFunc(status.Details.Causes, func(cause metav1.StatusCause) bool {
		return cause.Field != "" && len(r.Mask(id.GroupKind()).at(cause.Field)) > 0
	})
}

// at returns the mask at a path as API servers write it: spec.users[0].name, data[key]. Brackets
// hold an index or a key. At a hidden value, it ignores the rest of the path.
func (m Mask) at(path string) Mask {
	for path != "" && len(m) > 0 && !m.ends() {
		var name string
		if inner, ok := strings.CutPrefix(path, "["); ok {
			name, path, _ = strings.Cut(inner, "]")
			m = append(m.Item(), m.Field(name)...)
			continue
		}
		path = strings.TrimPrefix(path, ".")
		end := strings.IndexAny(path, ".[")
		if end < 0 {
			end = len(path)
		}
		name, path = path[:end], path[end:]
		m = m.Field(name)
	}
	return m
}

func (m Mask) ends() bool {
	return slices.ContainsFunc(m, func(path []step) bool { return len(path) == 0 })
}

func knownReason(reason metav1.StatusReason) metav1.StatusReason {
	switch reason {
	case metav1.StatusReasonUnauthorized, metav1.StatusReasonForbidden, metav1.StatusReasonNotFound, metav1.StatusReasonAlreadyExists,
		metav1.StatusReasonConflict, metav1.StatusReasonGone, metav1.StatusReasonInvalid, metav1.StatusReasonServerTimeout,
		metav1.StatusReasonStoreReadError, metav1.StatusReasonTimeout, metav1.StatusReasonTooManyRequests, metav1.StatusReasonBadRequest,
		metav1.StatusReasonMethodNotAllowed, metav1.StatusReasonNotAcceptable, metav1.StatusReasonRequestEntityTooLarge,
		metav1.StatusReasonUnsupportedMediaType, metav1.StatusReasonInternalError, metav1.StatusReasonExpired, metav1.StatusReasonServiceUnavailable:
		return reason
	}
	return metav1.StatusReasonUnknown
}

func knownCause(cause metav1.CauseType) metav1.CauseType {
	switch cause {
	case metav1.CauseTypeFieldValueNotFound, metav1.CauseTypeFieldValueRequired, metav1.CauseTypeFieldValueDuplicate,
		metav1.CauseTypeFieldValueInvalid, metav1.CauseTypeFieldValueNotSupported, metav1.CauseTypeForbidden, metav1.CauseTypeTooLong,
		metav1.CauseTypeTooMany, metav1.CauseTypeInternal, metav1.CauseTypeTypeInvalid, metav1.CauseTypeUnexpectedServerResponse,
		metav1.CauseTypeFieldManagerConflict, metav1.CauseTypeResourceVersionTooLarge, corev1.NamespaceTerminatingCause:
		return cause
	}
	return ""
}
