package readiness

import (
	"fmt"

	"github.com/penstock-project/penstock/pkg/clusterversion"
)

// Target is the version to which a cluster is to be upgraded.
type Target struct {
	// Name is the target as the user wrote it.
	Name       string
	Kubernetes clusterversion.Kubernetes
	// OpenShift is the target version of OpenShift; nil for a version of Kubernetes.
	OpenShift *clusterversion.OpenShift
}

// OpenShift 4.N contains Kubernetes 1.(N+kubernetesOf4). OpenShift 5.N corresponds to 4.(N+fifth).
const (
	kubernetesOf4 = 13
	fifth         = 23
)

// ParseTarget parses 1.38 or 1.38.2 of Kubernetes, and 4.22 or 5.0 of OpenShift.
func ParseTarget(name string) (Target, error) {
	asked, err := clusterversion.ParseKubernetes(name)
	if err == nil && asked.Major == 1 && asked.Minor > 0 {
		return Target{Name: name, Kubernetes: asked}, nil
	}
	shift := clusterversion.OpenShift(asked)
	if err == nil && (asked.Major == 4 || asked.Major == 5) {
		return Target{Name: name, OpenShift: &shift, Kubernetes: clusterversion.Kubernetes{Major: 1, Minor: release(shift) + kubernetesOf4}}, nil
	}
	return Target{}, fmt.Errorf("%q is no version to upgrade to: want one of Kubernetes such as 1.38, or of OpenShift such as 4.22", name)
}

// release numbers the minors of OpenShift 4 and 5 in one sequence: 4.23 and 5.0 are the same release.
func release(version clusterversion.OpenShift) uint {
	if version.Major == 5 {
		return version.Minor + fifth
	}
	return version.Minor
}

// Next returns the next minor version.
func Next(current clusterversion.Kubernetes) Target {
	next := clusterversion.Kubernetes{Major: current.Major, Minor: current.Minor + 1}
	return Target{Name: minor(next), Kubernetes: next}
}
