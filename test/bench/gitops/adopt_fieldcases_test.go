package gitops

import (
	"os"
	"path/filepath"
	"strings"
)

// fieldCases has inputs from user reports, outside of the repository.
const fieldCases = "../../../../shared/data/field-cases/apply"

// recorded: releases whose records no API server would accept unchanged. The namespace is the
// namespace in the records.
func recorded(s *site) {
	for _, file := range []string{"09-null-annotation/live.json", "09-null-annotation/chart-recs.json", "10-adopt-shapes/live.json", "10-adopt-shapes/recs.json"} {
		text, err := os.ReadFile(filepath.Join(fieldCases, file))
		if os.IsNotExist(err) {
			s.t.Skip("no field cases beside the repository")
		}
		if err != nil {
			s.t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if strings.Contains(line, `"name": "hqty"`) {
				continue // its request exceeds its limit
			}
			s.MustKubectlInput(line, "create", "--field-manager=helm", "--validate=false", "-f", "-")
		}
	}
	for release, want := range map[string]struct {
		flags []string
		// says is part of the output. refused is true if the adoption is refused.
		says    string
		refused bool
	}{
		"hold1": {says: "hold1-1    Archived   superseded"},
		"hold2": {says: "hold2-1    Archived   superseded"},
		"hkey":  {says: `key "app" is already on line 8: the last value counts, as with Helm`},
		"hnull": {says: "fb/hnull can be adopted"},
		"hcns":  {says: "ClusterRole.rbac.authorization.k8s.io hcns"},
		"hlist": {says: "ConfigMap fb/hlist"},
		"hsec":  {says: "Secret fb/hsec"},
		"hpdb":  {says: "helm mapkubeapis hpdb -n fb", refused: true},
		"hdup":  {says: "is the port of item 0", flags: []string{"--overwrite"}},
	} {
		s.release = release
		out := s.adopt(append([]string{"--dry-run"}, want.flags...)...)
		said := out.Stdout + out.Stderr
		if (out.ExitCode != 0) != want.refused || !strings.Contains(said, want.says) {
			s.t.Errorf("%s: want %q, refused %t:\n%s", release, want.says, want.refused, out)
		}
	}
}
