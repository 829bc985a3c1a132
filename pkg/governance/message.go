package governance

import (
	"strings"

	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
)

// Clip bounds a message of an item or a condition, at the end of a character.
func Clip(message string) string {
	if len(message) <= v1alpha1.MaxMessageBytes {
		return message
	}
	const ellipsis = "..."
	return strings.ToValidUTF8(message[:v1alpha1.MaxMessageBytes-len(ellipsis)], "") + ellipsis
}
