package mapping

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/penstock-project/penstock/pkg/chartkind"
	"github.com/penstock-project/penstock/pkg/text"
)

func resource(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
		t.Fatal(err)
	}
	return object
}

func spec(change func(*chartkind.Spec)) *chartkind.Spec {
	out := &chartkind.Spec{
		Resource:       chartkind.ResourceKind{Group: "lights.example.com", Version: "v1", Kind: "Lamp"},
		Chart:          chartkind.Chart{Ref: "registry.example.com/charts/lamp:1.0.0"},
		ServiceAccount: chartkind.ServiceAccount{Namespace: "lights", Name: "lamps"},
	}
	if change != nil {
		change(out)
	}
	return out
}

const lamp = `{apiVersion: lights.example.com/v1, kind: Lamp, metadata: {name: hall, namespace: house, generation: 3, labels: {floor: "2"}},
  spec: {size: 3, bulbs: [{watts: 40}, {watts: 60}], colour: null, big: 12345678901}, status: {burning: true}}`

func TestValues(t *testing.T) {
	path := func(to, from string) chartkind.Value { return chartkind.Value{To: to, From: from} }
	by := func(to, expression string) chartkind.Value {
		return chartkind.Value{To: to, Expression: expression}
	}
	for name, tc := range map[string]struct {
		reason    string
		values    []chartkind.Value
		overrides map[string]any
		inputs    Inputs
		want      map[string]any
		problem   string
	}{
		"Path":       {reason: "a field", values: []chartkind.Value{path("a.b", "spec.size")}, want: map[string]any{"a": map[string]any{"b": 3.0}}},
		"Object":     {reason: "everything below a field", values: []chartkind.Value{path("a", "metadata.labels")}, want: map[string]any{"a": map[string]any{"floor": "2"}}},
		"Absent":     {reason: "the chart has its default", values: []chartkind.Value{path("a", "spec.none"), path("b", "spec.size.none"), path("c", "spec.colour")}, want: map[string]any{}},
		"Large":      {reason: "numbers stay as they are", values: []chartkind.Value{path("a", "spec.big")}, want: map[string]any{"a": 12345678901.0}},
		"Expression": {reason: "computed", values: []chartkind.Value{by("watts", "object.spec.bulbs.map(b, b.watts)")}, want: map[string]any{"watts": []any{40.0, 60.0}}},
		"Null":       {reason: "an expression sets nothing", values: []chartkind.Value{by("a", "has(object.spec.none) ? object.spec.none : null")}, want: map[string]any{}},
		"Status":     {reason: "status does not decide", values: []chartkind.Value{by("a", "has(object.status)")}, want: map[string]any{"a": false}},
		"Generation": {reason: "nor does what the host counts", values: []chartkind.Value{by("a", "has(object.metadata.generation)")}, want: map[string]any{"a": false}},
		"Inputs":     {reason: "what else counts", values: []chartkind.Value{by("a", "inputs.tls.exists")}, inputs: Inputs{"tls": map[string]any{"exists": true}}, want: map[string]any{"a": true}},
		"Overrides": {reason: "they count more, field by field", values: []chartkind.Value{path("a.b", "spec.size"), path("a.c", "spec.size")},
			overrides: map[string]any{"a": map[string]any{"b": 1.0, "d": map[string]any{"e": "f"}}, "g": true},
			want:      map[string]any{"a": map[string]any{"b": 1.0, "c": 3.0, "d": map[string]any{"e": "f"}}, "g": true}},
		"Fails":  {reason: "a field that is not there", values: []chartkind.Value{by("a", "object.spec.none")}, problem: "value a, by spec.values[0].expression of the ChartKind: evaluating the expression: no such key: none"},
		"Costly": {reason: "it is bounded", values: []chartkind.Value{by("a", "lists.range(100).map(a, lists.range(100).map(b, lists.range(100).map(c, lists.range(100))))")}, problem: "costs too much"},
		"Huge": {reason: "so is what is made", values: []chartkind.Value{by("a", "lists.range(9000).map(i, '0123456789012345678901234567890123456789')")},
			problem: "bytes, and may have at most 262144"},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := New(spec(func(s *chartkind.Spec) { s.Values, s.Overrides = tc.values, tc.overrides }))
			if err != nil {
				t.Fatal(err)
			}
			object := resource(t, lamp)
			before := object.DeepCopy()
			got, err := m.Values(t.Context(), object, tc.inputs)
			if tc.problem != "" {
				if err == nil || !strings.Contains(err.Error(), tc.problem) {
					t.Errorf("%s: %v, want %q", tc.reason, err, tc.problem)
				}
				return
			}
			if diff := cmp.Diff(tc.want, got); err != nil || diff != "" {
				t.Errorf("%s: %v (-want +got):\n%s", tc.reason, err, diff)
			}
			if diff := cmp.Diff(before, object); diff != "" {
				t.Errorf("the custom resource was changed:\n%s", diff)
			}
		})
	}
}

func TestOverridesAreNotShared(t *testing.T) {
	over := map[string]any{"a": map[string]any{"b": "c"}}
	m, err := New(spec(func(s *chartkind.Spec) {
		s.Overrides, s.Values = over, []chartkind.Value{{To: "x", From: "metadata.name"}}
	}))
	if err != nil {
		t.Fatal(err)
	}
	got, err := m.Values(t.Context(), resource(t, lamp), nil)
	if err != nil {
		t.Fatal(err)
	}
	got["a"].(map[string]any)["b"] = "changed"
	if over["a"].(map[string]any)["b"] != "c" {
		t.Error("what one custom resource got, the next one would see")
	}
}

func TestExtension(t *testing.T) {
	for name, tc := range map[string]struct{ expression, object, want, problem string }{
		"Default": {"", lamp, "lamp-house-hall-DIGEST", ""},
		"Cluster": {"", `{metadata: {name: hall}}`, "lamp-hall-DIGEST", ""},
		"Own":     {"'light-' + object.metadata.namespace", lamp, "light-house", ""},
		"Dots":    {"", `{metadata: {name: a.b, namespace: house}}`, "lamp-house-a-b-DIGEST", ""},
		"Long":    {"", `{metadata: {name: ` + strings.Repeat("a", 50) + `, namespace: house}}`, "lamp-house-aaaaaaaaaaaaaaaaaaaaaaaa-DIGEST", ""},
		"Joined":  {"", `{metadata: {name: hall, namespace: house-b}}`, "lamp-house-b-hall-DIGEST", ""},
		"OwnDots": {"object.metadata.name", `{metadata: {name: a.b, namespace: house}}`, "", "set spec.extension"},
		"OwnLong": {"object.metadata.name", `{metadata: {name: ` + strings.Repeat("a", 53) + `, namespace: house}}`, "", "at most 52"},
		"Number":  {"3", lamp, "", "must be text"},
		"Fails":   {"object.spec.none", lamp, "", "no such key: none"},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := New(spec(func(s *chartkind.Spec) { s.Extension = tc.expression }))
			if err != nil {
				t.Fatal(err)
			}
			object := resource(t, tc.object)
			got, err := m.Extension(t.Context(), object)
			if base, digest := strings.CutSuffix(tc.want, "DIGEST"); digest {
				tc.want = text.Name(maxExtension, base, "lights.example.com", "Lamp", object.GetNamespace(), object.GetName())
			}
			if got != tc.want || (err == nil) != (tc.problem == "") || err != nil && !strings.Contains(err.Error(), tc.problem) {
				t.Errorf("%q %v, want %q %q", got, err, tc.want, tc.problem)
			}
		})
	}
}

// Custom resources get different extensions, even if their kind, namespace and name join to the
// same text, or their kinds are in two groups.
func TestExtensionsDiffer(t *testing.T) {
	named := map[string]string{}
	for _, group := range []string{"lights.example.com", "other.example.com"} {
		m, err := New(spec(func(s *chartkind.Spec) { s.Resource.Group = group }))
		if err != nil {
			t.Fatal(err)
		}
		for _, object := range []string{
			`{metadata: {name: c, namespace: a-b}}`, `{metadata: {name: b-c, namespace: a}}`, `{metadata: {name: a-b-c}}`, `{metadata: {name: b.c, namespace: a}}`,
		} {
			name, err := m.Extension(t.Context(), resource(t, object))
			if err != nil {
				t.Fatal(err)
			}
			if other := named[name]; other != "" {
				t.Errorf("%s and %s are both %s", other, group+object, name)
			}
			named[name] = group + object
		}
	}
}

func TestValidate(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*chartkind.Spec)
		old    *chartkind.Spec
		want   string
	}{
		"Good":       {nil, nil, ""},
		"Group":      {func(s *chartkind.Spec) { s.Resource.Group = "apps" }, nil, "spec.resource.group"},
		"OwnGroup":   {func(s *chartkind.Spec) { s.Resource.Group = chartkind.Resource.Group }, nil, "spec.resource.group"},
		"Kind":       {func(s *chartkind.Spec) { s.Resource.Kind = "A b" }, nil, "spec.resource.kind"},
		"Ref":        {func(s *chartkind.Spec) { s.Chart.Ref = "registry.example.com/lamp" }, nil, "spec.chart.ref"},
		"Account":    {func(s *chartkind.Spec) { s.ServiceAccount.Name = "A" }, nil, "spec.serviceAccount.name"},
		"Namespace":  {func(s *chartkind.Spec) { s.Namespace = "A" }, nil, "spec.namespace"},
		"HoldOn":     {func(s *chartkind.Spec) { s.HoldOn = []string{"Deleted", "Rights"} }, nil, `spec.holdOn: Invalid value: "Deleted, Rights": "Rights" is no reason of a note`},
		"Approval":   {func(s *chartkind.Spec) { s.UpgradeApproval = "Perhaps" }, nil, `spec.upgradeApproval: Unsupported value: "Perhaps": supported values: "Automatic", "Reviewed", "Manual"`},
		"Deadline":   {func(s *chartkind.Spec) { s.ProgressDeadlineMinutes = 721 }, nil, "must be 0 (no deadline) to 720"},
		"NoFrom":     {func(s *chartkind.Spec) { s.Values = []chartkind.Value{{To: "a"}} }, nil, "spec.values[0].from"},
		"Both":       {func(s *chartkind.Spec) { s.Values = []chartkind.Value{{To: "a", From: "b", Expression: "1"}} }, nil, "must not be set beside from"},
		"Path":       {func(s *chartkind.Spec) { s.Values = []chartkind.Value{{To: "a", From: ".spec.b"}} }, nil, "spec.values[0].from"},
		"Status":     {func(s *chartkind.Spec) { s.Values = []chartkind.Value{{To: "a", From: "status.b"}} }, nil, "must not be a field of status"},
		"Twice":      {func(s *chartkind.Spec) { s.Values = []chartkind.Value{{To: "a", From: "b"}, {To: "a", From: "c"}} }, nil, "spec.values[1].to: Duplicate value"},
		"Within":     {func(s *chartkind.Spec) { s.Values = []chartkind.Value{{To: "a", From: "b"}, {To: "a.x", From: "c"}} }, nil, "must not overlap with a"},
		"Expression": {func(s *chartkind.Spec) { s.Values = []chartkind.Value{{To: "a", Expression: "object.("}} }, nil, "spec.values[0].expression"},
		"Unknown":    {func(s *chartkind.Spec) { s.Values = []chartkind.Value{{To: "a", Expression: "secrets.x"}} }, nil, "undeclared reference to 'secrets'"},
		"Extension":  {func(s *chartkind.Spec) { s.Extension = "inputs.x" }, nil, "spec.extension"},
		"Input":      {func(s *chartkind.Spec) { s.Inputs = []chartkind.Input{{Name: "a-b", Version: "v1", Kind: "Secret"}} }, nil, "spec.inputs[0].name"},
		"Secret":     {func(s *chartkind.Spec) { s.GeneratedSecrets = []string{"A"} }, nil, "spec.generatedSecrets[0]"},
		"OtherKind":  {func(s *chartkind.Spec) { s.Resource.Kind = "Torch" }, spec(nil), "cannot be changed"},
	} {
		t.Run(name, func(t *testing.T) {
			err := Validate(spec(tc.change), tc.old).ToAggregate()
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%v, want %q", err, tc.want)
			}
		})
	}
}

func TestDigest(t *testing.T) {
	made := func(change func(*MadeOf)) string {
		m := MadeOf{Chart: "c@sha256:1", Release: "hall", Namespace: "house", Values: map[string]any{"a": 1.0}, Inputs: Inputs{"tls": map[string]any{"resourceVersion": "5"}}}
		if change != nil {
			change(&m)
		}
		digest, err := m.Digest()
		if err != nil {
			t.Fatal(err)
		}
		return digest
	}
	if again := made(nil); made(nil) != again {
		t.Error("the same is another one each time")
	}
	for name, change := range map[string]func(*MadeOf){
		"chart": func(m *MadeOf) { m.Chart = "c@sha256:2" }, "namespace": func(m *MadeOf) { m.Namespace = "garden" },
		"values": func(m *MadeOf) { m.Values = map[string]any{"a": 2.0} }, "inputs": func(m *MadeOf) { m.Inputs = Inputs{"tls": map[string]any{"resourceVersion": "6"}} },
	} {
		if made(change) == made(nil) {
			t.Errorf("another %s makes no other revision", name)
		}
	}
}
