package cause

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/text"
)

// Reasons that no component of Kubernetes has a word for. All others are the words of
// Kubernetes: those of Pod conditions, container states, conditions and Events.
const (
	// OOMKilled is a container that had more memory than its limit allows.
	OOMKilled = "OOMKilled"
	// CrashLoopBackOff is a container that ends again and again.
	CrashLoopBackOff = "CrashLoopBackOff"
	// InitContainerRunning is an init container that has not ended: nothing else of the Pod
	// starts before.
	InitContainerRunning = "InitContainerRunning"
	// StartupProbeFailing and ReadinessProbeFailing mean that a container runs but its probe fails.
	StartupProbeFailing   = "StartupProbeFailing"
	ReadinessProbeFailing = "ReadinessProbeFailing"
	// ReadinessGate is a condition that the Pod waits for and another controller sets.
	ReadinessGate = "ReadinessGate"
	// Starting means that a Pod starts without a known problem.
	Starting = "Starting"
	// ClaimNotBound is a PersistentVolumeClaim without a volume.
	ClaimNotBound = "ClaimNotBound"
	// NoEndpoints is a Service that no ready Pod is behind.
	NoEndpoints = "NoEndpoints"
	// NoPods means that a workload has no Pod, for an unknown reason.
	NoPods = "NoPods"
)

const (
	// maxBytes bounds what String returns.
	maxBytes = 384
	// maxWordBytes bounds names and images in it.
	maxWordBytes = 128
	// MaxTextBytes bounds Text.
	MaxTextBytes = 1024
)

// Cause explains why an object is not ready.
type Cause struct {
	// Reason in one CamelCase word.
	Reason string
	// Object shows it, such as the Pod that does not start.
	Object manifest.ID
	// Alike is the number of Pods with the same cause, of the examined Pods. Both are 0 for an
	// object that is no Pod.
	Alike, Pods int
	// Container of the Pod; empty for none. Init is true for an init container.
	Container string
	Init      bool
	// Image of the container if the image is the cause.
	Image string
	// ExitCode of the container when it ended last, nil when it has not.
	ExitCode *int32
	// Restarts of the container.
	Restarts int32
	// Related is the object that is missing, not bound, exceeded or refuses; nil for none.
	Related *manifest.ID
	// Facts are further facts, in words of this package.
	Facts string
	// Text is the original text of a component; it may contain secrets.
	Text string
}

// String is the cause for a person, without Text: one line of at most 384 bytes, the same
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

// Mask applies a function to the texts that come from objects, to hide confidential values.
func (c *Cause) Mask(mask func(string) string) {
	for _, word := range []*string{&c.Container, &c.Image, &c.Facts, &c.Text} {
		*word = mask(*word)
	}
}

// because returns the cause with what a component wrote.
func (c Cause) because(written string) Cause {
	c.Text = text.Clip(strings.ToValidUTF8(written, ""), MaxTextBytes)
	return c
}

// camelCase matches the form that Kubernetes demands of reasons.
var camelCase = regexp.MustCompile(`^[A-Z][A-Za-z0-9]{0,63}$`)

// reasonOr returns a reason as a component gave it, or another one when it is none: what
// is not one word could be anything.
func reasonOr(given, otherwise string) string {
	if camelCase.MatchString(given) {
		return given
	}
	return otherwise
}

// word bounds a name and makes one printable line of it.
func word(name string) string {
	return text.Clip(strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(name, "")), maxWordBytes)
}
