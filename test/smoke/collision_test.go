//go:build integration

package smoke_test

// collision: an object of another owner blocks its phase and stays unchanged. A revision that asks
// for adoption takes the object over.
func collision(s scenario) {
	s.Create(s.configMap("taken", "x=theirs").String())
	uid := s.Field("configmap/taken", ".metadata.uid")
	s.Create(s.revision(1).Phase("all", s.configMap("free", "x=1"), s.configMap("taken", "x=1")).String())
	s.Condition("cer/collision-1", "Failing", "True", "ConfigMap collision/taken", "exists already", "was not made by this extension")
	s.Condition("cer/collision-1", "Stalled", "True", "Collision")
	s.Absent("configmap/free")
	s.Is("configmap/taken", ".data.x", "theirs")

	s.roll(s.revision(2).Phase("all", s.configMap("free", "x=2"), s.configMap("taken", "x=2").Protected("IfNoController")))
	s.Is("configmap/taken", ".data.x", "2")
	s.Is("configmap/taken", ".metadata.uid", uid)
	s.Event("collision-2", "Adopted", "ConfigMap collision/taken")
}
