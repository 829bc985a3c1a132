//go:build integration

package smoke_test

// upgrade: the next revision takes the shared objects over without recreating them. Penstock
// deletes the objects that it lacks, and archives the revision before.
func upgrade(s scenario) {
	s.roll(s.revision(1).Phase("all", s.configMap("settings", "x=1"), s.configMap("legacy", "x=1"), s.deployment("web", "example.com/web:v1")))
	uid := s.Field("deployment/web", ".metadata.uid")

	s.roll(s.revision(2).Phase("all", s.configMap("settings", "x=2"), s.configMap("new", "x=2"), s.deployment("web", "example.com/web:v2")))
	s.Is("configmap/settings", ".data.x", "2")
	s.Is("configmap/new", ".data.x", "2")
	s.Is("deployment/web", ".metadata.uid", uid)
	s.Is("deployment/web", ".spec.template.spec.containers[0].image", "example.com/web:v2")
	s.Gone("configmap/legacy")
	s.Becomes("cer/upgrade-1", ".spec.lifecycleState", "Archived")
	s.Event("upgrade-1", "Archived", "revision 2 has succeeded")
	s.Condition("cer/upgrade-2", "Ready", "True")
}
