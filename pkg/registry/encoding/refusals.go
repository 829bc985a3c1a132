package encoding

import (
	"io"
	"regexp"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// EncoderForVersion returns an encoder that says of a patch with unknown fields which
// they are. The library puts the whole object before them, thousands of bytes
// (apiserver/pkg/endpoints/handlers/patch.go).
func (s text) EncoderForVersion(encoder runtime.Encoder, version runtime.GroupVersioner) runtime.Encoder {
	return refusals{s.CodecFactory.EncoderForVersion(encoder, version)}
}

// refusals is an encoder of answers.
type refusals struct{ runtime.Encoder }

// Encode implements runtime.Encoder.
func (r refusals) Encode(obj runtime.Object, w io.Writer) error {
	if status, ok := obj.(*metav1.Status); ok {
		obj = withoutPatched(status)
	}
	return r.Encoder.Encode(obj, w)
}

// patchField is how the library names the object that a patch makes.
const patchField = "patch"

var unknownField = regexp.MustCompile(`(?:unknown|duplicate) field "([^"]+)"`)

// withoutPatched returns the status of a refused patch with the fields in the place of the
// object; any other status as it is.
func withoutPatched(status *metav1.Status) *metav1.Status {
	if status.Reason != metav1.StatusReasonInvalid || status.Details == nil || len(status.Details.Causes) != 1 || status.Details.Causes[0].Field != patchField {
		return status
	}
	_, detail, found := strings.Cut(status.Details.Causes[0].Message, "strict decoding error: ")
	if !found {
		return status
	}
	brief := status.DeepCopy()
	brief.Message = detail + " (strict decoding error of the patched object)"
	brief.Details.Causes = nil
	for _, named := range unknownField.FindAllStringSubmatch(detail, -1) {
		brief.Details.Causes = append(brief.Details.Causes, metav1.StatusCause{
			Type: metav1.CauseType(field.ErrorTypeInvalid), Field: named[1], Message: named[0],
		})
	}
	return brief
}
