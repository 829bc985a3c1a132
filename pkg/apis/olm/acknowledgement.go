package olm

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
)

// MaxAcknowledgementReason bounds the reason of an acknowledgement, in bytes.
const MaxAcknowledgementReason = 1024

var minorOfKubernetes = regexp.MustCompile(`^1\.[1-9][0-9]{0,3}$`)

// ParseAcknowledgement reads the value of an annotation that acknowledges a finding of upgrade readiness.
func ParseAcknowledgement(value string) (minor, reason string, err error) {
	minor, reason, _ = strings.Cut(strings.TrimSpace(value), " ")
	reason = strings.TrimSpace(reason)
	switch {
	case !minorOfKubernetes.MatchString(minor):
		err = fmt.Errorf("must begin with a minor of Kubernetes such as 1.38, found %q", minor)
	case reason == "":
		err = fmt.Errorf("must have a reason after the minor, such as \"%s nobody rolls back to it\"", minor)
	case len(reason) > MaxAcknowledgementReason:
		err = fmt.Errorf("must have a reason of at most %d bytes, found %d", MaxAcknowledgementReason, len(reason))
	case strings.ContainsFunc(reason, unicode.IsControl):
		err = fmt.Errorf("must have a reason in one line, without control characters")
	}
	return minor, reason, err
}
