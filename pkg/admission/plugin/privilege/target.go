package privilege

import (
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// using is the right to have Penstock do in another cluster whatever its kubeconfig
// there may. Rights on single objects mean nothing: the users of the host are nobody
// in that cluster, or somebody else of the same name, and its namespaces are not
// those of the host.
func using(target string) right {
	return right{verb: "use", group: "policy.penstock.dev", resource: "targets", name: target}
}

// Using is the question whether somebody may use a target cluster.
func Using(who user.Info, target string) authorizer.Attributes {
	return using(target).attributes(who)
}
