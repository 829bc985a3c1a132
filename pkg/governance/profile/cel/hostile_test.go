package cel_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/governance/profile"
	"github.com/penstock-project/penstock/pkg/governance/profile/cel"
)

// simple returns a definition after a change.
func simple(t testing.TB, change func(spec *v1alpha1.ConfigurationProfileDefinitionSpec)) *v1alpha1.ConfigurationProfileDefinitionSpec {
	t.Helper()
	definition := parsed(t, `
metadata: {name: simple}
spec:
  description: Widgets are large.
  requirements:
  - {name: widgets, definition: widgets.example.com, kind: Widget, access: Write, install: the widgets}
  - {name: gadgets, definition: gadgets.example.com, kind: Gadget, access: Read, install: the gadgets, optional: true}
  options: {type: object, properties: {size: {type: integer, default: 3, minimum: 1}, limit: {type: integer}, name: {type: string}}}
  items:
  - name: widget
    target: {requirement: widgets, namespace: default, name: one}
    object: '{"spec": {"size": options.size}}'
    impact: '"Low"'
    reason: '"it grows"'
`)
	if change != nil {
		change(&definition.Spec)
	}
	return &definition.Spec
}

type change = func(spec *v1alpha1.ConfigurationProfileDefinitionSpec)

// makes changes the object expression of the item.
func makes(expression string) change {
	return func(spec *v1alpha1.ConfigurationProfileDefinitionSpec) { spec.Items[0].Object = expression }
}

// TestRefused: an invalid definition is refused on write, with the field.
func TestRefused(t *testing.T) {
	requires := func(definition string, access v1alpha1.DefinitionAccess) change {
		return func(spec *v1alpha1.ConfigurationProfileDefinitionSpec) {
			spec.Requirements[1].Definition, spec.Requirements[1].Access = definition, access
		}
	}
	variable := func(name, expression string) change {
		return func(spec *v1alpha1.ConfigurationProfileDefinitionSpec) {
			spec.Variables = append(spec.Variables, v1alpha1.DefinitionVariable{Name: name, Expression: expression})
		}
	}
	schemaOf := func(raw string) change {
		return func(spec *v1alpha1.ConfigurationProfileDefinitionSpec) {
			spec.Options = &v1alpha1.JSONObject{Raw: []byte(raw)}
		}
	}
	for name, tc := range map[string]struct {
		change      change
		field, says string
	}{
		"A loop in a loop in a loop":      {makes("{'spec': {'n': facts.widgets.objects.map(a, facts.widgets.objects.map(b, facts.widgets.objects.map(c, a.spec == b.spec && b.spec == c.spec)))}}"), "spec.items[0].object", "may cost"},
		"A loop of loops over text":       {makes("{'spec': {'n': facts.widgets.objects.map(a, facts.widgets.objects.map(b, a.metadata.name.matches('(a|b|c|d)*x' + b.metadata.name)))}}"), "spec.items[0].object", "pattern"},
		"Too many loops":                  {makes("{'spec': {'n': [" + strings.Repeat("facts.widgets.objects.map(a, a),", 20) + "]}}"), "spec.items[0].object", "loops"},
		"No CEL":                          {makes("spec: {}"), "spec.items[0].object", "Syntax error"},
		"No such function":                {makes("{'spec': env('HOME')}"), "spec.items[0].object", "undeclared reference"},
		"No object":                       {makes("options.size + 1"), "spec.items[0].object", "must be of type map"},
		"An option that is not there":     {makes("{'spec': {'size': options.sise}}"), "spec.items[0].object", "undefined field 'sise'"},
		"An option of another type":       {makes("{'spec': {'size': options.size + 'x'}}"), "spec.items[0].object", "found no matching overload"},
		"A requirement that is not there": {makes("{'spec': facts.widget.objects}"), "spec.items[0].object", "undefined field 'widget'"},
		"A variable that is not there":    {makes("{'spec': variables.later}"), "spec.items[0].object", "undefined field 'later'"},
		"A variable of a later one": {func(spec *v1alpha1.ConfigurationProfileDefinitionSpec) {
			variable("a", "variables.b")(spec)
			variable("b", "1")(spec)
		}, "spec.variables[0].expression", "undefined field 'b'"},
		"A variable of itself": {variable("a", "variables.a"), "spec.variables[0].expression", "undefined field 'a'"},
		"A variable twice": {func(spec *v1alpha1.ConfigurationProfileDefinitionSpec) {
			variable("a", "1")(spec)
			variable("a", "2")(spec)
		}, "spec.variables[1].name", "Duplicate"},
		"A name that cannot be spelled": {variable("a-b", "1"), "spec.variables[0].name", "letters, digits and _"},
		"Live in a variable":            {variable("a", "live"), "spec.variables[0].expression", "undeclared reference to 'live'"},
		"Another item":                  {makes("{'spec': items.widget}"), "spec.items[0].object", "undeclared reference"},
		"Blast in an object":            {makes("{'spec': blast}"), "spec.items[0].object", "undeclared reference to 'blast'"},
		"Authorizer":                    {makes("{'spec': authorizer.group('')}"), "spec.items[0].object", "undeclared reference"},
		"Too long":                      {makes("{'spec': '" + strings.Repeat("x", 9<<10) + "'}"), "spec.items[0].object", "Too long"},
		"Read only":                     {func(spec *v1alpha1.ConfigurationProfileDefinitionSpec) { spec.Items[0].Target.Requirement = "gadgets" }, "spec.items[0].target.requirement", "access Write"},
		"No requirement":                {func(spec *v1alpha1.ConfigurationProfileDefinitionSpec) { spec.Items[0].Target.Requirement = "others" }, "spec.items[0].target.requirement", "access Write"},
		"No item":                       {func(spec *v1alpha1.ConfigurationProfileDefinitionSpec) { spec.Items = nil }, "spec.items", "at least 1"},
		"Another access":                {requires("gadgets.example.com", "Admin"), "spec.requirements[1].access", "Schema"},
		"MachineConfigs without pools":  {requires("machineconfigs.machineconfiguration.openshift.io", v1alpha1.AccessWrite), "spec.requirements", "machineconfigpools"},
		"KubeletConfigs without what is made of them": {func(spec *v1alpha1.ConfigurationProfileDefinitionSpec) {
			requires("kubeletconfigs.machineconfiguration.openshift.io", v1alpha1.AccessWrite)(spec)
			pools := spec.Requirements[1]
			pools.Name, pools.Definition, pools.Access = "pools", "machineconfigpools.machineconfiguration.openshift.io", v1alpha1.AccessRead
			spec.Requirements = append(spec.Requirements, pools)
		}, "spec.requirements", "declare machineconfigs.machineconfiguration.openshift.io with access Read"},
		"No definition":                 {requires("gadgets", v1alpha1.AccessRead), "spec.requirements[1].definition", "plural.group"},
		"Secrets":                       {requires("secrets.", v1alpha1.AccessRead), "spec.requirements[1].definition", "plural.group"},
		"Options that are no schema":    {schemaOf(`{"type": "object", "propertees": {}}`), "spec.options", "propertees"},
		"Options without a type":        {schemaOf(`{"type": "object", "properties": {"a": {}}}`), "spec.options.properties[a].type", "Required"},
		"Options that are a list":       {schemaOf(`{"type": "array", "items": {"type": "string"}}`), "spec.options.type", "object"},
		"A default that is not allowed": {schemaOf(`{"type": "object", "properties": {"size": {"type": "integer", "default": 0, "minimum": 1}}}`), "spec.options.properties[size].default", "greater than or equal"},
		"Rules in the schema":           {schemaOf(`{"type": "object", "properties": {"size": {"type": "integer", "x-kubernetes-validations": [{"rule": "true"}]}}}`), "spec.options.properties[size].x-kubernetes-validations", "spec.validations"},
	} {
		t.Run(name, func(t *testing.T) {
			errs := cel.Validate(simple(t, tc.change), field.NewPath("spec"))
			if len(errs) == 0 {
				t.Fatal("it is taken")
			}
			if found := errs.ToAggregate().Error(); errs[0].Field != tc.field || !strings.Contains(found, tc.says) {
				t.Errorf("%s: %s", errs[0].Field, found)
			}
		})
	}
}

// TestForbidden: a definition cannot declare kinds by which its identity could gain more rights or
// hide its actions.
func TestForbidden(t *testing.T) {
	for _, name := range []string{
		"secrets.", "roles.rbac.authorization.k8s.io", "clusterrolebindings.rbac.authorization.k8s.io", "validatingwebhookconfigurations.admissionregistration.k8s.io",
		"mutatingadmissionpolicies.admissionregistration.k8s.io", "customresourcedefinitions.apiextensions.k8s.io", "apiservices.apiregistration.k8s.io",
		"deployments.apps", "daemonsets.apps", "jobs.batch", "cronjobs.batch", "poddisruptionbudgets.policy", "networkpolicies.networking.k8s.io",
		"configurationplans.hco.kubevirt.io", "configurationprofiledefinitions.hco.kubevirt.io", "clusterextensionrevisions.olm.operatorframework.io",
		"clusterextensions.olm.operatorframework.io", "catalogpackages.catalog.penstock.dev", "privilegechecks.policy.penstock.dev",
		"clusterpolicies.kyverno.io", "k8srequiredlabels.constraints.gatekeeper.sh", "securitycontextconstraints.security.openshift.io",
		"virtualmachines.kubevirt.io", "subscriptions.operators.coreos.com", "externalsecrets.external-secrets.io", "applications.argoproj.io", "oauths.config.openshift.io",
	} {
		for _, access := range []v1alpha1.DefinitionAccess{v1alpha1.AccessSchema, v1alpha1.AccessRead, v1alpha1.AccessWrite} {
			spec := simple(t, func(spec *v1alpha1.ConfigurationProfileDefinitionSpec) {
				spec.Requirements[1].Definition, spec.Requirements[1].Access = name, access
			})
			if errs := cel.Validate(spec, field.NewPath("spec")); len(errs) == 0 || errs[0].Field != "spec.requirements[1].definition" {
				t.Errorf("%s with access %s: %v", name, access, errs)
			}
		}
	}
	for _, name := range []string{"hyperconvergeds.hco.kubevirt.io", "kubevirts.kubevirt.io", "machineconfigpools.machineconfiguration.openshift.io", "nodehealthchecks.remediation.medik8s.io"} {
		if reason := cel.Forbidden(cel.PluralOf(name)); reason != "" {
			t.Errorf("%s: %s", name, reason)
		}
	}
}

func widgets(n int) profile.Facts {
	facts := profile.NewFacts()
	for _, name := range []string{"widgets.example.com", "gadgets.example.com"} {
		facts.Definitions[name] = profile.Definition{Versions: []profile.Version{{Name: "v1"}}}
	}
	kind := schema.GroupKind{Group: "example.com", Kind: "Widget"}
	for i := range n {
		facts.Objects[kind] = append(facts.Objects[kind], &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "example.com/v1", "kind": "Widget", "metadata": map[string]any{"name": fmt.Sprintf("w%d", i)}, "spec": map[string]any{"text": strings.Repeat("x", 1000)},
		}})
	}
	return facts
}

// TestMadeThings: objects that expressions return are checked. Undeclared kinds and names, values
// that are not objects, and large results are refused.
func TestMadeThings(t *testing.T) {
	doubled := func(spec *v1alpha1.ConfigurationProfileDefinitionSpec, first, next string) {
		spec.Variables = []v1alpha1.DefinitionVariable{{Name: "v0", Expression: first}}
		for i := 1; i < 30; i++ {
			spec.Variables = append(spec.Variables, v1alpha1.DefinitionVariable{Name: fmt.Sprintf("v%d", i), Expression: strings.ReplaceAll(next, "V", fmt.Sprintf("variables.v%d", i-1))})
		}
	}
	for name, tc := range map[string]struct {
		change change
		says   string
	}{
		"A Secret":                  {makes("{'apiVersion': 'v1', 'kind': 'Secret', 'metadata': {'name': 'one', 'namespace': 'default'}}"), "the expression must return that object"},
		"Another kind":              {makes("{'kind': 'Gadget'}"), "its kind is"},
		"Another name":              {makes("{'metadata': {'name': 'two'}}"), "its name is"},
		"Another namespace":         {makes("{'metadata': {'namespace': 'kube-system'}}"), "its namespace is"},
		"A name that is a list":     {makes("{'metadata': {'name': ['one']}}"), "its name is"},
		"Owners":                    {makes("{'metadata': {'ownerReferences': []}}"), "ownerReferences"},
		"Finalizers":                {makes("{'metadata': {'finalizers': ['x/y']}}"), "finalizers"},
		"A status":                  {makes("{'status': {'ready': true}}"), "status"},
		"Metadata that is text":     {makes("{'metadata': 'x'}"), "metadata must be an object"},
		"A time":                    {makes("{'spec': {'at': timestamp('2020-01-02T00:00:00Z')}}"), ".spec.at is of type"},
		"Bytes":                     {makes("{'spec': [b'x']}"), ".spec[0] is of type"},
		"An optional":               {makes("{'spec': optional.of(1)}"), ".spec is of type"},
		"A type":                    {makes("{'spec': type(1)}"), ".spec is of type"},
		"Keys that are numbers":     {makes("{'spec': {1: 2}}"), "a map with keys of type int"},
		"No number":                 {makes("{'spec': 0.0 / 0.0}"), "no finite number"},
		"A field that is not there": {makes("{'spec': live.spec.size}"), "no such key"},
		"Another impact":            {func(spec *v1alpha1.ConfigurationProfileDefinitionSpec) { spec.Items[0].Impact = `"Huge"` }, "None, Low, Medium or High"},
		"Notes that are numbers":    {func(spec *v1alpha1.ConfigurationProfileDefinitionSpec) { spec.Items[0].Notes = `[1]` }, "list of texts"},
		"Pools that are none": {func(spec *v1alpha1.ConfigurationProfileDefinitionSpec) {
			spec.Items[0].BlastRadius = &v1alpha1.DefinitionBlastRadius{Pools: `[{"kind": "Node"}]`}
		}, "MachineConfigPools"},
		"Text that doubles": {func(spec *v1alpha1.ConfigurationProfileDefinitionSpec) { doubled(spec, "'0123456789'", "V + V") }, "costs too much"},
		"Lists that double": {func(spec *v1alpha1.ConfigurationProfileDefinitionSpec) { doubled(spec, "[0]", "V + V") }, "costs too much"},
		"Maps that double":  {func(spec *v1alpha1.ConfigurationProfileDefinitionSpec) { doubled(spec, "{'a': 0}", "{'a': V, 'b': V}") }, "costs too much"},
		"Text that is put into text": {func(spec *v1alpha1.ConfigurationProfileDefinitionSpec) {
			doubled(spec, "'aaaaaaaaaa'", "V.replace('a', 'aaaaaaaaaa')")
		}, "costs too much"},
		"Much of the cluster":              {makes("{'spec': {'all': facts.widgets.objects}}"), "must be at most"},
		"Loops over more than was thought": {makes("{'spec': {'n': facts.widgets.objects.map(a, facts.widgets.objects.map(b, a.spec.text == b.spec.text).size()).size()}}"), "costs too much"},
	} {
		t.Run(name, func(t *testing.T) {
			spec := simple(t, tc.change)
			if errs := cel.Validate(spec, field.NewPath("spec")); len(errs) > 0 && !strings.Contains(errs.ToAggregate().Error(), "is of type") {
				t.Fatal(errs.ToAggregate())
			}
			made, err := cel.New("simple", spec)
			if err != nil {
				t.Fatal(err)
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			items, err := made.Items(widgets(1000), nil)
			runtime.ReadMemStats(&after)
			if err == nil || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("%v, %v", items, err)
			}
			if len(err.Error()) > 2000 {
				t.Errorf("the error has %d bytes", len(err.Error()))
			}
			if used := after.TotalAlloc - before.TotalAlloc; used > 256<<20 {
				t.Errorf("it took %d bytes", used)
			}
		})
	}
}

// TestOptions: options have defaults, and an error names the option.
func TestOptions(t *testing.T) {
	made, err := cel.New("simple", simple(t, func(spec *v1alpha1.ConfigurationProfileDefinitionSpec) {
		spec.Validations = []v1alpha1.DefinitionCheck{{Expression: "options.size <= options.?limit.orValue(10)", Message: "size must not be above limit"}}
	}))
	if err != nil {
		t.Fatal(err)
	}
	path := field.NewPath("spec", "options", "values")
	for raw, says := range map[string]string{
		``: "", `{}`: "", `{"size": 5}`: "", `{"size": 11}`: "size must not be above limit", `{"size": 5, "limit": 4}`: "size must not be above limit",
		`{"size": 0}`: "spec.options.values.size", `{"size": "x"}`: "spec.options.values.size", `{"sise": 1}`: "there are limit, name, size", `[]`: "must be an object",
	} {
		options, errs := made.Options(&v1alpha1.JSONObject{Raw: []byte(raw)}, path)
		if says == "" && (len(errs) > 0 || options["size"] == nil) || says != "" && (len(errs) == 0 || !strings.Contains(errs.ToAggregate().Error(), says)) {
			t.Errorf("%s: %v, %v", raw, options, errs)
		}
	}
	documented := made.Documented()
	if len(documented) != 3 || documented[2].Name != "size" || documented[2].Default != "3" || documented[2].Allowed != "at least 1" {
		t.Errorf("%+v", documented)
	}
}

// TestWarnings: an expression that reads a field missing in the cluster's schema returns a warning.
func TestWarnings(t *testing.T) {
	spec := simple(t, func(spec *v1alpha1.ConfigurationProfileDefinitionSpec) {
		spec.Requirements[0].Fields = []v1alpha1.DefinitionField{{Path: "spec.size"}, {Path: "spec.weight"}}
		spec.Items[0].When = "facts.widgets.objects.all(w, w.spec.sise > 1) && (live == null || live.spec.size < 2)"
		spec.Items[0].Reason = "live.spec.size + 'x'"
	})
	if errs := cel.Validate(spec, field.NewPath("spec")); len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	made, err := cel.Compile(spec)
	if err != nil {
		t.Fatal(err)
	}
	facts := profile.NewFacts()
	if warnings := made.Warnings(facts); len(warnings) > 0 {
		t.Errorf("nothing is served: %q", warnings)
	}
	facts.Definitions["widgets.example.com"] = profile.Definition{Versions: []profile.Version{{Name: "v1", Schema: map[string]any{"type": "object", "properties": map[string]any{
		"spec": map[string]any{"type": "object", "properties": map[string]any{"size": map[string]any{"type": "integer"}}},
	}}}}}
	warnings := strings.Join(made.Warnings(facts), "\n")
	for _, says := range []string{"items[0].when: undefined field 'sise'", "items[0].reason: found no matching overload", "no field spec.weight"} {
		if !strings.Contains(warnings, says) {
			t.Errorf("%q is not told: %s", says, warnings)
		}
	}
	if strings.Contains(warnings, "spec.size:") {
		t.Errorf("%s", warnings)
	}
}

// TestDigest: the digest changes with the logic, and not with the description.
func TestDigest(t *testing.T) {
	plain := cel.Digest(simple(t, nil))
	if again := cel.Digest(simple(t, func(spec *v1alpha1.ConfigurationProfileDefinitionSpec) { spec.Description = "Widgets grow." })); again != plain {
		t.Error("a description is logic")
	}
	if other := cel.Digest(simple(t, func(spec *v1alpha1.ConfigurationProfileDefinitionSpec) {
		spec.Items[0].Waits = []v1alpha1.DefinitionWait{{Expression: "true", Message: "x"}}
	})); other == plain {
		t.Error("a wait is no logic")
	}
	kept, err := cel.Manifest("simple", simple(t, nil))
	if err != nil {
		t.Fatal(err)
	}
	back, err := cel.OfManifest(kept.JSON)
	if err != nil || cel.Digest(&back.Spec) != plain || back.Name != "simple" {
		t.Errorf("%+v, %v", back, err)
	}
}
