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
	// Lifetime is the time for which a stamp decides: groups change, and people leave. The caller
	// compares it with Stamp.Time by its own clock.
	Lifetime = 24 * time.Hour
	// CreationSkew is the largest difference between the time of a stamp made at a creation and
	// metadata.creationTimestamp: the clocks of two machines, and the time of a request.
	CreationSkew = time.Minute
	// MaxSize bounds a stamp, in bytes: the annotations of an object have 256 KiB.
	MaxSize = 128 << 10
	// Renew is the value of the annotation by which a user becomes the author without another
	// change: such a write would give no stamp otherwise.
	Renew = "me"
)

// Stamp names the author of the content of an object.
type Stamp struct {
	// User, UID, Groups and Extra are the user as kube-apiserver authenticated them.
	User   string              `json:"user"`
	UID    string              `json:"uid,omitempty"`
	Groups []string            `json:"groups,omitempty"`
	Extra  map[string][]string `json:"extra,omitempty"`
	// Time is the time of the write, to the second, in UTC.
	Time time.Time `json:"time"`
	// Bypass is true if the user then had the verb bypass on privilegechecks.policy.penstock.dev
	// for the extension.
	Bypass bool `json:"bypass,omitempty"`
	// Kind is the kind of the object, with its group; empty for a ClusterExtension.
	Kind string `json:"kind,omitempty"`
	// Extension is the uid of the object; empty in a stamp made at its creation.
	Extension string `json:"extension,omitempty"`
	// Name is the name of the object, or its generateName at a creation without a name.
	Name string `json:"name"`
	// Namespace is the namespace of the object, empty for a cluster-scoped one.
	Namespace string `json:"namespace,omitempty"`
	// Generation is metadata.generation after that write; 0 if the author is not responsible for
	// the spec.
	Generation int64 `json:"generation"`
	// Chosen is the last write that changed spec.source; nil when unknown.
	Chosen *Choice `json:"chosen,omitempty"`
	// Digest is the digest of the written content, see Digest.
	Digest string `json:"digest"`
	// Signature is an HMAC-SHA256 in hexadecimal digits.
	Signature string `json:"signature"`
}

// Info returns the user of a stamp, for access reviews and impersonation.
func (s *Stamp) Info() user.Info {
	return &user.DefaultInfo{Name: s.User, UID: s.UID, Groups: s.Groups, Extra: s.Extra}
}

// Fresh returns whether a stamp still decides at a time. The controller checks it; reviews do not.
func (s *Stamp) Fresh(now time.Time) bool {
	return now.Before(s.Time.Add(Lifetime)) && s.Time.Before(now.Add(CreationSkew))
}

// Encode returns the value of the annotation.
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

// Problem is the reason why a stamp is not valid.
type Problem string

const (
	// Missing: no write of the object since Penstock makes stamps.
	Missing Problem = "Missing"
	// Unreadable: the annotation is not a valid stamp.
	Unreadable Problem = "Unreadable"
	// Unsigned: the signature is not ours, or that of a former store.
	Unsigned Problem = "Unsigned"
	// OtherExtension: the stamp was made for another object.
	OtherExtension Problem = "OtherExtension"
	// OtherContent: the spec, or an annotation of ours, was changed without a stamp.
	OtherContent Problem = "OtherContent"
)

// Error is the reason why an object has no author.
type Error struct {
	Problem Problem
	// Detail is for people: the found value and the wanted one.
	Detail string
}

// Error implements error.
func (e *Error) Error() string { return e.Detail }
