//go:build integration

package smoke_test

import "github.com/penstock-project/penstock/test/framework/drafts"

// archive: a revision is archived before it succeeds. Its objects return to the revision before,
// which owns all of its objects again.
func archive(s scenario) {
	s.roll(s.revision(1).Phase("all", s.configMap("settings", "x=1")))
	s.Create(s.revision(2).Gated().
		Phase("first", s.configMap("settings", "x=2"), s.configMap("new", "x=2"), drafts.Gate(s.name, "gate")).
		Phase("second", s.configMap("later", "x=2")).String())
	s.Condition("cer/archive-2", "Progressing", "True", "the gate is closed")
	s.Is("configmap/settings", ".data.x", "2")

	s.Patch("cer/archive-2", `{"spec":{"lifecycleState":"Archived"}}`)
	s.Condition("cer/archive-2", "Ready", "True", "no object in the cluster belongs to it any more")
	s.Is("configmap/settings", ".data.x", "1")
	s.Gone("configmap/new")
	s.Absent("configmap/later")
	s.Condition("cer/archive-1", "Ready", "True")

	// A paused revision writes nothing, and its status names the differences.
	s.Patch("cer/archive-1", `{"spec":{"lifecycleState":"Paused"}}`)
	s.Condition("cer/archive-1", "Progressing", "False", "paused")
	s.Patch("configmap/settings", `{"data":{"x":"drifted"}}`)
	s.Condition("cer/archive-1", "Available", "False", "ConfigMap archive/settings", "differs from the manifest")
	s.Is("configmap/settings", ".data.x", "drifted")
	s.Patch("cer/archive-1", `{"spec":{"lifecycleState":"Active"}}`)
	s.Becomes("configmap/settings", ".data.x", "1")
}
