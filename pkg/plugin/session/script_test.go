package session

import "testing"

// TestLegible: manifests in a message become YAML; other text stays.
func TestLegible(t *testing.T) {
	for name, tc := range map[string]struct{ message, want string }{
		"plain": {"alice cannot", "alice cannot"},
		"list": {"grant:\nkubectl apply -f - <<'EOF'\n{\"kind\":\"List\",\"items\":[{\"kind\":\"Role\",\"rules\":[{\"verbs\":[\"get\"]}]},{\"kind\":\"RoleBinding\"}]}\nEOF\nafter",
			"grant:\nkubectl apply -f - <<'EOF'\nkind: Role\nrules:\n- verbs:\n  - get\n---\nkind: RoleBinding\nEOF\nafter"},
		"one":     {"<<'EOF'\n{\"kind\":\"ClusterRole\"}\nEOF", "<<'EOF'\nkind: ClusterRole\nEOF"},
		"no JSON": {"<<'EOF'\nkind: Role\nEOF", "<<'EOF'\nkind: Role\nEOF"},
		"no end":  {"<<'EOF'\n{}", "<<'EOF'\n{}"},
		"escape":  {"<<'EOF'\n{\"a\":\"x\\nEOF\\ny\"}\nEOF", "<<'EOF'\na: |-\n  x\n  EOF\n  y\nEOF"},
	} {
		if got := Legible(tc.message); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}
