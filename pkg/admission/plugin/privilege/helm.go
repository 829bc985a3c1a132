package privilege

import (
	"slices"

	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/helmrelease"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/authz"
)

// helmOf returns the Helm release that a revision names, with revision 0. It returns the zero value
// if there is no valid name.
func helmOf(revision *olm.ClusterExtensionRevision) helmrelease.Release {
	release, err := helmrelease.Parse(revision.Annotations[v1alpha1.HelmReleaseAnnotation])
	if err != nil {
		return helmrelease.Release{}
	}
	release.Revision = 0
	return release
}

// newHelm returns the Helm release that a write adds to a revision; empty if the revision already
// named it.
func newHelm(updated, old *olm.ClusterExtensionRevision) helmrelease.Release {
	release := helmOf(updated)
	if old != nil && release == helmOf(old) {
		return helmrelease.Release{}
	}
	return release
}

// follow requires the right to list the Secrets of a Helm release that no other revision of the
// chain names, because status reveals whether Helm has a newer revision.
func (d *demand) follow(c change, now chainState) {
	if c.helm == (helmrelease.Release{}) || slices.ContainsFunc(now.others, func(other olm.ClusterExtensionRevision) bool { return helmOf(&other) == c.helm }) {
		return
	}
	d.asks = append(d.asks, ask{
		Right:   authz.Right{Verb: "list", Version: "v1", Resource: "secrets", Namespace: c.helm.Namespace},
		because: "for the Helm release " + c.helm.Name + " that the revision names",
	})
}
