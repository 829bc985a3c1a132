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
	// MaxMessageBytes bounds the message of a verdict, so that status stays small whatever the
	// object contains.
	MaxMessageBytes = 512

	// maxForeignBytes bounds what is quoted of an object's own messages, so that
	// one talkative condition leaves room for the rest.
	maxForeignBytes = 256
	// maxValueBytes bounds a quoted value of a field.
	maxValueBytes = 64
	// maxCleanedBytes bounds the work on a message that is shortened anyway.
	maxCleanedBytes = 4096
)

// timestamp matches the forms in which controllers print times (RFC 3339, and
// Go's time.Time.String). A message with a time in it would change status again
// and again without anything having happened.
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

// and joins verdicts: one False makes False, else one Unknown makes Unknown. The
// messages are those of the verdicts that decided, in their order: what is known
// to be wrong helps a person more than what is not known.
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

// sentence joins parts, without empty and repeated ones.
func sentence(parts ...string) string {
	var kept []string
	for _, part := range parts {
		if part != "" && !slices.Contains(kept, part) {
			kept = append(kept, part)
		}
	}
	return strings.Join(kept, "; ")
}

// clean makes one line of printable text of what an object says about itself,
// and takes times out of it.
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

// quote is clean and bounded, for foreign text.
func quote(foreign string) string { return text.Clip(clean(foreign), maxForeignBytes) }
