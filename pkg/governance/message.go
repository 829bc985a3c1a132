package governance

import (
	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/text"
)

// Clip shortens a message of an item or a condition to the allowed length.
func Clip(message string) string { return text.Clip(message, v1alpha1.MaxMessageBytes) }
