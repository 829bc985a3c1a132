package probe

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/penstock-project/penstock/pkg/text"
)

const (
	// MaxMessageBytes is the largest size of a verdict's message, so that status stays small for
	// any object.
	MaxMessageBytes = 512

	// maxForeignBytes is the largest size of a quoted message of the object, so that one long
	// condition leaves room for other text.
	maxForeignBytes = 256
	// maxValueBytes is the largest size of a quoted field value.
	maxValueBytes = 64
	// maxCleanedBytes limits the work on a message that is shortened anyway.
	maxCleanedBytes = 4096
)

// timestamp matches the forms in which controllers print times (RFC 3339, and Go's
// time.Time.String). A message with a time would change status repeatedly without a real change.
var timestamp = regexp.MustCompile(
	`\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}:\d{2}(\.\d+)?(Z| ?[+-]\d{2}:?\d{2}( [A-Z]{2,5})?)?( m=[+-][\d.]+)?`)

func pass() Verdict { return Verdict{Status: True} }

func failing(format string, args ...any) Verdict { return verdict(False, fmt.Sprintf(format, args...)) }

func unknown(format string, args ...any) Verdict {
	return verdict(Unknown, fmt.Sprintf(format, args...))
}

func verdict(status Status, message string) Verdict {
	return Verdict{Status: status, Message: text.Clip(clean(message), MaxMessageBytes)}
}

// and joins verdicts: False if any is False, otherwise Unknown if any is Unknown. It keeps the
// messages of the verdicts with that status, in their order. A known fault helps a user more than
// an unknown state.
func and(verdicts []Verdict) Verdict {
	for _, status := range []Status{False, Unknown} {
		var messages []string
		for _, v := range verdicts {
			if v.Status == status {
				messages = append(messages, v.Message)
			}
		}
		if messages != nil {
			return verdict(status, sentence(messages...))
		}
	}
	return pass()
}

// sentence joins parts, without empty and repeated parts.
func sentence(parts ...string) string {
	var kept []string
	for _, part := range parts {
		if part != "" && !slices.Contains(kept, part) {
			kept = append(kept, part)
		}
	}
	return strings.Join(kept, "; ")
}

// clean converts text of an object to one line of printable text, and removes times.
func clean(text string) string {
	if len(text) > maxCleanedBytes {
		text = text[:maxCleanedBytes]
	}
	printable := strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, ""))
	return timestamp.ReplaceAllString(strings.Join(strings.Fields(printable), " "), "(time)")
}

// quote cleans and shortens text of an object.
func quote(foreign string) string { return text.Clip(clean(foreign), maxForeignBytes) }
