//go:build integration

package smoke_test

import (
	"strings"

	"github.com/penstock-project/penstock/test/framework/drafts"
	"github.com/penstock-project/penstock/test/framework/plane"
)

// restart: Penstock is killed during a rollout. The objects keep running. The next process finishes
// the rollout, repairs changes made in between, and writes nothing else.
func restart(s scenario) {
	s.roll(s.revision(1).Phase("first", s.configMap("settings", "x=1")).Phase("second", s.deployment("web", "example.com/web:v1")))
	s.Create(s.revision(2).Gated().
		Phase("first", s.configMap("settings", "x=2"), drafts.Gate(s.name, "gate")).
		Phase("second", s.deployment("web", "example.com/web:v2")).String())
	s.Condition("cer/restart-2", "Progressing", "True", "phase first (1 of 2)", "the gate is closed")
	settings, web := s.Field("configmap/settings", ".metadata.resourceVersion"), s.Field("deployment/web", ".metadata.uid")
	others := s.At("unattended")
	untouched := others.Field("configmap/settings", ".metadata.resourceVersion")

	s.server.Kill(s.t)
	s.Is("deployment/web", ".status.availableReplicas", "1")
	s.Patch("configmap/gate", drafts.OpenGate)
	others.Delete("secret/token")
	mark := s.cluster.Audit().Mark()
	s.serve(s.top)

	s.succeeds("cer/restart-2")
	s.Is("deployment/web", ".spec.template.spec.containers[0].image", "example.com/web:v2")
	s.Is("deployment/web", ".metadata.uid", web)
	s.Is("configmap/settings", ".metadata.resourceVersion", settings)
	s.Becomes("cer/restart-1", ".spec.lifecycleState", "Archived")
	others.There("secret/token")
	others.Is("configmap/settings", ".metadata.resourceVersion", untouched)
	s.Condition("cer/unattended-1", "Ready", "True")

	// Penstock reads all other objects of the tour, and writes none of them.
	for _, r := range s.cluster.Audit().Since(mark, plane.ByAgent("penstock/"), plane.Writes()) {
		applied := strings.HasSuffix(r.UserAgent, " rollout") && !strings.Contains(r.URI, "dryRun=")
		if applied && r.Namespace != s.name && r.Namespace != others.Namespace() {
			s.t.Errorf("a restart writes: %s", r)
		}
	}
}
