//go:build integration

package smoke_test

import "strings"

// refuse: Penstock refuses bad input. The message has the field, the found value and the allowed
// values. The content of a revision is immutable, and a dry-run stores nothing.
func refuse(s scenario) {
	settings := s.configMap("settings", "x=1")
	s.Refused(s.revision(1).Phase("all", settings, settings).String(),
		"spec.phases[0].objects[1]", `Duplicate value: "ConfigMap refuse/settings"`, "an object can be in a revision only once")
	s.Refused(s.revision(1).Phase("all", settings).With("lifecycleState", "Sleeping").String(), "spec.lifecycleState", `supported values: "Active"`)
	s.Refused(strings.Replace(s.revision(1).Phase("all", settings).String(), `"apiVersion": "v1",`, "", 1),
		"spec.phases[0].objects[0].object.apiVersion: Required value")
	if err := s.DryRun(s.revision(1).Phase("all", settings).String()); err != nil {
		s.t.Errorf("a dry-run of a good revision: %v", err)
	}
	s.Absent("cer/refuse-1")

	s.roll(s.revision(1).Phase("all", settings))
	s.Denied(s.TryApply(s.revision(1).Phase("all", s.configMap("settings", "x=2")).String()),
		"objects[0] (v1 ConfigMap refuse/settings) has another manifest")
	s.Is("configmap/settings", ".data.x", "1")
	s.Refused(s.revision(1).Phase("all", settings).String(), "already exists")
}
