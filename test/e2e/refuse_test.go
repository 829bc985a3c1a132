//go:build integration

package e2e_test

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/penstock-project/penstock/test/framework/poll"
)

// digestsOf returns a revision in the form that a user would store: name, number and digests.
func digestsOf(w sharedPlane, read string) string {
	w.t.Helper()
	var revision map[string]any
	if err := json.Unmarshal([]byte(read), &revision); err != nil {
		w.t.Fatalf("%v:\n%s", err, read)
	}
	revision["metadata"] = map[string]any{"name": revision["metadata"].(map[string]any)["name"]}
	delete(revision, "status")
	delete(revision["spec"].(map[string]any), "previous")
	raw, err := json.Marshal(revision)
	if err != nil {
		w.t.Fatal(err)
	}
	return string(raw)
}

// digestsOnly: a digest is enough for content that another revision of the chain has.
func digestsOnly(w sharedPlane) {
	w.roll(small("digests", 1))
	first := digestsOf(w, w.MustKubectl("get", "cer", "digests-1", "-o", "json"))
	next := func(number int) string {
		return strings.NewReplacer("digests-1", fmt.Sprintf("digests-%d", number), `"revision":1`, fmt.Sprintf(`"revision":%d`, number)).Replace(first)
	}
	w.MustKubectlInput(next(2), "create", "-f", "-")
	w.succeeded("digests-2")
	w.says(w.MustKubectl("get", "cer", "digests-2", "--subresource=manifests", "-o", "yaml"), `number: "1"`, "hunter2")
	if one, two := w.read(".spec.phases", "cer", "digests-1"), w.read(".spec.phases", "cer", "digests-2"); one != two {
		w.t.Errorf("the content differs:\n%s\n%s", one, two)
	}
	w.value("Archived", ".spec.lifecycleState", "cer/digests-1")
	w.value("True", `.status.conditions[?(@.type=="Ready")].status`, "cer/digests-2")
	w.says(w.read(".data.number", "configmap", "digests-first", "--namespace=default"), "1")

	// A digest of another extension's content is refused.
	w.refused(strings.ReplaceAll(next(3), "digests-3", "thief-3"), []string{"create", "-f", "-"},
		"spec.phases[0].objects[0].digest", "no revision of this extension holds v1 ConfigMap default/digests-first with this digest")
	// A digest that no revision has is refused.
	w.refused(strings.Replace(next(3), "sha256:", "sha256:0000", 1), []string{"create", "-f", "-"}, "spec.phases[0].objects[0].digest")
}

// refusals: error messages are short and name field, value and allowed values.
func refusals(w sharedPlane) {
	replaced := func(old, new string) string {
		whole := small("refused", 2).String()
		if !strings.Contains(whole, old) {
			w.t.Fatalf("%q is not in the draft", old)
		}
		return strings.Replace(whole, old, new, 1)
	}
	many := small("refused", 2)
	for n := range 63 {
		many = many.Phase(fmt.Sprintf("phase-%d", n))
	}
	probe := func(assertion map[string]any) string {
		return small("refused", 2).With("progressionProbes", []any{map[string]any{
			"selector": map[string]any{"groupKind": map[string]any{"kind": "ConfigMap"}}, "assertions": []any{assertion},
		}}).String()
	}
	for name, tc := range map[string]struct {
		input string
		want  []string
	}{
		"no kind":        {replaced(`"kind": "ConfigMap",`, ""), []string{"spec.phases[0].objects[0].object.kind: Required value: is missing"}},
		"no apiVersion":  {replaced(`"apiVersion": "v1",`, ""), []string{"spec.phases[0].objects[0].object.apiVersion: Required value: is missing"}},
		"no name":        {replaced(`"name": "refused-first",`, ""), []string{"spec.phases[0].objects[0].object.metadata.name: Required value: is missing"}},
		"not an object":  {replaced(`"object": {`, `"object": 7, "x": {`), []string{"spec.phases[0].objects[0].object"}},
		"listed twice":   {replaced("refused-second", "refused-first"), []string{`Duplicate value: "ConfigMap default/refused-first": is also at spec.phases[0].objects[0]: an object can be in a revision only once`}},
		"phase twice":    {replaced(`"name": "deploy"`, `"name": "configuration"`), []string{`spec.phases[1].name: Duplicate value: "configuration"`}},
		"bad phase":      {replaced(`"name": "deploy"`, `"name": "De ploy"`), []string{`spec.phases[1].name: Invalid value: "De ploy"`}},
		"other name":     {small("refused", 2).Named("refused-3").String(), []string{`spec.revision: Invalid value: 2: must be 3, the number at the end of metadata.name "refused-3"`}},
		"no number":      {small("refused", 2).Named("refused").String(), []string{"must be <extension>-<revision>, such as argocd-2"}},
		"leading zero":   {small("refused", 2).Named("refused-02").String(), []string{"metadata.name"}},
		"long name":      {small("refused", 2).Named(strings.Repeat("x", 53) + "-2").String(), []string{"metadata.name", "52"}},
		"zero":           {small("refused", 0).String(), []string{"spec.revision: Invalid value: 0: must be from 1 to 2147483647"}},
		"65 phases":      {many.String(), []string{"spec.phases: Too many: 65: a revision has at most 64 phases"}},
		"state":          {small("refused", 2).With("lifecycleState", "Sleeping").String(), []string{`spec.lifecycleState: Unsupported value: "Sleeping": supported values: "Active", "Paused", "Archived"`}},
		"protection":     {small("refused", 2).With("collisionProtection", "Always").String(), []string{`spec.collisionProtection: Unsupported value: "Always"`}},
		"label":          {replaced(`"name": "refused-2"`, `"name": "refused-2", "labels": {"penstock.dev/chain": "thief"}`), []string{"metadata.labels", "penstock.dev/chain"}},
		"bad expression": {probe(map[string]any{"cel": map[string]any{"expression": "self.data."}}), []string{"spec.progressionProbes[0].assertions[0].cel.expression"}},
		"no assertion":   {probe(map[string]any{}), []string{"spec.progressionProbes[0].assertions[0]"}},
		"owner":          {replaced(`"name": "refused-first",`, `"name": "refused-first", "ownerReferences": [{"apiVersion":"v1","kind":"ConfigMap","name":"x","uid":"y"}],`), []string{"spec.phases[0].objects[0].object.metadata.ownerReferences"}},
		"type":           {replaced(`"revision": 2`, `"revision": "two"`), []string{"cannot be handled as a ClusterExtensionRevision", "spec.revision"}},
	} {
		out := w.KubectlInput(tc.input, "create", "--validate=ignore", "-f", "-")
		if out.ExitCode == 0 {
			w.t.Errorf("%s: not refused: %s", name, out)
			w.MustKubectl("delete", "cer", "--selector=penstock.dev/chain=refused", poll.TimeoutFlag)
		}
		for _, want := range tc.want {
			if !strings.Contains(out.Stderr, want) {
				w.t.Errorf("%s: %q is not in:\n%s", name, want, out.Stderr)
			}
		}
		if len(out.Stderr) > 1000 {
			w.t.Errorf("%s: the message is too long with %d characters:\n%s", name, len(out.Stderr), out.Stderr)
		}
	}
	w.absent("configmap", "refused-first", "--namespace=default")
}

// unknownFields: kubectl by default asks the server to refuse unknown fields.
func unknownFields(w sharedPlane) {
	d := small("unknown", 1).With("colour", "red").String()
	// kubectl reads kube-apiserver's OpenAPI to find out whether the server supports that.
	// kube-apiserver merges Penstock's OpenAPI with a delay.
	w.eventually(func() (string, string) {
		out := w.KubectlInput(d, "create", "--dry-run=server", "-f", "-")
		return out.Stderr, out.Stdout
	}, func(stderr string) bool { return strings.Contains(stderr, "strict decoding error") })
	w.refused(d, []string{"create", "-f", "-"}, `strict decoding error: unknown field "spec.colour"`)
	w.refused(d, []string{"apply", "--server-side", "-f", "-"}, "spec.colour")
	out := w.KubectlInput(d, "create", "--validate=warn", "-f", "-")
	if out.ExitCode != 0 {
		w.t.Error(out)
	}
	w.says(out.Stderr, `Warning: unknown field "spec.colour"`)
	// Fields of a manifest are always checked against the schema of its kind. kubectl's option has
	// no effect, because server-side apply has no such option.
	inside := small("unknown", 2).Phase("more", object{"apiVersion": "v1", "kind": "ConfigMap", "colour": "red",
		"metadata": map[string]any{"name": "unknown-third", "namespace": "default"}})
	w.refused(inside.String(), []string{"create", "--validate=ignore", "-f", "-"}, "spec.phases[2].objects[0].object.colour", "ConfigMap default/unknown-third")
	w.MustKubectl("delete", "cer", "unknown-1", poll.TimeoutFlag)
}
