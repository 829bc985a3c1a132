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
	// UnreadableAnnotation, on an object in a list or a watch, says why its record
	// cannot be read. The object has nothing but its name then.
	UnreadableAnnotation = "penstock.dev/unreadable"
	// ReasonUnreadable is that of the condition Ready of such an object.
	ReasonUnreadable = "Unreadable"

	unreadableUID = "unreadable-"
	maxWhyBytes   = 512
)

// Unreadable is the metadata of an object whose record cannot be read: its name, as
// the key of the record has it, and why. A server makes uids of objects up, so no
// other object has one like this.
func Unreadable(name string, why error) metav1.ObjectMeta {
	sum := sha256.Sum256([]byte(name))
	return metav1.ObjectMeta{
		Name: name, UID: types.UID(unreadableUID + hex.EncodeToString(sum[:8])),
		Annotations: map[string]string{UnreadableAnnotation: text.Clip(why.Error(), maxWhyBytes)},
	}
}

// IsUnreadable tells whether the record of an object cannot be read. The content that the object
// says, but for its name, means nothing then, and its absence even less.
func IsUnreadable(object metav1.Object) bool {
	return strings.HasPrefix(string(object.GetUID()), unreadableUID)
}
