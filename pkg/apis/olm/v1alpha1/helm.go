package v1alpha1

import (
	"fmt"
	"strconv"
	"strings"
)

const (
	// HelmReleaseAnnotation, on a revision, names the Helm release that its extension was
	// adopted from, and the newest revision of Helm that was taken into account, as
	// <namespace>/<release>:<revision>. While Helm has a newer one, Penstock writes none of
	// the extension's objects. Of several revisions of an extension the highest counts.
	HelmReleaseAnnotation = "penstock.dev/helm-release"
	// HelmRevisionAnnotation, on a revision, is the number of the revision of Helm that has
	// its content.
	HelmRevisionAnnotation = "penstock.dev/helm-revision"
	// SupersededByAnnotation, on the Secret of a Helm release, names the extension that
	// has its objects now. What Helm notes there stays as it is.
	SupersededByAnnotation = "penstock.dev/superseded-by"
)

// HelmRelease is the value of HelmReleaseAnnotation.
type HelmRelease struct {
	Namespace, Name string
	// Revision of Helm, from 1.
	Revision int
}

// String is the value of the annotation.
func (r HelmRelease) String() string {
	return fmt.Sprintf("%s/%s:%d", r.Namespace, r.Name, r.Revision)
}

// ParseHelmRelease reads the value of HelmReleaseAnnotation.
func ParseHelmRelease(value string) (HelmRelease, error) {
	namespace, rest, found := strings.Cut(value, "/")
	name, number, numbered := strings.Cut(rest, ":")
	revision, err := strconv.Atoi(number)
	if !found || !numbered || namespace == "" || name == "" || err != nil || revision < 1 {
		return HelmRelease{}, fmt.Errorf("%q: want <namespace>/<release>:<revision>, such as shop/web:7", value)
	}
	return HelmRelease{Namespace: namespace, Name: name, Revision: revision}, nil
}
