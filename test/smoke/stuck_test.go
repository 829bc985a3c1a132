//go:build integration

package smoke_test

import (
	"path/filepath"

	"github.com/penstock-project/penstock/test/framework/plane"
)

// stuck: the third version of the example never gets its image. Penstock names the cause, and the
// version before keeps running. A rollback returns to it. At the end everything is deleted.
func stuck(s scenario) {
	root, err := plane.Root()
	if err != nil {
		s.t.Fatal(err)
	}
	version := func(name string) string {
		return filepath.Join(root, "artifacts", "examples", "lighthouse", name) + " --name lighthouse --version " + name + " --yes"
	}
	there := s.At("lighthouse-system")
	s.Says(s.runs(0, "deploy "+version("v1.1.0")), "✓ lighthouse-1 v1.1.0: Active, 15 of 15 objects available")

	s.Says(s.runs(124, "deploy "+version("v1.2.0-stuck")+" --timeout 1s"), "lighthouse-2 continues by itself", "kubectl penstock rollback lighthouse", "not done within 1s")
	s.Condition("cer/lighthouse-2", "Progressing", "True", "RollingOut", "phase deploy", "Deployment.apps lighthouse-system/lighthouse-controller", "1 of 2 replicas updated")
	s.Says(s.types(0, "status lighthouse"), "lighthouse-2 v1.2.0-stuck: Active", "Deployment lighthouse-system/lighthouse-controller: waiting: 1 of 2 replicas updated", "· lighthouse-1 v1.1.0: Active", "14 superseded")
	s.Says(s.types(0, "why lighthouse"), "lighthouse-2 is rolling out, phase deploy", "lighthouse-controller", "It continues by itself.")

	s.Says(s.types(0, `rollback lighthouse --cause "lighthouse-2 cannot get its image"`),
		"lighthouse-2 → lighthouse-3", "registry.invalid/lighthouse/controller:v1.2.0 -> registry.example.com/lighthouse/controller:v1.1.0", "✓ lighthouse-3 v1.1.0: Active, 15 of 15 objects available")
	there.Is("deployment/lighthouse-controller", ".spec.template.spec.containers[0].image", "registry.example.com/lighthouse/controller:v1.1.0")
	s.Becomes("cer/lighthouse-2", ".spec.lifecycleState", "Archived")

	for _, revision := range []string{"cer/lighthouse-3", "cer/lighthouse-2", "cer/lighthouse-1"} {
		s.Delete(revision)
		s.Gone(revision)
	}
	s.Absent("crd/beacons.lighthouse.example.com")
	s.Absent("namespace/lighthouse-system")
	s.Absent("validatingwebhookconfiguration/lighthouse-webhook")
}
