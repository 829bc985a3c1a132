package rollout

import (
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/redact"
)

// TestImmutable: the remedy is told for a field that cannot change, and not for a
// value that only talks about such things.
func TestImmutable(t *testing.T) {
	spec := field.NewPath("spec")
	cases := map[string]struct {
		reason string
		kind   string
		cause  *field.Error
		want   bool
	}{
		"job template": {"its validation says so", "Job", field.Invalid(spec.Child("template"), "x: y", "field is immutable"), true},
		"clusterIP":    {"in other words", "Service", field.Invalid(spec.Child("clusterIPs").Index(0), "10.0.0.1", "may not change once set"), true},
		"statefulset":  {"in other words again", "StatefulSet", field.Forbidden(spec, "updates to statefulset spec for fields other than 'replicas' are forbidden"), true},
		"configMap":    {"it was made so", "ConfigMap", field.Forbidden(field.NewPath("data"), "field is immutable when `immutable` is set"), true},
		"secret":       {"the words are not there", "Secret", field.Forbidden(field.NewPath("data"), "field is immutable when `immutable` is set"), true},
		"secret type":  {"nobody can tell", "Secret", field.Invalid(field.NewPath("type"), "a", "field is immutable"), false},
		"value":        {"the value has the words", "ConfigMap", field.Invalid(spec, "the field is immutable", "must be short"), false},
		"not allowed":  {"another kind of cause", "Pod", field.NotSupported(spec, "immutable", []string{"a"}), false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			ref := manifest.Ref{ID: manifest.ID{Kind: tc.kind, Name: "x"}}
			err := apierrors.NewInvalid(schema.GroupKind{Kind: tc.kind}, "x", field.ErrorList{tc.cause})
			var secretsOnly *redact.Redactor
			got := Classify(ref, secretsOnly.Error(ref.ID, err))
			if told := strings.Contains(got.Message, remedyImmutable); told != tc.want {
				t.Errorf("%s: told %t, want %t: %s", tc.reason, told, tc.want, got.Message)
			}
		})
	}
}
