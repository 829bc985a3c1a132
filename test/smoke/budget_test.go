//go:build integration

package smoke_test

import "regexp"

// budget: Penstock asks for confirmation before an upgrade deletes all objects of an extension. The
// message contains the command that acknowledges the deletion.
func budget(s scenario) {
	s.roll(s.revision(1).Phase("all", s.configMap("one", "x=1"), s.configMap("two", "x=1"), s.configMap("three", "x=1")))
	// A version without objects, made by mistake.
	s.Create(s.revision(2).Phase("all").String())
	s.Condition("cer/budget-1", "Stalled", "True", "BudgetExceeded", "is one of 3 objects", "nothing would be left of the extension")
	s.Is("configmap/one", ".data.x", "1")

	message := s.Field("cer/budget-1", `.status.conditions[?(@.type=="Stalled")].message`)
	command := regexp.MustCompile(`kubectl annotate --overwrite cer (\S+) penstock\.dev/acknowledge-deletion=(\S+)`).FindStringSubmatch(message)
	if command == nil {
		s.t.Fatalf("the message has no command: %s", message)
	}
	s.Patch("cer/"+command[1], `{"metadata":{"annotations":{"penstock.dev/acknowledge-deletion":"`+command[2]+`"}}}`)
	s.Gone("configmap/one")
	s.Gone("configmap/two")
	s.Gone("configmap/three")
}
