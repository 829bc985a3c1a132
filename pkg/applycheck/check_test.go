package applycheck

import (
	"fmt"
	"math/rand"
	"strings"
	"testing"
	"time"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	smdschema "sigs.k8s.io/structured-merge-diff/v6/schema"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
	"sigs.k8s.io/yaml"

	"github.com/penstock-project/penstock/pkg/manifest"
)

func builtin(t testing.TB) *BuiltinTypes {
	t.Helper()
	types, err := Builtin()
	if err != nil {
		t.Fatal(err)
	}
	return types
}

func object(t testing.TB, text string) *manifest.Object {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := manifest.Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	return &parsed
}

func pod(container string, more ...string) string {
	text := "apiVersion: v1\nkind: Pod\nmetadata: {name: a, namespace: b}\nspec:\n  containers:\n  - name: main\n    image: x\n"
	for line := range strings.SplitSeq(strings.TrimSpace(container), "\n") {
		text += "    " + line + "\n"
	}
	for _, line := range more {
		text += "  " + line + "\n"
	}
	return text
}

func TestCheckBuiltin(t *testing.T) {
	types := builtin(t)
	cases := map[string]struct {
		reason, object string
		want           []string
	}{
		"Fine": {"an ordinary Pod", pod("env: [{name: A, value: b}]\nports: [{containerPort: 80}, {containerPort: 80, protocol: UDP}]"), nil},
		"Null": {"null is no value", pod("env: null\nports: ~\nresources: {limits: null}\nworkingDir: null"), nil},
		"Env": {"both positions and the key are named, values are not", pod("env: [{name: A, value: one}, {name: B}, {name: A, value: two}]"), []string{
			`spec.containers[0].env[2]: items 0 and 2 of the list (counted from 0) have the same key (name "A"): server-side apply accepts each only once`}},
		"Ports": {"the default is part of the key", pod("ports: [{containerPort: 80, name: a}, {containerPort: 80, protocol: TCP, name: b}]"), []string{
			`spec.containers[0].ports[1]: items 0 and 1 of the list (counted from 0) have the same key (containerPort 80, protocol "TCP"): server-side apply accepts each only once`}},
		"Unknown": {"a field that there is not", pod("imagePullPolice: Always"), []string{"spec.containers[0].imagePullPolice: is not a field of this type"}},
		"Number":  {"numbers are no text", pod("env: [{name: A, value: 1}]"), []string{"spec.containers[0].env[0].value: is a number, want a string: put it in quotes"}},
		"Text":    {"text is no number", pod("ports: [{containerPort: \"80\"}]"), []string{"spec.containers[0].ports[0].containerPort: is a string, want a number: take it out of its quotes"}},
		"Object":  {"an object is no list", pod("env: {A: b}"), []string{"spec.containers[0].env: is an object, want a list"}},
		"NoItem":  {"null in a list with keys", pod("env: [~]"), []string{"spec.containers[0].env[0]: is null, want an object"}},
		"Quantity": {"quantities are decoded", pod("resources: {limits: {cpu: many}}"), []string{
			": it cannot be read as a Pod: quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"}},
		"Fraction": {"whole numbers are whole", "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec: {replicas: 1.5}", []string{
			": it cannot be read as a Deployment: json: cannot unmarshal number 1.5 into Go struct field DeploymentSpec.spec.replicas of type int32"}},
		"Secret": {"nothing of a Secret is quoted", "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\ndata: {password: 'hunter2 hunter2'}", []string{
			": it cannot be read as a Secret: the values of data are base64, those of stringData text"}},
		"SecretNumber": {"nor that which has a wrong type", "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData: {pin: 4711}", []string{
			"stringData.pin: is a number, want a string: put it in quotes"}},
		"Definition": {"fields that definitions do not have", "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: xs.example.com}\nspec: {group: example.com, nonsense: 1}", []string{
			"spec.nonsense: is not a field of this type"}},
		"DefinitionSchema": {"nor fields of schemas", "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: xs.example.com}\nspec: {group: example.com, versions: [{name: v1, schema: {openAPIV3Schema: {type: object, properties: {a: {type: string, nonsense: 1, default: {x: [1]}}}}}}]}", []string{
			"spec.versions[0].schema.openAPIV3Schema.properties.a.nonsense: is not a field of this type"}},
		"Metadata": {"metadata of kinds that client-go does not have", "apiVersion: apiregistration.k8s.io/v1\nkind: APIService\nmetadata: {name: v1.example.com, lables: {}}\nspec: {group: example.com, version: v1, groupPriorityMinimum: 1, versionPriority: 1}", []string{
			"metadata.lables: is not a field of this type"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			parsed := object(t, tc.object)
			kind := types.TypeOf(parsed.GroupVersionKind())
			if kind == nil {
				t.Fatal("the kind is not known")
			}
			found, err := kind.Check(parsed)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, one := range found.List {
				got = append(got, one.String())
			}
			if fmt.Sprint(got) != fmt.Sprint(tc.want) {
				t.Errorf("%s: got\n%s\nwant\n%s", tc.reason, strings.Join(got, "\n"), strings.Join(tc.want, "\n"))
			}
		})
	}
}

func TestUnknownKinds(t *testing.T) {
	types := builtin(t)
	for _, kind := range []runtimeschema.GroupVersionKind{
		{Group: "example.com", Version: "v1", Kind: "Deployment"}, {Group: "apps", Version: "v9", Kind: "Deployment"},
		{Group: "gateway.networking.k8s.io", Version: "v1", Kind: "Gateway"}, {Version: "v1", Kind: "Nonsense"},
	} {
		if types.TypeOf(kind) != nil {
			t.Errorf("%s has a type", kind)
		}
	}
}

// definitionOfX is a definition with each kind of list.
const definitionOfX = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: xs.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: X, plural: xs}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              names: {type: array, x-kubernetes-list-type: set, items: {type: string}}
              ports:
                type: array
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [port, protocol]
                items:
                  type: object
                  required: [port, protocol]
                  properties: {port: {type: integer}, protocol: {type: string, default: TCP}, text: {type: string}}
              mounts: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [path], items: {type: object, required: [path], properties: {path: {type: string}}}}
              plain: {type: array, items: {type: string}}
              either: {x-kubernetes-int-or-string: true, anyOf: [{type: integer}, {type: string}]}
              any: {type: object, x-kubernetes-preserve-unknown-fields: true}
              template: {type: object, x-kubernetes-embedded-resource: true, properties: {spec: {type: object, properties: {a: {type: string}}}}}
`

func TestCheckDefinitions(t *testing.T) {
	definition := object(t, definitionOfX)
	cases := map[string]struct {
		reason, spec string
		want         []string
	}{
		"Fine": {"what the schema declares", `{names: [a, b], ports: [{port: 1}, {port: 1, protocol: UDP}], plain: [a, a], either: 1, any: {x: [1, a]},
			template: {apiVersion: v1, kind: A, metadata: {name: b, labels: {c: d}}, spec: {a: b}}}`, nil},
		"Set": {"values of a set are not shown", "{names: [a, b, a]}", []string{
			"spec.names[2]: items 0 and 2 of the list (counted from 0) are equal: server-side apply accepts each only once"}},
		"Map": {"defaults are part of keys", "{ports: [{port: 1, protocol: TCP}, {port: 1}]}", []string{
			`spec.ports[1]: items 0 and 1 of the list (counted from 0) have the same key (port 1, protocol "TCP"): server-side apply accepts each only once`}},
		"Unknown":  {"a field that is not declared", "{nonsense: 1, template: {spec: {b: 1}}}", []string{"spec.nonsense: is not a field of this type", "spec.template.spec.b: is not a field of this type"}},
		"Type":     {"another type", "{plain: [1]}", []string{"spec.plain[0]: is a number, want a string: put it in quotes"}},
		"NoKey":    {"items without a key", "{mounts: [{}, {path: a}]}", []string{"spec.mounts[0]: has none of the fields that identify it: path"}},
		"Metadata": {"metadata is that of Kubernetes", "{}\nmetadata: {name: a, nonsense: 1}", []string{"metadata.nonsense: is not a field of this type"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			text := "apiVersion: example.com/v1\nkind: X\nspec: " + tc.spec + "\n"
			if !strings.Contains(text, "metadata: {name: a") {
				text += "metadata: {name: a}\n"
			}
			types := NewDefinitions(builtin(t), []manifest.Object{*definition})
			parsed := object(t, text)
			kind := types.TypeOf(parsed.GroupVersionKind())
			if kind == nil {
				t.Fatal("the kind is not known")
			}
			found, err := kind.Check(parsed)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, one := range found.List {
				got = append(got, one.String())
			}
			if fmt.Sprint(got) != fmt.Sprint(tc.want) {
				t.Errorf("%s: got\n%s\nwant\n%s", tc.reason, strings.Join(got, "\n"), strings.Join(tc.want, "\n"))
			}
		})
	}
}

// TestAgreesWithTheLibrary: a walk has a finding exactly if kube-apiserver's merge library refuses
// the object.
func TestAgreesWithTheLibrary(t *testing.T) {
	types := builtin(t)
	random := rand.New(rand.NewSource(1))
	bases := []string{
		pod("env: [{name: A, value: b}, {name: B, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]\nports: [{containerPort: 80}, {containerPort: 81, name: x}]\nvolumeMounts: [{name: a, mountPath: /a}]\nresources: {limits: {cpu: 1}}",
			"volumes: [{name: a, emptyDir: {}}]", "tolerations: [{key: a}]", "imagePullSecrets: [{name: a}]"),
		"apiVersion: v1\nkind: Service\nmetadata: {name: a, labels: {a: b}}\nspec: {ports: [{port: 80, targetPort: http}, {port: 81, targetPort: 8}], selector: {a: b}}",
		"apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfiguration\nmetadata: {name: a}\nwebhooks: [{name: a.b.c, rules: [{apiGroups: [a]}], matchConditions: [{name: a, expression: b}]}]",
	}
	parser := &typed.Parser{Schema: smdschema.Schema{Types: types.kubernetes.Types}}
	refused := 0
	for i := range 3000 {
		parsed := object(t, bases[i%len(bases)])
		decoded, err := Decode(parsed.JSON)
		if err != nil {
			t.Fatal(err)
		}
		for range 1 + random.Intn(3) {
			mutate(random, decoded)
		}
		kind := types.TypeOf(parsed.GroupVersionKind())
		_, failure := parser.Type(*kind.ref.NamedType).FromUnstructured(decoded)
		found := kind.walk(decoded, nil)
		if (failure != nil) != (len(found.List) > 0) {
			t.Fatalf("the library says %v, the walk %v of %v", failure, found.List, decoded)
		}
		if failure != nil {
			refused++
		}
	}
	if refused < 500 || refused > 2800 {
		t.Errorf("%d of 3000 objects are refused: that tests little", refused)
	}
}

func mutate(random *rand.Rand, value any) {
	values := []any{nil, "text", int64(7), 1.5, true, []any{}, []any{nil}, map[string]any{}, map[string]any{"name": "A"}, []any{"a", "a"}}
	switch v := value.(type) {
	case map[string]any:
		for name := range v {
			switch random.Intn(6) {
			case 0:
				v[name] = values[random.Intn(len(values))]
			case 1:
				v["x"+name] = v[name]
			case 2:
				delete(v, name)
			default:
				mutate(random, v[name])
				if list, ok := v[name].([]any); ok && len(list) > 0 && random.Intn(2) == 0 {
					v[name] = append(list, list[random.Intn(len(list))])
				}
			}
			return
		}
	case []any:
		if len(v) == 0 {
			return
		}
		i := random.Intn(len(v))
		if random.Intn(6) == 0 {
			v[i] = values[random.Intn(len(values))]
			return
		}
		mutate(random, v[i])
	}
}

// TestHostile: checking an expensive object costs little, and its findings are short.
func TestHostile(t *testing.T) {
	types := builtin(t)
	var many []string
	for i := range 100_000 {
		many = append(many, fmt.Sprintf(`{"name":"%s%d"}`, strings.Repeat("x", 10), i%5))
	}
	duplicates := `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{"containers":[{"name":"a","env":[` + strings.Join(many, ",") + `]}]}}`
	deep := `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":` + strings.Repeat(`{"spec":`, 5000) + "1" + strings.Repeat("}", 5000) + `}`
	long := `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{"` + strings.Repeat("y", 1<<20) + `":1}}`
	keys := `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{"containers":[{"name":"a","env":[{"name":"` + strings.Repeat("z", 1<<20) + `"},{"name":"` + strings.Repeat("z", 1<<20) + `"}]}]}}`
	for name, text := range map[string]string{"Duplicates": duplicates, "Deep": deep, "LongName": long, "LongKey": keys} {
		t.Run(name, func(t *testing.T) {
			parsed, err := manifest.Parse([]byte(text))
			if err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			found, err := types.TypeOf(parsed.GroupVersionKind()).Check(&parsed)
			if err != nil {
				t.Fatal(err)
			}
			if took := time.Since(began); took > 5*time.Second {
				t.Errorf("it took %s", took)
			}
			if len(found.List) == 0 || len(fmt.Sprint(found.List)) > maxFindings*(maxPathBytes+2*maxProblemBytes) {
				t.Errorf("%d findings, %d bytes", len(found.List), len(fmt.Sprint(found.List)))
			}
			if name == "Duplicates" && found.Omitted != 100_000-5-maxFindings {
				t.Errorf("%d are left out", found.Omitted)
			}
		})
	}
}
