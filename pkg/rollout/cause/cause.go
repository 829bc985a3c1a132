package cause

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/text"
)

// Reasons for which Kubernetes has no word. All other reasons are words of Kubernetes, from Pod
// conditions, container states, conditions and Events.
const (
	// OOMKilled: a container used more memory than its limit.
	OOMKilled = "OOMKilled"
	// CrashLoopBackOff: a container ends again and again.
	CrashLoopBackOff = "CrashLoopBackOff"
	// InitContainerRunning: an init container has not ended, so the Pod starts no other container.
	InitContainerRunning = "InitContainerRunning"
	// StartupProbeFailing and ReadinessProbeFailing: a container runs but its probe fails.
	StartupProbeFailing   = "StartupProbeFailing"
	ReadinessProbeFailing = "ReadinessProbeFailing"
	// ReadinessGate: the Pod waits for a condition that another controller sets.
	ReadinessGate = "ReadinessGate"
	// Starting: a Pod starts without a known problem.
	Starting = "Starting"
	// ClaimNotBound: a PersistentVolumeClaim has no volume.
	ClaimNotBound = "ClaimNotBound"
	// NoEndpoints: a Service has no ready Pod.
	NoEndpoints = "NoEndpoints"
	// NoPods: a workload has no Pod, for an unknown reason.
	NoPods = "NoPods"
)

const (
	// maxBytes is the largest size of a cause's text.
	maxBytes = 384
	// maxWordBytes is the largest size of a name or image in it.
	maxWordBytes = 128
	// MaxTextBytes is the largest size of Text.
	MaxTextBytes = 1024
)

// Cause is the reason why an object is not ready.
type Cause struct {
	// Reason in one CamelCase word.
	Reason string
	// Object shows the cause, such as the Pod that does not start.
	Object manifest.ID
	// Alike is the number of Pods with the same cause, out of Pods examined Pods. Both are 0 for an
	// object that is no Pod.
	Alike, Pods int
	// Container of the Pod; empty for none. Init is true for an init container.
	Container string
	Init      bool
	// Image of the container if the image is the cause.
	Image string
	// ExitCode of the container's last termination; nil if it has not terminated.
	ExitCode *int32
	// Restarts of the container.
	Restarts int32
	// Related is the object that is missing, unbound or exceeded, or that refuses; nil for none.
	Related *manifest.ID
	// Facts are further facts, in words of this package.
	Facts string
	// Text is the original text of a component; it may contain secrets.
	Text string
}

// String returns the cause as text for users, without Text: one line of at most 384 bytes, the same
// for the same state.
func (c Cause) String() string {
	var b strings.Builder
	b.WriteString(word(c.Object.String()))
	if c.Alike > 1 {
		fmt.Fprintf(&b, " (and %d more of %d)", c.Alike-1, c.Pods)
	}
	b.WriteString(": ")
	if c.Container != "" {
		if c.Init {
			b.WriteString("init ")
		}
		fmt.Fprintf(&b, "container %s: ", word(c.Container))
	}
	b.WriteString(c.Reason)
	if c.Image != "" {
		b.WriteString(", image " + word(c.Image))
	}
	if c.ExitCode != nil {
		fmt.Fprintf(&b, ", exit code %d", *c.ExitCode)
	}
	if c.Restarts > 0 {
		b.WriteString(", " + text.Count(c.Restarts, "restart"))
	}
	if c.Related != nil {
		b.WriteString(", " + word(c.Related.String()))
	}
	if c.Facts != "" {
		if c.Related != nil {
			b.WriteString(" " + c.Facts)
		} else {
			b.WriteString(", " + c.Facts)
		}
	}
	return text.Clip(b.String(), maxBytes)
}

// Mask applies mask to the texts that come from objects, to hide confidential values.
func (c *Cause) Mask(mask func(string) string) {
	for _, word := range []*string{&c.Container, &c.Image, &c.Facts, &c.Text} {
		*word = mask(*word)
	}
}

// because returns the cause with the text of a component.
func (c Cause) because(written string) Cause {
	c.Text = text.Clip(strings.ToValidUTF8(written, ""), MaxTextBytes)
	return c
}

// camelCase matches the form that Kubernetes requires of reasons.
var camelCase = regexp.MustCompile(`^[A-Z][A-Za-z0-9]{0,63}$`)

// reasonOr returns given if it has the form of a reason, and otherwise the other reason, because
// other text may contain anything.
func reasonOr(given, otherwise string) string {
	if camelCase.MatchString(given) {
		return given
	}
	return otherwise
}

// word shortens a name and removes unprintable characters.
func word(name string) string {
	return text.Clip(strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(name, "")), maxWordBytes)
}
