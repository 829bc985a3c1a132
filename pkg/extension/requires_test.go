package extension

import (
	"strings"
	"testing"
)

// TestParseRequires: names with or without a range, each once. An error describes the expected
// form.
func TestParseRequires(t *testing.T) {
	got, err := ParseRequires("cert-manager>=1.15 <2 , prometheus,istio ~1.20")
	want := []Requirement{{"cert-manager", ">=1.15 <2"}, {"prometheus", ""}, {"istio", "~1.20"}}
	if err != nil || len(got) != len(want) {
		t.Fatalf("got %v, %v", got, err)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("got %q, want %q", got[i], want[i])
		}
	}
	for value, expected := range map[string]string{
		"":                                   "must begin with the name of a ClusterExtension",
		"a,":                                 "must begin with the name of a ClusterExtension",
		">=1":                                "must begin with the name of a ClusterExtension",
		"A":                                  "must begin with the name of a ClusterExtension",
		"a>=one":                             "has no range of versions behind the name",
		"a b":                                "has no range of versions behind the name",
		"a, a>=1":                            "a is there twice",
		"a" + strings.Repeat(",b", 1) + ",b": "b is there twice",
	} {
		if _, err := ParseRequires(value); err == nil || !strings.Contains(err.Error(), expected) {
			t.Errorf("%q: got %v, want %q", value, err, expected)
		}
	}
}
