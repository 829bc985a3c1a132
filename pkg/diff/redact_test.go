package diff

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/penstock-project/penstock/pkg/diff/difftest"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/redact"
)

func TestSecrets(t *testing.T) {
	old := difftest.Object(t, `
apiVersion: v1
kind: Secret
metadata:
  name: s
  annotations:
    kubectl.kubernetes.io/last-applied-configuration: '{"data":{"stays":"c2VjcmV0LXN0YXlz"}}'
    note: plain
data: {stays: c2VjcmV0LXN0YXlz, changes: c2VjcmV0LW9sZA==, goes: c2VjcmV0LWdvZXM=}`)
	new := difftest.Object(t, `
apiVersion: v1
kind: Secret
metadata:
  name: s
  annotations:
    kubectl.kubernetes.io/last-applied-configuration: '{"data":{"stays":"c2VjcmV0LXN0YXlz","comes":"x"}}'
    note: other
stringData: {stays: secret-stays, changes: secret-new, comes: secret-comes}`)
	change := compare(t, old, new)
	want := []string{
		`replace .data.changes (redacted)`,
		`add .data.comes (redacted)`,
		`remove .data.goes (redacted)`,
		`replace .metadata.annotations["kubectl.kubernetes.io/last-applied-configuration"] (redacted)`,
		`replace .metadata.annotations.note "plain" -> "other"`,
	}
	if diff := cmp.Diff(want, summarise(change)); diff != "" {
		t.Errorf("keys are shown, values are not: -want, +got:\n%s", diff)
	}
	wantUnified := `--- v1/Secret/s
+++ v1/Secret/s
@@ -1,11 +1,11 @@
 apiVersion: v1
 data:
-  changes: "*** (before)"
-  goes: "***"
+  changes: "*** (after)"
+  comes: "***"
   stays: "***"
 kind: Secret
 metadata:
   annotations:
-    kubectl.kubernetes.io/last-applied-configuration: "*** (before)"
-    note: plain
+    kubectl.kubernetes.io/last-applied-configuration: "*** (after)"
+    note: other
   name: s
`
	if diff := cmp.Diff(wantUnified, change.Unified); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

// TestNothingLeaks puts a word in all positions that must be hidden, in all kinds of change, and
// searches the output for it.
func TestNothingLeaks(t *testing.T) {
	const word = "hunter2"
	encoded := base64.StdEncoding.EncodeToString([]byte(word))
	redactor, err := redact.New(
		redact.Rule{Group: "example.com", Kind: "X", Path: ".spec.users[*].password"},
		redact.Rule{Group: "example.com", Kind: "X", Path: `.spec["a.b"].*.token`},
		redact.Rule{Group: "apps", Kind: "Deployment", Path: ".spec.template.spec.containers[*].env[*].value"},
		redact.Rule{Group: "apps", Kind: "Deployment", Path: ".spec.template.spec.containers[*].image"},
	)
	if err != nil {
		t.Fatal(err)
	}
	x := "apiVersion: example.com/v1\nkind: X\nmetadata: {name: x, annotations: {kubectl.kubernetes.io/last-applied-configuration: '{\"password\":\"WORD\"}'}}\nspec: "
	cases := map[string]struct{ reason, with, without string }{
		"Data":                   {"", "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\ndata: {k: CODE}", "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\ndata: {k: eA==}"},
		"StringData":             {"", "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {k: WORD}", "apiVersion: v1\nkind: Secret\nmetadata: {name: s}"},
		"NotBase64":              {"what is malformed is hidden too", "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\ndata: {k: WORD}", "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\ndata: {}"},
		"NotStrings":             {"", "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\ndata: {k: {WORD: [WORD]}}\nstringData: {k: {a: WORD}}", "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\ndata: {k: 1}"},
		"NotAMap":                {"", "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\ndata: WORD\nstringData: [WORD]", "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\ndata: [a]"},
		"LastApplied":            {"", "apiVersion: v1\nkind: Secret\nmetadata: {name: s, annotations: {kubectl.kubernetes.io/last-applied-configuration: '{\"stringData\":{\"k\":\"WORD\"}}'}}", "apiVersion: v1\nkind: Secret\nmetadata: {name: s}"},
		"OtherTools":             {"", "apiVersion: v1\nkind: Secret\nmetadata: {name: s, annotations: {example.com/state: ' {\"k\":\"WORD\"}'}}", "apiVersion: v1\nkind: Secret\nmetadata: {name: s}"},
		"Embedded":               {"a Secret in a template is a Secret", "apiVersion: example.com/v1\nkind: Template\nmetadata: {name: t}\nobjects: [{apiVersion: v1, kind: Secret, metadata: {name: s}, stringData: {k: WORD}}]", "apiVersion: example.com/v1\nkind: Template\nmetadata: {name: t}\nobjects: [{apiVersion: v1, kind: Secret, metadata: {name: s}, stringData: {k: x}}]"},
		"LastAppliedOfATemplate": {"", "apiVersion: example.com/v1\nkind: Template\nmetadata: {name: t, annotations: {kubectl.kubernetes.io/last-applied-configuration: '{\"objects\":[{\"kind\":\"Secret\",\"stringData\":{\"k\":\"WORD\"}}]}'}}", "apiVersion: example.com/v1\nkind: Template\nmetadata: {name: t}"},
		"Field":                  {"", x + "{users: [{name: a, password: WORD}], a.b: {c: {token: CODE}}}", x + "{users: [{name: a, password: z}, {name: b}], a.b: {c: {token: z}}}"},
		"WholeSubtree":           {"all behind the path is hidden", x + "{users: [{name: a, password: {value: WORD}}]}", x + "{users: [{name: a}]}"},
		"AnotherType":            {"where the path cannot go on, what is there is hidden", x + "{users: WORD, a.b: [WORD]}", x + "{users: {name: WORD}, a.b: {c: WORD}}"},
		"Reordered":              {"", x + "{users: [{name: a, password: WORD}, {name: b, password: WORD}]}", x + "{users: [{name: b, password: WORD}, {name: a, password: WORD}]}"},
		"WholeIsAdded":           {"", x + "{users: [{name: a, password: WORD}]}", x + "{}"},
		"Notes":                  {"a note has no hidden values either", deploymentHead + "      - {name: a, image: WORD, env: [{name: RELATED_IMAGE_X, value: WORD}]}", deploymentHead + "      - {name: a, image: z, env: [{name: RELATED_IMAGE_X, value: z}]}"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			fill := strings.NewReplacer("WORD", word, "CODE", encoded)
			with, without := difftest.Object(t, fill.Replace(tc.with)), difftest.Object(t, fill.Replace(tc.without))
			options := Options{Schema: difftest.Builtin(t), Redactor: redactor, Limits: unlimited()}
			for _, change := range []Change{
				Compare(t.Context(), with, without, options), Compare(t.Context(), without, with, options),
				Compare(t.Context(), nil, with, options), Compare(t.Context(), with, nil, options),
			} {
				if change.Kind == Unchanged {
					t.Error("found no change")
				}
				output, err := json.Marshal(change)
				if err != nil {
					t.Fatal(err)
				}
				if bytes.Contains(output, []byte(word)) || bytes.Contains(output, []byte(encoded)) {
					t.Errorf("%s: %s", tc.reason, output)
				}
			}
		})
	}
}

// TestIdentityHides: an object with the identity of a Secret is hidden, even if its bytes have
// another kind.
func TestIdentityHides(t *testing.T) {
	ref := manifest.Ref{ID: manifest.ID{Kind: "Secret", Name: "s"}, Version: "v1"}
	for _, content := range []string{`{"data":{"k":"hunter2"}}`, `{"kind":"Other","apiVersion":"v2","stringData":{"k":"hunter2"}}`} {
		change := Compare(t.Context(), &manifest.Object{Ref: ref, JSON: []byte(`{}`)}, &manifest.Object{Ref: ref, JSON: []byte(content)}, Options{})
		output, err := json.Marshal(change)
		if err != nil {
			t.Fatal(err)
		}
		if change.Kind != Changed || bytes.Contains(output, []byte("hunter2")) {
			t.Errorf("got %s", output)
		}
	}
}

func TestSecretSizesAreNotCounted(t *testing.T) {
	secret := difftest.Object(t, "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {k: v}")
	report := Revisions(t.Context(), nil, []manifest.Object{*secret}, Options{})
	if report.Summary.NewBytes != 0 || report.Summary.Added != 1 {
		t.Errorf("got %+v, want one object of no size", report.Summary)
	}
}
