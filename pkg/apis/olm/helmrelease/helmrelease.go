// Package helmrelease reads and writes the annotation that names the Helm release from which an
// extension was adopted.
package helmrelease

import (
	"fmt"
	"strconv"
	"strings"
)

// Release is the value of v1alpha1.HelmReleaseAnnotation.
type Release struct {
	Namespace, Name string
	// Revision is the number of the Helm revision, 1 or more.
	Revision int
}

// String returns the value of the annotation.
func (r Release) String() string {
	return fmt.Sprintf("%s/%s:%d", r.Namespace, r.Name, r.Revision)
}

// Parse reads the value of the annotation.
func Parse(value string) (Release, error) {
	namespace, rest, found := strings.Cut(value, "/")
	name, number, numbered := strings.Cut(rest, ":")
	revision, err := strconv.Atoi(number)
	if !found || !numbered || namespace == "" || name == "" || err != nil || revision < 1 {
		return Release{}, fmt.Errorf("%q: want <namespace>/<release>:<revision>, such as shop/web:7", value)
	}
	return Release{Namespace: namespace, Name: name, Revision: revision}, nil
}
