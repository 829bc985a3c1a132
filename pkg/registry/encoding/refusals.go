package encoding

import (
	"io"
	"regexp"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// EncoderForVersion returns an encoder that shortens errors of patches to the unknown fields, or
// the fields with a wrong type. The library puts the whole object into the error, thousands of
// bytes (apiserver/pkg/endpoints/handlers/patch.go).
func (s text) EncoderForVersion(encoder runtime.Encoder, version runtime.GroupVersioner) runtime.Encoder {
	return refusals{s.CodecFactory.EncoderForVersion(encoder, version)}
}

// refusals is an encoder that shortens errors.
type refusals struct{ runtime.Encoder }

// Encode implements runtime.Encoder.
func (r refusals) Encode(obj runtime.Object, w io.Writer) error {
	if status, ok := obj.(*metav1.Status); ok {
		obj = withoutPatched(status)
	}
	return r.Encoder.Encode(obj, w)
}

// patchField is the library's name for the patched object in an error.
const patchField = "patch"

var unknownField = regexp.MustCompile(`(?:unknown|duplicate) field "([^"]+)"`)

// wrongType matches the decoder's error about a field with a value of the wrong type.
var wrongType = regexp.MustCompile(`Go struct field [^. ]+\.(\S+) of type`)

// withoutPatched replaces the object in the status of a refused patch by the error. It returns any
// other status unchanged.
func withoutPatched(status *metav1.Status) *metav1.Status {
	if status.Reason != metav1.StatusReasonInvalid || status.Details == nil || len(status.Details.Causes) != 1 || status.Details.Causes[0].Field != patchField {
		return status
	}
	detail := behindValue(status.Details.Causes[0].Message)
	if detail == "" {
		return status
	}
	brief := status.DeepCopy()
	brief.Details.Causes = nil
	refused := func(named, message string) {
		brief.Details.Causes = append(brief.Details.Causes, metav1.StatusCause{
			Type: metav1.CauseType(field.ErrorTypeInvalid), Field: named, Message: message,
		})
	}
	if unknown, strict := strings.CutPrefix(detail, "strict decoding error: "); strict {
		brief.Message = unknown + " (strict decoding error of the patched object)"
		for _, named := range unknownField.FindAllStringSubmatch(unknown, -1) {
			refused(named[1], named[0])
		}
		return brief
	}
	brief.Message = detail + " (the patched object cannot be decoded)"
	if named := wrongType.FindStringSubmatch(detail); named != nil {
		brief.Message = named[1] + ": " + brief.Message
		refused(named[1], detail)
		return brief
	}
	refused(patchField, detail)
	return brief
}

// behindValue returns the text after the quoted value in the message of an invalid field. It
// returns "" for a message in another form.
func behindValue(message string) string {
	quoted, found := strings.CutPrefix(message, "Invalid value: ")
	if !found {
		return ""
	}
	value, err := strconv.QuotedPrefix(quoted)
	if err != nil {
		return ""
	}
	return strings.TrimPrefix(quoted[len(value):], ": ")
}
