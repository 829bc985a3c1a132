//go:build integration

package smoke_test

// diff: the changes of a revision, first in words, and the differences from the cluster.
func diff(s scenario) {
	s.roll(s.revision(1).Phase("all", s.configMap("settings", "x=1"), s.configMap("legacy", "x=1"), s.deployment("web", "example.com/web:v1")))
	s.roll(s.revision(2).Phase("all", s.configMap("settings", "x=1"), s.secret("token", "password=hunter2"), s.deployment("web", "example.com/web:v2")))
	shown := s.types(1, "diff diff-1..diff-2")
	s.Says(shown, "diff-1 → diff-2: 1 added, 1 changed, 1 removed, 1 unchanged",
		"image of container main", "example.com/web:v1 -> example.com/web:v2", "Secret diff/token", "ConfigMap diff/legacy")
	s.Lacks(shown, "hunter2", "aHVudGVyMg")
	s.Says(s.types(1, "diff diff-1..diff-2 -o markdown"), "### diff-1 → diff-2", "```diff", "+      - image: example.com/web:v2")
	s.Is("revisiondiff/diff-1..diff-2", ".summary.changed", "1")

	s.Says(s.types(0, "diff diff --live --stat"), "live → diff-2: 0 added, 0 changed, 0 removed")
	s.Patch("cer/diff-2", `{"spec":{"lifecycleState":"Paused"}}`)
	s.Condition("cer/diff-2", "Progressing", "False", "paused")
	s.Patch("configmap/settings", `{"data":{"x":"drifted"}}`)
	s.Says(s.types(1, "diff diff --live"), "live → diff-2: 0 added, 1 changed", "-  x: drifted", "+  x: \"1\"")
}
