package author

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apiserver/pkg/authentication/user"
)

const (
	// Lifetime is the validity of a stamp. It is limited because groups change, and people leave.
	// The caller compares Stamp.Time with its own clock.
	Lifetime = 24 * time.Hour
	// CreationSkew is the largest difference between the time of a creation's stamp and
	// metadata.creationTimestamp. It allows for the clocks of two machines, and for the duration of
	// a request.
	CreationSkew = time.Minute
	// MaxSize limits a stamp, in bytes: the annotations of an object are limited to 256 KiB.
	MaxSize = 128 << 10
	// Renew is the value of AuthorAnnotation by which a user becomes the author without another
	// change. Otherwise such a write would not be stamped.
	Renew = "me"
)

// Stamp names the author of the content of an object.
type Stamp struct {
	// User, UID, Groups and Extra are as authenticated by kube-apiserver.
	User   string              `json:"user"`
	UID    string              `json:"uid,omitempty"`
	Groups []string            `json:"groups,omitempty"`
	Extra  map[string][]string `json:"extra,omitempty"`
	// Time is the time of the write, in seconds, UTC.
	Time time.Time `json:"time"`
	// Bypass is true if the user had the verb bypass on privilegechecks.policy.penstock.dev for the
	// extension at that time.
	Bypass bool `json:"bypass,omitempty"`
	// Kind is the kind and group of the object; empty for a ClusterExtension.
	Kind string `json:"kind,omitempty"`
	// Extension is the uid of the object; empty in the stamp of a creation.
	Extension string `json:"extension,omitempty"`
	// Name is the name of the object, or its generateName if it was created without a name.
	Name string `json:"name"`
	// Namespace is the namespace of the object; empty for a cluster-scoped object.
	Namespace string `json:"namespace,omitempty"`
	// Generation is metadata.generation after the write; 0 if the author does not sign the spec.
	Generation int64 `json:"generation"`
	// Chosen is the last write that changed spec.source; nil if unknown.
	Chosen *Choice `json:"chosen,omitempty"`
	// Digest is the digest of the written content; see Subject.Digest.
	Digest string `json:"digest"`
	// Signature is an HMAC-SHA256 in hexadecimal digits.
	Signature string `json:"signature"`
}

// Info returns the user of a stamp, for access reviews and impersonation.
func (s *Stamp) Info() user.Info {
	return &user.DefaultInfo{Name: s.User, UID: s.UID, Groups: s.Groups, Extra: s.Extra}
}

// Fresh reports whether a stamp is still within its lifetime. The controller checks it; reviews do
// not.
func (s *Stamp) Fresh(now time.Time) bool {
	return now.Before(s.Time.Add(Lifetime)) && s.Time.Before(now.Add(CreationSkew))
}

// Encode returns the stamp as the value of the annotation.
func (s *Stamp) Encode() (string, error) {
	out, err := json.Marshal(s)
	if err != nil {
		return "", fmt.Errorf("encoding a stamp: %w", err)
	}
	if len(out) > MaxSize {
		return "", fmt.Errorf("user %s has groups and extra of %d bytes, and a stamp has at most %d", s.User, len(out), MaxSize)
	}
	return string(out), nil
}

func parse(value string) (*Stamp, error) {
	if len(value) > MaxSize {
		return nil, fmt.Errorf("it has %d bytes, and a stamp has at most %d", len(value), MaxSize)
	}
	decoder := json.NewDecoder(strings.NewReader(value))
	decoder.DisallowUnknownFields()
	stamp := &Stamp{}
	if err := decoder.Decode(stamp); err != nil || decoder.More() {
		return nil, errors.New("it is not the JSON of a stamp")
	}
	return stamp, nil
}

// Problem is the reason why a stamp is not valid.
type Problem string

const (
	// Missing: the object has no stamp, because it was not written since Penstock records authors.
	Missing Problem = "Missing"
	// Unreadable: the annotation is not a valid stamp.
	Unreadable Problem = "Unreadable"
	// Unsigned: the signature was made with another key, for example the key of a former store.
	Unsigned Problem = "Unsigned"
	// OtherExtension: the stamp is for another object.
	OtherExtension Problem = "OtherExtension"
	// OtherContent: the spec or one of Penstock's annotations was changed without a stamp.
	OtherContent Problem = "OtherContent"
)

// Error is the reason why an object has no author.
type Error struct {
	Problem Problem
	// Detail describes the found and the expected value.
	Detail string
}

// Error implements error.
func (e *Error) Error() string { return e.Detail }
