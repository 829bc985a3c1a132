package crdsafety

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// definition returns a definition with the given versions, each as YAML of its schema, or with
// further fields before it.
func definition(t *testing.T, spec string) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	out := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict([]byte("metadata: {name: lamps.example.com}\n"+spec), out); err != nil {
		t.Fatal(err)
	}
	return out
}

// served returns a served version, with a schema of spec.
func served(name, properties string) string {
	return fmt.Sprintf("  - {name: %s, served: true, storage: %t, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {%s}}}}}}\n", name, name == "v1", properties)
}

func TestCompare(t *testing.T) {
	one := func(properties string) string {
		return "spec:\n  scope: Namespaced\n  versions:\n" + served("v1", properties)
	}
	for name, c := range map[string]struct {
		live, next string
		want       []string
	}{
		"the same":                     {one("size: {type: integer}"), one("size: {type: integer}"), nil},
		"a field comes":                {one("size: {type: integer}"), one("size: {type: integer}, color: {type: string}"), nil},
		"a field goes":                 {one("size: {type: integer}, color: {type: string}"), one("size: {type: integer}"), []string{"existingFieldRemoval: removed field : v1.^.spec.color"}},
		"a type changes":               {one("size: {type: integer}"), one("size: {type: string}"), []string{`v1: ^.spec.size: type: type changed : "integer" -> "string"`}},
		"a type with alternatives":     {one("size: {type: integer, anyOf: [{minimum: 1}, {maximum: 9}]}"), one("size: {type: string, anyOf: [{minimum: 1}, {maximum: 9}]}"), []string{`v1: ^.spec.size: type: type changed : "integer" -> "string"`}},
		"an alternative changes":       {one("size: {anyOf: [{type: integer}]}"), one("size: {anyOf: [{type: integer}, {type: string}]}"), []string{`v1: ^.spec.size: unhandled: no check can tell whether this is safe: anyOf: [{"type":"integer"}] -> [{"type":"integer"},{"type":"string"}]`}},
		"words change":                 {one("size: {type: integer, description: a, anyOf: [{minimum: 1, description: a}]}"), one("size: {type: integer, description: b, anyOf: [{minimum: 1, description: b}]}"), nil},
		"words within a map change":    {one("size: {type: object, additionalProperties: {type: string, description: a}}"), one("size: {type: object, additionalProperties: {type: string, description: b}}"), nil},
		"a type within a map changes":  {one("size: {type: object, additionalProperties: {type: string}}"), one("size: {type: object, additionalProperties: {type: integer}}"), []string{`v1: ^.spec.size[*]: type: type changed : "string" -> "integer"`}},
		"a type within a list changes": {one("size: {type: array, items: {type: string}}"), one("size: {type: array, items: {type: integer}}"), []string{`v1: ^.spec.size[*]: type: type changed : "string" -> "integer"`}},
		"a name with a dot": {one("x.z: {type: string}, x: {type: object, properties: {z: {type: integer}}}"), one("x.z: {type: integer}, x: {type: object, properties: {z: {type: string}}}"),
			[]string{`v1: ^.spec.x.z: type: type changed : "integer" -> "string"`, `v1: ^.spec["x.z"]: type: type changed : "string" -> "integer"`}},
		"an enum grows":              {one("size: {type: string, enum: [a]}"), one("size: {type: string, enum: [a, b]}"), nil},
		"an enum shrinks":            {one("size: {type: string, enum: [a, b]}"), one("size: {type: string, enum: [a]}"), []string{`v1: ^.spec.size: enum: allowed enum values removed : ["b"]`}},
		"a default in another order": {one("size: {type: object, default: {a: 1, b: 2}}"), one("size: {type: object, default: {b: 2, a: 1}}"), nil},
		"a default changes":          {one("size: {type: integer, default: 1}"), one("size: {type: integer, default: 2}"), []string{`v1: ^.spec.size: default: default value changed : "1" -> "2"`}},
		"a maximum sinks":            {one("size: {type: integer, maximum: 9}"), one("size: {type: integer, maximum: 8}"), []string{"v1: ^.spec.size: maximum: maximum decreased : 9 -> 8"}},
		"a pattern":                  {one("size: {type: string}"), one("size: {type: string, pattern: a+}"), []string{`v1: ^.spec.size: unhandled: no check can tell whether this is safe: pattern: none -> "a+"`}},
		"oneOf comes":                {one("size: {type: object}"), one("size: {type: object, oneOf: [{required: [a]}]}"), []string{"v1: ^.spec.size: oneOf: oneOf constraint added when there was none previously"}},
		"oneOf goes, in part":        {one("size: {type: object, oneOf: [{required: [a]}, {required: [b]}]}"), one("size: {type: object, oneOf: [{required: [b]}]}"), []string{`v1: ^.spec.size: oneOf: allowed oneOf schemas removed: {"required":["a"]}`}},
		"oneOf in another order":     {one("size: {type: object, oneOf: [{required: [a]}, {required: [b]}]}"), one("size: {type: object, oneOf: [{required: [b]}, {required: [a], description: words}]}"), nil},
		"oneOf grows":                {one("size: {type: object, oneOf: [{required: [a]}]}"), one("size: {type: object, oneOf: [{required: [a]}, {required: [b]}]}"), []string{`v1: ^.spec.size: oneOf: allowed oneOf schemas added: {"required":["b"]}`}},
		"the scope":                  {one(""), strings.ReplaceAll(one(""), "Namespaced", "Cluster"), []string{`scope: scope changed : "Namespaced" -> "Cluster"`}},
		"a stored version goes": {"spec:\n  versions:\n" + served("v1", "") + served("v2", "") + "status: {storedVersions: [v1, v2]}", "spec:\n  versions:\n" + served("v2", ""),
			[]string{"storedVersionRemoval: stored versions removed : [v1]"}},
		"a version that is not stored goes": {"spec:\n  versions:\n" + served("v1", "") + served("v2", "") + "status: {storedVersions: [v2]}", "spec:\n  versions:\n" + served("v2", ""), nil},
		"a new version differs": {"spec:\n  versions:\n" + served("v1", "size: {type: integer}"), "spec:\n  versions:\n" + served("v1", "size: {type: integer}") + served("v2", "size: {type: string}"),
			[]string{`v1 -> v2: ^.spec.size: type: type changed : "integer" -> "string"`}},
		"a new version differs, and is converted": {"spec:\n  versions:\n" + served("v1", "size: {type: integer}"), "spec:\n  conversion: {strategy: Webhook}\n  versions:\n" + served("v1", "size: {type: integer}") + served("v2", "size: {type: string}"), nil},
		"versions differed before":                {"spec:\n  versions:\n" + served("v1", "size: {type: integer}") + served("v2", "size: {type: string}"), "spec:\n  versions:\n" + served("v1", "size: {type: integer}") + served("v2", "size: {type: string}, color: {type: string}"), nil},
		"without a schema":                        {"spec:\n  versions:\n  - {name: v1, served: true}\n", one("size: {type: integer}"), []string{`scope: scope changed : "" -> "Namespaced"`, `v1: ^: type: type changed : "" -> "object"`}},
	} {
		t.Run(name, func(t *testing.T) {
			checker, err := New(nil)
			if err != nil {
				t.Fatal(err)
			}
			live, next := definition(t, c.live), definition(t, c.next)
			untouched := [2]*apiextensionsv1.CustomResourceDefinition{live.DeepCopy(), next.DeepCopy()}
			for range 5 { // maps have no order
				var got []string
				for _, finding := range checker.Compare(live, next) {
					got = append(got, finding.String())
				}
				if diff := cmp.Diff(c.want, got); diff != "" {
					t.Fatalf("(-want +got)\n%s", diff)
				}
			}
			if diff := cmp.Diff(untouched, [2]*apiextensionsv1.CustomResourceDefinition{live, next}); diff != "" {
				t.Errorf("what was compared was changed:\n%s", diff)
			}
		})
	}
}

// TestWarnings: a downgraded check reports and does not refuse; all other checks refuse.
func TestWarnings(t *testing.T) {
	checker, err := New([]string{"type", "unhandled"})
	if err != nil {
		t.Fatal(err)
	}
	live := definition(t, "spec:\n  versions:\n"+served("v1", "a: {type: integer}, b: {type: string}, c: {type: string}"))
	warnings, err := checker.Check(live, definition(t, "spec:\n  versions:\n"+served("v1", "a: {type: string}, b: {type: string, pattern: x}, c: {type: string}")))
	if err != nil || len(warnings) != 2 {
		t.Errorf("%v, %v; want two warnings", warnings, err)
	}
	warnings, err = checker.Check(live, definition(t, "spec:\n  versions:\n"+served("v1", "a: {type: string}, b: {type: string}")))
	refused := AsError(err)
	if refused == nil || len(warnings) != 1 || err.Error() != `validating upgrade for CRD "lamps.example.com": existingFieldRemoval: removed field : v1.^.spec.c` {
		t.Errorf("%v, %v", warnings, err)
	}
	live = definition(t, "spec:\n  versions:\n"+served("v1", "")+served("v2", "")+"status: {storedVersions: [v1, v2]}")
	_, err = checker.Check(live, definition(t, "spec:\n  versions:\n"+served("v2", "")))
	if want := `kubectl patch crd lamps.example.com --subresource=status --type=merge -p '{"status":{"storedVersions":["v2"]}}'`; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("a stored version goes: %v; want what to do", err)
	}
	if _, err := New([]string{"descripton"}); err == nil || !strings.Contains(err.Error(), "want one of default, enum, existingFieldRemoval, maxItems,") {
		t.Errorf("a check of nobody: %v", err)
	}
}

// TestLong: an error has a limited number of findings.
func TestLong(t *testing.T) {
	findings := slices.Repeat([]Finding{{Check: "type", Message: "m"}}, 50)
	if got := (&Error{Name: "x", Findings: findings}).Error(); strings.Count(got, "\n") != maxFindings || !strings.HasSuffix(got, "and 30 more") {
		t.Error(got)
	}
}

// TestRealDefinitions: a real operator's definition is safe when compared with itself, and the
// comparison with its next version takes limited time.
func TestRealDefinitions(t *testing.T) {
	files, err := filepath.Glob("../../../shared/data/bundles/argocd-operator/*/manifests/argoproj.io_argocds.yaml")
	if err != nil || len(files) < 2 {
		t.Skip("no shared data")
	}
	checker, err := New(nil)
	if err != nil {
		t.Fatal(err)
	}
	var all []*apiextensionsv1.CustomResourceDefinition
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		one := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.Unmarshal(content, one); err != nil {
			t.Fatal(err)
		}
		all = append(all, one)
		if found := checker.Compare(one, one); len(found) > 0 {
			t.Errorf("%s beside itself: %v", file, found)
		}
	}
	for i := range all[1:] {
		found := checker.Compare(all[i], all[i+1])
		t.Logf("%s: %d findings", files[i+1], len(found))
		for _, finding := range found[:min(3, len(found))] {
			t.Log(finding)
		}
	}
}

// TestFieldCases compares definitions of upgrades and of a rollback that users reported.
func TestFieldCases(t *testing.T) {
	const cases = "../../../shared/data/field-cases/olm/"
	if _, err := os.Stat(cases); err != nil {
		t.Skip("no field cases beside the repository")
	}
	read := func(file string) *apiextensionsv1.CustomResourceDefinition {
		content, err := os.ReadFile(cases + file)
		if err != nil {
			t.Fatal(err)
		}
		one := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.Unmarshal(content, one); err != nil {
			t.Fatal(err)
		}
		return one
	}
	for name, c := range map[string]struct {
		live, next, file string
		stored           []string
		// refused and advice are parts of the refusal; empty for none.
		refused, advice string
	}{
		"05 upgrade":        {"05-stored-version/v1", "05-stored-version/v2", "agents.dd.example.com.yaml", []string{"v1alpha1"}, "", ""},
		"05 drops stored":   {"05-stored-version/v2", "05-stored-version/v3", "agents.dd.example.com.yaml", []string{"v1alpha1", "v2"}, "stored versions removed : [v1alpha1]", "storedVersions"},
		"05 goes on":        {"05-stored-version/v2", "05-stored-version/v3", "agents.dd.example.com.yaml", []string{"v2"}, "", ""},
		"06 newly required": {"06-new-version-required/v1", "06-new-version-required/v2", "addons.tk.example.com.yaml", []string{"v1alpha1"}, "required", ""},
		"14 upgrade":        {"14-rollback-storage-version/v1", "14-rollback-storage-version/v2", "comps.xp.example.com.yaml", []string{"v1alpha1"}, "", ""},
		"14 rollback":       {"14-rollback-storage-version/v2", "14-rollback-storage-version/v1", "comps.xp.example.com.yaml", []string{"v1alpha1", "v1beta1"}, "stored versions removed : [v1beta1]", "storedVersions"},
	} {
		t.Run(name, func(t *testing.T) {
			checker, err := New(nil)
			if err != nil {
				t.Fatal(err)
			}
			live, next := read(c.live+"/manifests/"+c.file), read(c.next+"/manifests/"+c.file)
			live.Status.StoredVersions = c.stored
			_, err = checker.Check(live, next)
			refused := AsError(err)
			switch {
			case (refused != nil) != (c.refused != ""):
				t.Errorf("got %v", err)
			case refused != nil && (!strings.Contains(refused.Error(), c.refused) || !strings.Contains(refused.Advice, c.advice)):
				t.Errorf("got %v, advice %q", refused, refused.Advice)
			}
		})
	}
}
