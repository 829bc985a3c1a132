//go:build integration

package smoke_test

// orphan: a deletion with --cascade=orphan leaves the objects running, without Penstock's marks.
func orphan(s scenario) {
	s.roll(s.revision(1).Phase("all", s.configMap("settings", "x=1"), s.deployment("web", "example.com/web:v1")))
	uid := s.Field("deployment/web", ".metadata.uid")
	s.Orphan("cer/orphan-1")
	s.Gone("cer/orphan-1")
	s.Is("deployment/web", ".metadata.uid", uid)
	s.Is("deployment/web", ".status.availableReplicas", "1")
	for _, object := range []string{"configmap/settings", "deployment/web"} {
		s.Lacks(s.Field(object, ".metadata"), "penstock")
	}
	// The orphaned objects now collide like objects of any other owner.
	s.Create(s.revision(2).Phase("all", s.configMap("settings", "x=2")).String())
	s.Condition("cer/orphan-2", "Failing", "True", "exists already")
}
