//go:build integration

package smoke_test

import (
	"os"

	"github.com/penstock-project/penstock/test/framework/drafts"
	"github.com/penstock-project/penstock/test/framework/objects"
)

// target: a revision can name its target cluster by a Secret with a kubeconfig. The requester needs
// the right to use the target. Here the kubeconfig points to the host itself.
func target(s scenario) {
	there := s.revision(1).Phase("all", s.configMap("settings", "x=1")).With("targetRef", map[string]any{"name": s.name})
	alice, _ := s.person("alice", "* clusterextensionrevisions.olm.operatorframework.io", "* configmaps")
	alice.Refused(there.String(), "alice-target cannot use targets.policy.penstock.dev target")

	s.Create(there.String())
	s.Condition("cer/target-1", "Failing", "True", "TargetUnavailable", "there is no such Secret")
	kubeconfig, err := os.ReadFile(s.cluster.In(s.t).User("engine-there", "system:masters").Kubeconfig())
	if err != nil {
		s.t.Fatal(err)
	}
	s.At("penstock-system").Create(drafts.Object(objects.Secret("penstock-system", s.name, "kubeconfig="+string(kubeconfig))).String())
	s.succeeds("cer/target-1")
	s.Is("configmap/settings", ".data.x", "1")
}
