//go:build integration

package smoke_test

import "path/filepath"

// archives: an extension is exported with its history, and imported into a store without it. The
// objects do not change.
func archives(s scenario) {
	s.roll(s.revision(1).Phase("all", s.configMap("settings", "x=1"), s.configMap("legacy", "x=1")))
	s.roll(s.revision(2).Phase("all", s.configMap("settings", "x=2"), s.secret("token", "password=hunter2")))
	s.Becomes("cer/archives-1", ".spec.lifecycleState", "Archived")
	uid := s.Field("configmap/settings", ".metadata.uid")
	file := filepath.Join(s.t.TempDir(), "archive.tar.zst")
	verb := func(args ...string) string {
		s.t.Helper()
		out := s.program.Run(s.t, "", append(args, "--kubeconfig", s.cluster.Kubeconfig())...)
		if out.ExitCode != 0 {
			s.t.Fatal(out)
		}
		return out.Stdout + out.Stderr
	}
	s.Says(verb("export", "--extension=archives", "-o", file), "CAUTION: the archive has", "in clear text")

	// Penstock forgets the extension. The objects keep running.
	s.Orphan("cer/archives-2")
	s.Gone("cer/archives-2")
	s.Orphan("cer/archives-1")
	s.Gone("cer/archives-1")
	s.Delete("revisionhistory/archives")

	s.Says(verb("import", file, "--check"), "1 extension can be imported; nothing was written")
	s.Absent("cer/archives-2")
	s.Says(verb("import", file), "archives: 2 revisions", "1 extension imported")
	s.Is("cer/archives-1", ".spec.lifecycleState", "Archived")
	s.Is("revisionhistory/archives", ".revisions[*].name", "archives-1 archives-2")
	s.Is("configmap/settings", ".metadata.uid", uid)
}
