package objectmeta

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/penstock-project/penstock/pkg/text"
)

const (
	// UnreadableAnnotation, on an object in a list or a watch, is the reason why its record cannot
	// be read. Such an object has only a name.
	UnreadableAnnotation = "penstock.dev/unreadable"
	// ReasonUnreadable is the reason of the condition Ready of such an object.
	ReasonUnreadable = "Unreadable"

	unreadableUID = "unreadable-"
	maxWhyBytes   = 512
)

// Unreadable returns metadata for an object whose record cannot be read: the name from the record's
// key, the reason, and a uid. The server chooses the uids of its objects, so no other object has
// this uid.
func Unreadable(name string, why error) metav1.ObjectMeta {
	sum := sha256.Sum256([]byte(name))
	return metav1.ObjectMeta{
		Name: name, UID: types.UID(unreadableUID + hex.EncodeToString(sum[:8])),
		Annotations: map[string]string{UnreadableAnnotation: text.Clip(why.Error(), maxWhyBytes)},
	}
}

// IsUnreadable reports whether the record of an object cannot be read. Its content, except for the
// name, then has no meaning, and missing content has none either.
func IsUnreadable(object metav1.Object) bool {
	return strings.HasPrefix(string(object.GetUID()), unreadableUID)
}
