// Package approval has the scheduled approval of a proposal. It takes effect when the windows of
// the extension allow upgrades, and not before a given time. The server stores the approval on the
// revision. The controller of ClusterExtensions carries it out, in the name of the approver. The
// package is pure.
package approval

import (
	"encoding/json"
	"fmt"
	"time"

	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
)

const (
	// MaxAhead bounds the time until an approval takes effect. Lifetime bounds the time after that
	// in which it can take effect: the approver may lose rights or leave.
	MaxAhead = 31 * 24 * time.Hour
	Lifetime = 7 * 24 * time.Hour
	// Skew bounds the difference between the clocks of the processes.
	Skew = 5 * time.Minute
	// maxBytes bounds an encoded approval. Claims of a token may be long.
	maxBytes = 32 << 10
)

// Scheduled is an approval for a later time.
type Scheduled struct {
	User   string              `json:"user"`
	UID    string              `json:"uid,omitempty"`
	Groups []string            `json:"groups,omitempty"`
	Extra  map[string][]string `json:"extra,omitempty"`
	// At is the time of the approval, and NotBefore the earliest time at which it takes effect.
	At        time.Time `json:"at"`
	NotBefore time.Time `json:"notBefore"`
	// Digest identifies the diff that the user approved. Generation identifies the spec, because
	// the diff does not have all of its fields.
	Digest     string `json:"digest"`
	Generation int64  `json:"generation"`
	// Ended is the time at which the approval ended without effect, and Why the reason.
	Ended time.Time `json:"ended,omitzero"`
	Why   string    `json:"why,omitempty"`
}

// Of returns the approval of a revision, or nil if it has none. It returns an error for an
// unreadable annotation.
func Of(annotations map[string]string) (*Scheduled, error) {
	value := annotations[v1alpha1.ScheduledApprovalAnnotation]
	if value == "" {
		return nil, nil
	}
	found := &Scheduled{}
	if err := json.Unmarshal([]byte(value), found); err != nil {
		return nil, fmt.Errorf("reading annotation %s: %w", v1alpha1.ScheduledApprovalAnnotation, err)
	}
	return found, nil
}

// Pending returns the approval of a revision if it can still take effect, or nil.
func Pending(annotations map[string]string) *Scheduled {
	found, err := Of(annotations)
	if err != nil || found == nil || !found.Ended.IsZero() {
		return nil
	}
	return found
}

// Ended returns the approval of a revision if it ended without effect, or nil.
func Ended(annotations map[string]string) *Scheduled {
	found, err := Of(annotations)
	if err != nil || found == nil || found.Ended.IsZero() {
		return nil
	}
	return found
}

// Encode returns the value of the annotation.
func (s *Scheduled) Encode() (string, error) {
	value, err := json.Marshal(s)
	if err != nil {
		return "", fmt.Errorf("encoding the approval by %s: %w", s.User, err)
	}
	if len(value) > maxBytes {
		return "", fmt.Errorf("the approval by %s has %d bytes with its groups and extra values, at most %d are kept: approve it when the window is open", s.User, len(value), maxBytes)
	}
	return string(value), nil
}

// Info returns the user who approved.
func (s *Scheduled) Info() user.Info {
	return &user.DefaultInfo{Name: s.User, UID: s.UID, Groups: s.Groups, Extra: s.Extra}
}

// Over returns the reason why an approval cannot take effect any more. It is empty while the
// approval can.
func (s *Scheduled) Over(now time.Time) string {
	switch {
	case now.Before(s.At.Add(-Skew)):
		return fmt.Sprintf("it is from %s, and the clock of Penstock is behind that", s.At.UTC().Format(time.RFC3339))
	case now.After(s.NotBefore.Add(Lifetime)):
		return fmt.Sprintf("no window was open in the %d days after %s", int(Lifetime.Hours()/24), s.NotBefore.UTC().Format(time.RFC3339))
	}
	return ""
}

// NotBefore reads the earliest time at which an approval takes effect. The error is a phrase to
// append to the value.
func NotBefore(value string, now time.Time) (time.Time, error) {
	at, err := time.Parse(time.RFC3339, value)
	if err != nil {
		return time.Time{}, fmt.Errorf("must be a time such as %s", now.UTC().Format(time.RFC3339))
	}
	if at.Before(now.Add(-Skew)) || at.After(now.Add(MaxAhead)) {
		return time.Time{}, fmt.Errorf("must be between now, %s, and %s", now.UTC().Format(time.RFC3339), now.Add(MaxAhead).UTC().Format(time.RFC3339))
	}
	return at, nil
}
