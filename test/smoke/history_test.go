//go:build integration

package smoke_test

// history: the history lists all revisions of an extension, also deleted revisions, each with its
// requester and cause. A rollback creates a new revision from an earlier revision.
func history(s scenario) {
	s.roll(s.revision(1).Phase("all", s.configMap("settings", "x=1")))
	s.roll(s.revision(2).Phase("all", s.configMap("settings", "x=2")))
	s.types(0, `rollback history --to 1 --cause "v2 is slow"`)
	s.succeeds("cer/history-3")
	s.Is("configmap/settings", ".data.x", "1")
	s.Becomes("cer/history-2", ".spec.lifecycleState", "Archived")
	s.Delete("cer/history-1")
	s.Gone("cer/history-1")

	s.Says(s.types(0, "history history"), "rollback to history-1: v2 is slow", "Deleted", "Archived", "Active")
	s.Is("revisionhistory/history", ".revisions[*].requestedBy", "admin admin admin")
	// The number of a deleted revision cannot be used again.
	s.Refused(s.revision(1).Phase("all", s.configMap("settings", "x=1")).String(), "the next one is 4")
}
