package targetclient

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/penstock-project/penstock/pkg/manifest"
)

// KindUnknownError reports that the target cluster does not serve a kind: its
// CustomResourceDefinition is not installed, or not yet established.
type KindUnknownError struct {
	Kind  schema.GroupVersionKind
	cause error
}

// Error names the kind and its version.
//
// The error does not wrap the server's 404, because an unserved kind does not prove that an object
// does not exist.
func (e *KindUnknownError) Error() string {
	message := fmt.Sprintf("the cluster serves no kind %q in %q", e.Kind.Kind, e.Kind.GroupVersion())
	if e.cause != nil {
		message += ": " + e.cause.Error()
	}
	return message
}

// Is makes meta.IsNoMatchError return true.
func (e *KindUnknownError) Is(target error) bool {
	_, ok := target.(*meta.NoKindMatchError)
	return ok
}

// DiscoveryError reports that the kinds of an API version could not be read, because its server
// does not answer or refuses.
type DiscoveryError struct {
	Version schema.GroupVersion
	cause   error
}

// Error names the version.
func (e *DiscoveryError) Error() string {
	return fmt.Sprintf("discovering %s: %s", e.Version, e.cause.Error())
}

// Unwrap returns the server's answer.
func (e *DiscoveryError) Unwrap() error { return e.cause }

// ScopeError reports a namespace on a cluster-scoped object, or a namespaced object without a
// namespace.
type ScopeError struct {
	ID manifest.ID
	// Namespaced is true when the kind is namespaced.
	Namespaced bool
}

// Error describes how to correct the namespace.
func (e *ScopeError) Error() string {
	if e.Namespaced {
		return fmt.Sprintf("metadata.namespace is missing: %s is a namespaced kind", e.ID.GroupKind())
	}
	return fmt.Sprintf("metadata.namespace is %q and must be absent: %s is a cluster-scoped kind", e.ID.Namespace, e.ID.GroupKind())
}

// UnguardedError refuses a write without a precondition, which could change another object than the
// one that was read. It is a bug of the caller. No request was sent.
type UnguardedError struct {
	// Missing is the missing part of the precondition.
	Missing string
}

// Error names the missing part.
func (e *UnguardedError) Error() string {
	return fmt.Sprintf("refusing an unguarded write: %s is missing", e.Missing)
}

// VersionGoneError reports that the server cannot apply to a custom resource, because its
// managedFields have a version that the definition no longer has. Reassign corrects such entries.
type VersionGoneError struct {
	Version schema.GroupVersion
	cause   error
}

// Error names the version.
func (e *VersionGoneError) Error() string {
	message := fmt.Sprintf("managedFields name %s, a version that the server does not know any more", e.Version)
	if e.cause != nil {
		message += ": " + e.cause.Error()
	}
	return message
}

// Unwrap returns the server's answer.
func (e *VersionGoneError) Unwrap() error { return e.cause }

// toGoneVersion is the beginning of the server's message for a *VersionGoneError
// (apiextensions-apiserver, apiserver/conversion/converter.go). The server has no separate reason
// for this error. Only the version follows.
const toGoneVersion = "request to convert CR to an invalid group/version: "

// versionGone converts such an answer to a *VersionGoneError; it returns nil for other errors. A
// message with more text has another source, and may quote an object.
func versionGone(group string, err error) *VersionGoneError {
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) || answer.Status().Code != http.StatusInternalServerError {
		return nil
	}
	named, found := strings.CutPrefix(answer.Status().Message, toGoneVersion)
	version, unreadable := schema.ParseGroupVersion(named)
	if !found || unreadable != nil || version.Group != group || len(validation.IsDNS1035Label(version.Version)) > 0 {
		return nil
	}
	return &VersionGoneError{Version: version, cause: err}
}

// IsVersionGone reports whether an error is a *VersionGoneError.
func IsVersionGone(err error) bool {
	var gone *VersionGoneError
	return errors.As(err, &gone)
}

// IsOvertaken reports whether the object's state differs from the write's precondition.
func IsOvertaken(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err)
}

// isPathMissing reports whether the server has no such resource, as opposed to no such object. Only
// answers without a resource's own handler have this cause (client-go, NewGenericServerResponse).
func isPathMissing(err error) bool {
	return apierrors.IsNotFound(err) && apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}
