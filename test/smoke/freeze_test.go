//go:build integration

package smoke_test

// freeze: Penstock writes nothing in the whole cluster until a user ends the freeze. Each waiting
// revision names the user who began it.
func freeze(s scenario) {
	s.roll(s.revision(1).Phase("all", s.configMap("settings", "x=1")))
	s.Says(s.types(0, `freeze --reason "the year ends"`), "frozen by admin: the year ends")
	s.Create(s.revision(2).Phase("all", s.configMap("settings", "x=2")).String())
	s.Condition("cer/freeze-2", "Progressing", "False", "Frozen", "frozen by admin: the year ends; nothing is written")
	s.Is("configmap/settings", ".data.x", "1")
	s.Says(s.types(3, `freeze --reason "me too"`), "by admin: the year ends")

	s.Says(s.command("Of revisions", "Frozen"), "unfreeze")
	s.types(0, "unfreeze")
	s.succeeds("cer/freeze-2")
	s.Is("configmap/settings", ".data.x", "2")
}
