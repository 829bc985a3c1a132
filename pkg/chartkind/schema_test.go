package chartkind

import (
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// A ChartKind is refused when the schema lacks a status field: Penstock could never write the
// status.
func TestLacks(t *testing.T) {
	const (
		list  = "conditions: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [type], items: "
		one   = "{properties: {type: {type: string}, status: {type: string}, reason: {type: string}, message: {type: string}, lastTransitionTime: {type: string}}}}"
		stamp = ", observedGeneration: {type: integer}, reconciledVersion: {type: string}"
	)
	for name, tc := range map[string]struct{ status, want string }{
		"Whole":       {list + one + stamp, ""},
		"AnyStatus":   {list + one + "}, x-kubernetes-preserve-unknown-fields: true, x: {a: b", ""},
		"Nothing":     {"", "status.conditions with x-kubernetes-list-type: map"},
		"PlainList":   {"conditions: {type: array, items: " + one + stamp, "status.conditions with x-kubernetes-list-type: map"},
		"OtherKey":    {strings.Replace(list, "[type]", "[reason]", 1) + one + stamp, "and the key type"},
		"NoVersion":   {list + one + ", observedGeneration: {type: integer}", "status.reconciledVersion (string)"},
		"Neither":     {list + one, "status.observedGeneration (integer), status.reconciledVersion (string)"},
		"OtherType":   {list + one + ", observedGeneration: {type: string}, reconciledVersion: {type: string}", "status.observedGeneration (integer)"},
		"NoReason":    {list + strings.Replace(one, "reason: {type: string}, ", "", 1) + stamp, "status.conditions[].reason (string)"},
		"AnyItems":    {list + "{x-kubernetes-preserve-unknown-fields: true}}" + stamp, ""},
		"NoCondition": {list + "{type: object}}" + stamp, "status.conditions[].type (string), status.conditions[].status (string)"},
	} {
		t.Run(name, func(t *testing.T) {
			var schema apiextensionsv1.CustomResourceValidation
			if err := yaml.Unmarshal([]byte("openAPIV3Schema: {properties: {status: {properties: {"+tc.status+"}}}}"), &schema); err != nil {
				t.Fatal(err)
			}
			if got := Lacks(&schema); tc.want == "" && got != "" || !strings.Contains(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
	if Lacks(nil) == "" {
		t.Error("a definition without a schema has all of it")
	}
}
