package clusterextensionrevision

import (
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/penstock-project/penstock/pkg/apis/objectmeta"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
)

const (
	// maxRestBytes bounds a revision's body without manifests. It is several times the stored
	// limit, so that validation can report the excess.
	maxRestBytes = 4 * v1alpha1.MaxRecordBytes
	// maxOtherBodyBytes bounds bodies without manifests: an object of the largest stored size, with
	// whitespace.
	maxOtherBodyBytes = 2 * v1alpha1.MaxRecordBytes
	// maxOperationBytes bounds the metadata in the operations of a JSON patch.
	maxOperationBytes = objectmeta.MaxBytes
)

// checkRest refuses a revision's body if a part other than manifests is far larger than the store
// allows. A body may be large because of its manifests. Validation would count the rest only after
// the endpoint has decoded it, computed managedFields and called admission.
func checkRest(tree map[string]any) error {
	if bytes := encodedBytes(tree["metadata"]); bytes > objectmeta.MaxBytes {
		return tooLargeBody("metadata", bytes, objectmeta.MaxBytes)
	}
	bytes := encodedBytes(map[string]any(tree))
	// Manifests that are still inline are invalid, and validation reports them.
	eachEntry(tree, func(entry map[string]any) { bytes -= encodedBytes(entry["object"]) })
	if bytes > maxRestBytes {
		return tooLargeBody("the body without manifests", bytes, maxRestBytes)
	}
	return nil
}

// checkOperations works like checkRest, for a JSON patch. Before the patch is applied, only the
// size of metadata is known.
func checkOperations(operations []map[string]any) error {
	bytes := 0
	for _, operation := range operations {
		if path, _ := operation["path"].(string); path == "/metadata" || strings.HasPrefix(path, "/metadata/") {
			bytes += encodedBytes(operation["value"])
		}
	}
	if bytes > maxOperationBytes {
		return tooLargeBody("what the patch writes to metadata", bytes, maxOperationBytes)
	}
	return nil
}

func tooLargeBody(what string, found, allowed int) error {
	return apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("%s has %d bytes in JSON, %d are allowed", what, found, allowed))
}

// encodedBytes returns the approximate length of a decoded value as stored JSON, with HTML
// characters escaped. It allocates nothing.
func encodedBytes(value any) int {
	switch value := value.(type) {
	case string:
		return stringBytes(value)
	case map[string]any:
		bytes := 2
		for name, member := range value {
			bytes += stringBytes(name) + 2 + encodedBytes(member)
		}
		return bytes
	case []any:
		bytes := 2
		for _, member := range value {
			bytes += 1 + encodedBytes(member)
		}
		return bytes
	default:
		return 4 // about the minimum: a number, a boolean, null
	}
}

func stringBytes(text string) int {
	bytes := len(text) + 2
	for i := range len(text) {
		switch c := text[i]; {
		case c == '"' || c == '\\' || c == '\n' || c == '\r' || c == '\t':
			bytes++
		case c < ' ' || c == '<' || c == '>' || c == '&':
			bytes += 5
		}
	}
	return bytes
}
