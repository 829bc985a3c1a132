//go:build integration

package smoke_test

// teardown: Penstock deletes the objects phase by phase in reverse order. It waits until each
// object is deleted.
func teardown(s scenario) {
	s.roll(s.revision(1).
		Phase("first", s.configMap("first", "x=1")).
		Phase("second", s.configMap("second", "x=1")).
		Phase("third", s.configMap("third", "x=1")))
	s.Patch("configmap/second", `{"metadata":{"finalizers":["example.com/hold"]}}`)
	s.Says(s.WouldDelete("cer/teardown-1"), "would delete 3 objects: 3 ConfigMap")

	s.Delete("cer/teardown-1")
	s.Gone("configmap/third")
	s.Condition("cer/teardown-1", "Progressing", "True", "2 objects are still to go", "ConfigMap teardown/second", "it waits for its finalizer example.com/hold")
	s.Is("configmap/first", ".metadata.deletionTimestamp", "")
	why := s.types(0, "why teardown")
	s.Says(why, "teardown-1 is being deleted", "ConfigMap teardown/second", "its finalizer example.com/hold", "It ends when its objects are deleted")
	s.Lacks(why, "by itself")

	s.Patch("configmap/second", `{"metadata":{"finalizers":null}}`)
	s.Gone("cer/teardown-1")
	s.Absent("configmap/first")
	s.Absent("configmap/second")
}
