//go:build integration

package smoke_test

// drift: Penstock undoes a change by another user. An event and the history name the change and the
// user. Fields that users add stay.
func drift(s scenario) {
	s.roll(s.revision(1).Phase("all", s.configMap("settings", "x=1"), s.configMap("deleted", "x=1")))

	s.PatchAs("mallory", "configmap/settings", `{"data":{"x":"other","mine":"yes"}}`)
	s.Becomes("configmap/settings", ".data.x", "1")
	s.Event("drift-1", "Repaired", "ConfigMap drift/settings", ".data.x was changed by mallory")
	s.Is("configmap/settings", ".data.mine", "yes")

	s.Delete("configmap/deleted")
	s.Event("drift-1", "Recreated", "ConfigMap drift/deleted", "someone had deleted")
	s.Becomes("configmap/deleted", ".data.x", "1")
	s.Condition("cer/drift-1", "Ready", "True")
	s.Is("revisionhistory/drift", ".repairs[*].message", ".data.x was changed by mallory someone had deleted it")
}
