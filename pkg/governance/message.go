package governance

import (
	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/text"
)

// Clip bounds a message of an item or a condition.
func Clip(message string) string { return text.Clip(message, v1alpha1.MaxMessageBytes) }
