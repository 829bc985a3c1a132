package author

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/penstock-project/penstock/pkg/extension"
)

// purpose separates the key of stamps from other keys derived from the same secret.
const purpose = "penstock.dev/author v1"

// Key signs stamps. All replicas of a store have the same key. It prints as a placeholder.
type Key struct{ bytes [sha256.Size]byte }

// NewKey derives the key from a store's secret.
func NewKey(secret []byte) Key {
	mac := hmac.New(sha256.New, secret)
	_, _ = io.WriteString(mac, purpose)
	return Key{bytes: [sha256.Size]byte(mac.Sum(nil))}
}

// Format implements fmt.Formatter for every verb.
func (Key) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, "[redacted]") }

// Sign sets the signature of a stamp.
func (k Key) Sign(stamp *Stamp) error {
	signature, err := k.signature(stamp)
	if err != nil {
		return err
	}
	stamp.Signature = signature
	return nil
}

func (k Key) signature(stamp *Stamp) (string, error) {
	unsigned := *stamp
	unsigned.Signature = ""
	content, err := json.Marshal(unsigned)
	if err != nil {
		return "", fmt.Errorf("encoding a stamp: %w", err)
	}
	mac := hmac.New(sha256.New, k.bytes[:])
	mac.Write(content)
	return hex.EncodeToString(mac.Sum(nil)), nil
}

// Verify returns the stamp of a stored object, or an Error if the stamp is missing or not valid. A
// returned stamp is signed by this key, for this object, its generation and its content. The caller
// checks whether it is Fresh.
func (s Subject) Verify(key Key, object *unstructured.Unstructured) (*Stamp, error) {
	stamp, err := s.Written(key, object)
	if err != nil {
		return nil, err
	}
	created, generation := object.GetCreationTimestamp().Time, object.GetGeneration()
	if object.GetDeletionTimestamp() != nil && stamp.Generation == generation-1 {
		generation-- // the start of a deletion raises the generation (k8s.io/apiserver, pkg/registry/rest: BeforeDelete)
	}
	switch {
	case stamp.Extension == "" && (stamp.Time.Sub(created).Abs() > CreationSkew):
		return nil, &Error{OtherExtension, fmt.Sprintf("its stamp was made for a creation at %s, and it was created at %s",
			stamp.Time.UTC().Format("2006-01-02T15:04:05Z"), created.UTC().Format("2006-01-02T15:04:05Z"))}
	case s.Spec && stamp.Generation != generation:
		return nil, &Error{OtherContent, fmt.Sprintf("its stamp was made for generation %d, and it has generation %d", stamp.Generation, object.GetGeneration())}
	}
	return stamp, nil
}

// Written verifies an object during its write. It ignores the fields that kube-apiserver sets
// later: the creation time and the generation.
func (s Subject) Written(key Key, object *unstructured.Unstructured) (*Stamp, error) {
	value, found := object.GetAnnotations()[extension.AuthorAnnotation]
	if !found {
		return nil, &Error{Missing, "nobody has written it since Penstock began to record authors"}
	}
	stamp, err := parse(value)
	if err != nil {
		return nil, &Error{Unreadable, fmt.Sprintf("annotation %s is not a stamp: %s", extension.AuthorAnnotation, err)}
	}
	signature, err := key.signature(stamp)
	if err != nil {
		return nil, err
	}
	if !hmac.Equal([]byte(signature), []byte(stamp.Signature)) {
		return nil, &Error{Unsigned, "its stamp is not signed by this Penstock: it is forged, or it comes from another store"}
	}
	digest, err := s.Digest(object)
	if err != nil {
		return nil, err
	}
	switch {
	case stamp.Kind != s.Mark() || stamp.Namespace != object.GetNamespace():
		return nil, &Error{OtherExtension, fmt.Sprintf("its stamp was made for an object of kind %q in namespace %q", stamp.Kind, stamp.Namespace)}
	case stamp.Extension != "" && stamp.Extension != string(object.GetUID()):
		return nil, &Error{OtherExtension, fmt.Sprintf("its stamp was made for an object with uid %s", stamp.Extension)}
	case stamp.Name != object.GetName() && (stamp.Extension != "" || !generated(stamp.Name, object)):
		return nil, &Error{OtherExtension, fmt.Sprintf("its stamp was made for %q", stamp.Name)}
	case stamp.Digest != digest:
		return nil, &Error{OtherContent, "the spec, or an annotation of Penstock, is not what its stamp was made for"}
	}
	return stamp, nil
}

// generated reports whether kube-apiserver generated the object's name from a prefix.
func generated(prefix string, object *unstructured.Unstructured) bool {
	return prefix != "" && object.GetGenerateName() == prefix && strings.HasPrefix(object.GetName(), prefix)
}
