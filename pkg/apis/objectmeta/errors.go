package objectmeta

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/penstock-project/penstock/pkg/text"
)

const (
	// maxErrors bounds the errors in an answer. More errors usually have the same cause.
	maxErrors = 64
	// maxErrorBytes bounds a path, a value or an explanation in an error, in bytes.
	maxErrorBytes = 1 << 10
)

// Bounded shortens validation errors for an answer: at most maxErrors errors, and only the
// beginning of quoted content. The answer to a refused request then never is much longer than the
// request.
func Bounded(errs field.ErrorList) field.ErrorList {
	var bounded field.ErrorList
	for i, err := range errs {
		if i == maxErrors {
			return append(bounded, &field.Error{Type: err.Type, Field: text.Clip(err.Field, maxErrorBytes), BadValue: field.OmitValueType{},
				Detail: fmt.Sprintf("%d errors are listed, %d more are not; this is the first of those", i, len(errs)-i)})
		}
		bounded = append(bounded, boundedError(err))
	}
	return bounded
}

func boundedError(err *field.Error) *field.Error {
	bounded := *err
	bounded.Field = text.Clip(err.Field, maxErrorBytes)
	bounded.Detail = text.Clip(err.Detail, maxErrorBytes)
	if value, isText := err.BadValue.(string); isText {
		bounded.BadValue = text.Clip(value, maxErrorBytes)
	} else if shown := fmt.Sprintf("%v", err.BadValue); len(shown) > maxErrorBytes {
		bounded.BadValue = text.Clip(shown, maxErrorBytes)
	}
	return &bounded
}
