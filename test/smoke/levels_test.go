//go:build integration

package smoke_test

import "github.com/penstock-project/penstock/test/framework/drafts"

// levels: Penstock creates a create-only default of install level 1 when all other objects are
// ready. An object that a user created earlier stays, and so do later edits.
func levels(s scenario) {
	fallback := func(name string) drafts.Object {
		return s.configMap(name, "from=revision").Annotated("release.openshift.io/create-only", "true", "release.openshift.io/install-level", "1")
	}
	s.Create(s.configMap("theirs", "from=user").String())
	before := s.Field("configmap/theirs", ".metadata.resourceVersion")
	s.Create(s.revision(1).Gated().Phase("all", fallback("theirs"), fallback("default"), drafts.Gate(s.name, "gate")).String())
	s.Condition("cer/levels-1", "Progressing", "True", "WaitingForLevel", "install level 0: 1 of 1 object not ready (ConfigMap levels/gate: the gate is closed); 2 objects of later levels wait")
	s.Absent("configmap/default")

	s.Patch("configmap/gate", drafts.OpenGate)
	s.succeeds("cer/levels-1")
	s.Is("configmap/default", ".data.from", "revision")
	s.Is("configmap/theirs", ".metadata.resourceVersion", before)

	// The default belongs to the user now: an edit is no drift.
	s.Patch("configmap/default", `{"data":{"from":"edit"}}`)
	s.Patch("configmap/gate", `{"data":{"x":"drifted"}}`)
	s.Becomes("configmap/gate", ".data.x", "1")
	s.Is("configmap/default", ".data.from", "edit")
}
