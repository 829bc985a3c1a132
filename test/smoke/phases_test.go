//go:build integration

package smoke_test

import "github.com/penstock-project/penstock/test/framework/drafts"

// phases: the second phase waits for the probes of the first phase. The status names the failing
// probe.
func phases(s scenario) {
	s.Create(s.revision(1).Gated().
		Phase("first", drafts.Gate(s.name, "gate"), s.configMap("beside", "x=1")).
		Phase("second", s.configMap("later", "x=1")).String())
	s.Condition("cer/phases-1", "Progressing", "True", "phase first (1 of 2)", "ConfigMap phases/gate", "the gate is closed")
	s.Is("configmap/beside", ".data.x", "1")
	s.Absent("configmap/later")

	s.Patch("configmap/gate", drafts.OpenGate)
	s.succeeds("cer/phases-1")
	s.Is("configmap/later", ".data.x", "1")
	s.Is("cer/phases-1", ".status.phases[*].state", "Available Available")
}
