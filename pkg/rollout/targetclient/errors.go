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
// The error does not wrap the server's 404: an unserved kind does not prove that an object is gone.
func (e *KindUnknownError) Error() string {
	message := fmt.Sprintf("the cluster serves no kind %q in %q", e.Kind.Kind, e.Kind.GroupVersion())
	if e.cause != nil {
		message += ": " + e.cause.Error()
	}
	return message
}

// Is makes meta.IsNoMatchError true.
func (e *KindUnknownError) Is(target error) bool {
	_, ok := target.(*meta.NoKindMatchError)
	return ok
}

// DiscoveryError reports that the kinds of an API version could not be read: its server does not
// answer, or refuses.
type DiscoveryError struct {
	Version schema.GroupVersion
	cause   error
}

// Error names the version.
func (e *DiscoveryError) Error() string {
	return fmt.Sprintf("discovering %s: %s", e.Version, e.cause.Error())
}

// Unwrap returns the answer of the server.
func (e *DiscoveryError) Unwrap() error { return e.cause }

// ScopeError reports a namespace on a cluster-scoped object, or a namespaced object without a
// namespace.
type ScopeError struct {
	ID manifest.ID
	// Namespaced is true when the kind is namespaced.
	Namespaced bool
}

// Error says how to correct the namespace.
func (e *ScopeError) Error() string {
	if e.Namespaced {
		return fmt.Sprintf("metadata.namespace is missing: %s is a namespaced kind", e.ID.GroupKind())
	}
	return fmt.Sprintf("metadata.namespace is %q and must be absent: %s is a cluster-scoped kind", e.ID.Namespace, e.ID.GroupKind())
}

// UnguardedError refuses a write without a precondition, which could change another object than the
// one that was read. It is a bug of the caller; nothing was sent.
type UnguardedError struct {
	// Missing is the part of the precondition that is not there.
	Missing string
}

// Error names the missing part.
func (e *UnguardedError) Error() string {
	return fmt.Sprintf("refusing an unguarded write: %s is missing", e.Missing)
}

// VersionGoneError reports that the server cannot apply to a custom resource, because its
// managedFields have a version that the definition no longer has. Reassign repairs such entries.
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

// Unwrap returns the answer of the server.
func (e *VersionGoneError) Unwrap() error { return e.cause }

// toGoneVersion begins what the server says to an apply that a *VersionGoneError is made of
// (apiextensions-apiserver, apiserver/conversion/converter.go). It has no reason of its own
// for it; the version is all that follows.
const toGoneVersion = "request to convert CR to an invalid group/version: "

// versionGone recognises the answer that a *VersionGoneError is made of, nil for others. A
// message with anything else in it is somebody else's, and may quote an object.
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

// IsVersionGone is true for a *VersionGoneError.
func IsVersionGone(err error) bool {
	var gone *VersionGoneError
	return errors.As(err, &gone)
}

// IsOvertaken reports whether the server found another state than the one in the write's
// precondition.
func IsOvertaken(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err)
}

// isPathMissing is true when the server knows no such resource, as opposed to no
// such object. Only what was not answered by a resource's own handler carries
// this cause (client-go, NewGenericServerResponse).
func isPathMissing(err error) bool {
	return apierrors.IsNotFound(err) && apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}
