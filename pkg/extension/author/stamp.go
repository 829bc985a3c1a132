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
	// Lifetime is how long a stamp decides: groups change, and people leave. The caller
	// compares it with Stamp.Time by a clock of their own.
	Lifetime = 24 * time.Hour
	// CreationSkew is how far the time of a stamp made at a creation may be from
	// metadata.creationTimestamp: the clocks of two machines, and the time of a request.
	CreationSkew = time.Minute
	// MaxSize bounds a stamp, in bytes: the annotations of an object have 256 KiB.
	MaxSize = 128 << 10
	// Renew is the value of the annotation by which somebody takes the object over as
	// it is: a write that changes nothing else is no reason for a stamp.
	Renew = "me"
)

// Stamp says who wrote what stands in an object.
type Stamp struct {
	// User, UID, Groups and Extra are the user as kube-apiserver authenticated them.
	User   string              `json:"user"`
	UID    string              `json:"uid,omitempty"`
	Groups []string            `json:"groups,omitempty"`
	Extra  map[string][]string `json:"extra,omitempty"`
	// Time is when they wrote it, to the second, in UTC.
	Time time.Time `json:"time"`
	// Bypass is true when they had the verb bypass on privilegechecks.policy.penstock.dev
	// for the extension then.
	Bypass bool `json:"bypass,omitempty"`
	// Kind is that of the object, with its group; empty for a ClusterExtension.
	Kind string `json:"kind,omitempty"`
	// Extension is the uid of the object; empty in a stamp made at its creation.
	Extension string `json:"extension,omitempty"`
	// Name is the name of the object, or its generateName at a creation without a name.
	Name string `json:"name"`
	// Namespace is that of the object, empty when it is in none.
	Namespace string `json:"namespace,omitempty"`
	// Generation is metadata.generation as that write left it; 0 where the author does not
	// answer for the spec.
	Generation int64 `json:"generation"`
	// Chosen is the write that changed spec.source last; nil when that is not known.
	Chosen *Choice `json:"chosen,omitempty"`
	// Digest is that of what was written, see Digest.
	Digest string `json:"digest"`
	// Signature is an HMAC-SHA256 in hexadecimal digits.
	Signature string `json:"signature"`
}

// Info is the user of a stamp, for access reviews and impersonation.
func (s *Stamp) Info() user.Info {
	return &user.DefaultInfo{Name: s.User, UID: s.UID, Groups: s.Groups, Extra: s.Extra}
}

// Fresh tells whether a stamp still decides at a time. The loop asks it; reviews do not.
func (s *Stamp) Fresh(now time.Time) bool {
	return now.Before(s.Time.Add(Lifetime)) && s.Time.Before(now.Add(CreationSkew))
}

// Encode is the value of the annotation.
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

// parse reads the value of the annotation.
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

// Problem is why a stamp does not count.
type Problem string

const (
	// Missing: nobody wrote the object since Penstock stamps.
	Missing Problem = "Missing"
	// Unreadable: the annotation is no stamp.
	Unreadable Problem = "Unreadable"
	// Unsigned: the signature is not ours, or is of a store that is no longer used.
	Unsigned Problem = "Unsigned"
	// OtherExtension: it was made for another object.
	OtherExtension Problem = "OtherExtension"
	// OtherContent: the spec, or an annotation of ours, was changed without a stamp.
	OtherContent Problem = "OtherContent"
)

// Error says why there is no author.
type Error struct {
	Problem Problem
	// Detail is for people: what was found and what was wanted.
	Detail string
}

// Error implements error.
func (e *Error) Error() string { return e.Detail }
