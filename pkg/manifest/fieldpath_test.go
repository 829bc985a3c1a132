package manifest

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseFieldPath(t *testing.T) {
	field := func(name string) FieldStep { return FieldStep{Field: name} }
	cases := map[string]struct {
		text string
		want FieldPath
		says string
	}{
		"plain":       {"spec.replicas", FieldPath{field("spec"), field("replicas")}, ""},
		"leading dot": {".spec.replicas", FieldPath{field("spec"), field("replicas")}, ""},
		"quoted":      {`metadata.annotations["a.b/c"]`, FieldPath{field("metadata"), field("annotations"), field("a.b/c")}, ""},
		"key":         {"spec.containers[name=main].image", FieldPath{field("spec"), field("containers"), {Keys: []FieldKey{{"name", "main"}}}, field("image")}, ""},
		"keys":        {"spec.ports[port=80,protocol=TCP].nodePort", FieldPath{field("spec"), field("ports"), {Keys: []FieldKey{{"port", "80"}, {"protocol", "TCP"}}}, field("nodePort")}, ""},
		"every item":  {"spec.containers[*].image", FieldPath{field("spec"), field("containers"), {}, field("image")}, ""},
		"item":        {"spec.containers[name=main]", FieldPath{field("spec"), field("containers"), {Keys: []FieldKey{{"name", "main"}}}}, ""},
		"empty":       {"", nil, "must begin with the name of a field"},
		"dot":         {".", nil, "must begin with the name of a field"},
		"two dots":    {"spec..replicas", nil, "no name"},
		"last dot":    {"spec.", nil, "no name"},
		"list first":  {"[*].a", nil, "must begin with the name of a field"},
		"open":        {"spec.containers[name=main", nil, "no ]"},
		"open quote":  {`metadata.labels["a`, nil, "must end"},
		"no key":      {"spec.containers[0]", nil, "[key=value]"},
		"stuck":       {"spec.containers[*]image", nil, "must begin with . or ["},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := ParseFieldPath(tc.text)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if (err == nil) != (tc.says == "") || err != nil && !strings.Contains(err.Error(), tc.says) {
				t.Errorf("the error says %v, want %q", err, tc.says)
			}
			if err == nil {
				again, err := ParseFieldPath(got.String())
				if diff := cmp.Diff(got, again); diff != "" || err != nil {
					t.Errorf("%q reads as another path: %v\n%s", got.String(), err, diff)
				}
			}
		})
	}
}

func FuzzParseFieldPath(f *testing.F) {
	f.Add("spec.containers[name=main].image")
	f.Add(`metadata.annotations["a.b/c"]`)
	f.Fuzz(func(t *testing.T, text string) {
		path, err := ParseFieldPath(text)
		if err != nil {
			return
		}
		again, err := ParseFieldPath(path.String())
		if err != nil || !cmp.Equal(path, again) {
			t.Errorf("%q prints as %q, which reads as %v (%v)", text, path.String(), again, err)
		}
	})
}
