// Package clusterversion compares versions of clusters. Versions of Kubernetes and of OpenShift are
// two types, so that no code compares a version of one with a version of the other.
//
// clusterversion.go is pure. known.go caches the version of each cluster, and requests it only on
// demand.
package clusterversion

import (
	"cmp"
	"fmt"

	"k8s.io/apimachinery/pkg/util/version"
	apiversion "k8s.io/apimachinery/pkg/version"
)

// Kubernetes is a version of Kubernetes, without suffixes of distributions and builds.
type Kubernetes struct{ Major, Minor, Patch uint }

// ParseKubernetes parses v1.31.2-gke.5, 1.30+ and 1.30.
func ParseKubernetes(text string) (Kubernetes, error) {
	major, minor, patch, err := parse(text)
	return Kubernetes{major, minor, patch}, err
}

// Effective returns the version that an API server serves: v1.36.3, or 1.35 when it emulates an
// earlier minor (--emulated-version). Its answer to /version reports the emulated minor next to the
// binary's version.
func Effective(of *apiversion.Info) string {
	binary, err := ParseKubernetes(of.GitVersion)
	emulated, none := ParseKubernetes(of.EmulationMajor + "." + of.EmulationMinor)
	if err == nil && none == nil && emulated.Less(Kubernetes{Major: binary.Major, Minor: binary.Minor}) {
		return of.EmulationMajor + "." + of.EmulationMinor
	}
	return of.GitVersion
}

// Less reports whether k is lower than the other version.
func (k Kubernetes) Less(than Kubernetes) bool {
	return cmp.Or(cmp.Compare(k.Major, than.Major), cmp.Compare(k.Minor, than.Minor), cmp.Compare(k.Patch, than.Patch)) < 0
}

// String returns text such as 1.31.2.
func (k Kubernetes) String() string { return fmt.Sprintf("%d.%d.%d", k.Major, k.Minor, k.Patch) }

// OpenShift is a version of OpenShift, without suffixes of builds.
type OpenShift struct{ Major, Minor, Patch uint }

// ParseOpenShift parses 4.17, 4.17.3 and 4.18.0-rc.1.
func ParseOpenShift(text string) (OpenShift, error) {
	major, minor, patch, err := parse(text)
	return OpenShift{major, minor, patch}, err
}

// Less reports whether o is lower than the other version.
func (o OpenShift) Less(than OpenShift) bool { return Kubernetes(o).Less(Kubernetes(than)) }

// String returns text such as 4.17.3.
func (o OpenShift) String() string { return Kubernetes(o).String() }

func parse(text string) (major, minor, patch uint, err error) {
	found, err := version.ParseGeneric(text)
	if err != nil {
		return 0, 0, 0, fmt.Errorf("reading version %q: want major.minor, or major.minor.patch", text)
	}
	return found.Major(), found.Minor(), found.Patch(), nil
}
