package extension

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	crdvalidation "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"
)

// internal returns the definition in the internal type, which kube-apiserver validates.
func internal(t *testing.T) *apiextensions.CustomResourceDefinition {
	t.Helper()
	read, err := Definition().Decode()
	if err != nil {
		t.Fatal(err)
	}
	apiextensionsv1.SetDefaults_CustomResourceDefinition(read)
	apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&read.Spec)
	converted := &apiextensions.CustomResourceDefinition{}
	if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(read, converted, nil); err != nil {
		t.Fatal(err)
	}
	return converted
}

func TestDefinition(t *testing.T) {
	definition := internal(t)
	definition.Status.StoredVersions = []string{Resource.Version}
	if errs := crdvalidation.ValidateCustomResourceDefinition(context.Background(), definition); len(errs) > 0 {
		t.Errorf("kube-apiserver would refuse it: %v", errs.ToAggregate())
	}
	if definition.Name != DefinitionName || definition.Spec.Group != Resource.Group || definition.Spec.Names.Plural != Resource.Resource || definition.Spec.Names.Kind != Kind.Kind {
		t.Errorf("the definition is that of %s", definition.Name)
	}
}

// judge validates a write over an existing object as kube-apiserver does.
type judge struct {
	schema *structural.Structural
	fields validation.SchemaValidator
	rules  *cel.Validator
}

func newJudge(t *testing.T) judge {
	t.Helper()
	props := internal(t).Spec.Validation
	schema, err := structural.NewStructural(props.OpenAPIV3Schema)
	if err != nil {
		t.Fatal(err)
	}
	fields, _, err := validation.NewSchemaValidator(props.OpenAPIV3Schema)
	if err != nil {
		t.Fatal(err)
	}
	return judge{schema: schema, fields: fields, rules: cel.NewValidator(schema, true, celconfig.PerCallLimit)}
}

func (j judge) read(t *testing.T, text string) map[string]any {
	t.Helper()
	if text == "" {
		return nil
	}
	object := map[string]any{}
	if err := yaml.Unmarshal([]byte("{apiVersion: olm.operatorframework.io/v1, kind: ClusterExtension, metadata: {name: a}, "+text+"}"), &object); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	pruning.Prune(object, j.schema, true)
	defaulting.Default(object, j.schema)
	return object
}

func (j judge) errors(object, old map[string]any) field.ErrorList {
	errs := validation.ValidateCustomResource(nil, object, j.fields)
	var before any
	if old != nil {
		before = old
	}
	more, _ := j.rules.Validate(context.Background(), nil, j.schema, object, before, celconfig.RuntimeCELCostBudget)
	return append(errs, more...)
}

func TestSchema(t *testing.T) {
	j := newJudge(t)
	catalog := func(more string) string {
		return "spec: {namespace: argocd, source: {sourceType: Catalog, catalog: {packageName: argocd-operator" + more + "}}}"
	}
	spec := func(more string) string {
		return "spec: {namespace: argocd, source: {sourceType: Catalog, catalog: {packageName: argocd-operator}}" + more + "}"
	}
	source := func(source string) string { return "spec: {namespace: argocd, source: " + source + "}" }
	status := func(status string) string { return spec("") + ", status: {" + status + "}" }
	const digest = "@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	for name, tc := range map[string]struct {
		reason, old, object string
		// wants is the path of the invalid field, and says is part of the error; both are empty if
		// the object is valid.
		wants, says string
	}{
		"Least":            {reason: "all that is required", object: catalog("")},
		"Pin":              {reason: "a version", object: catalog(", version: 1.2.3")},
		"Range":            {reason: "a comma is and", object: catalog(`, version: ">=1.2.0, <2.0.0"`)},
		"Spaces":           {reason: "a space is and", object: catalog(`, version: ">= 1.2.0 < 2.0.0"`)},
		"Alternatives":     {reason: "two bars are or", object: catalog(`, version: "^0 || ~3.1||5.x"`)},
		"Wildcard":         {reason: "every version", object: catalog(`, version: "*"`)},
		"Prerelease":       {reason: "with build metadata", object: catalog(`, version: "v1.2.3-rc.1+build.5"`)},
		"NoVersion":        {reason: "words are none", object: catalog(", version: latest"), wants: "spec.source.catalog.version", says: "range of versions"},
		"EmptyVersion":     {reason: "leave it out", object: catalog(`, version: ""`), wants: "spec.source.catalog.version"},
		"FourNumbers":      {reason: "a version has three", object: catalog(`, version: 1.2.3.4`), wants: "spec.source.catalog.version"},
		"OpenRange":        {reason: "something is missing", object: catalog(`, version: ">=1.2.0,"`), wants: "spec.source.catalog.version"},
		"LongVersion":      {reason: "at most 64 characters", object: catalog(", version: 1.2.3-" + strings.Repeat("a", 64)), wants: "spec.source.catalog.version"},
		"Channels":         {reason: "two", object: catalog(", channels: [stable, 1.1.x]")},
		"BadChannel":       {reason: "an underscore", object: catalog(", channels: [stable, original_40]"), wants: "spec.source.catalog.channels[1]"},
		"ManyChannels":     {reason: "at most 256", object: catalog(", channels: [" + strings.Repeat("a, ", 256) + "a]"), wants: "spec.source.catalog.channels"},
		"Selector":         {reason: "labels", object: catalog(", selector: {matchLabels: {a: b}, matchExpressions: [{key: c, operator: Exists}]}")},
		"BadSelector":      {reason: "no operator", object: catalog(", selector: {matchExpressions: [{key: c}]}"), wants: "spec.source.catalog.selector.matchExpressions[0].operator"},
		"SelfCertified":    {reason: "allowed", object: catalog(", upgradeConstraintPolicy: SelfCertified")},
		"BadPolicy":        {reason: "not allowed", object: catalog(", upgradeConstraintPolicy: Any"), wants: "spec.source.catalog.upgradeConstraintPolicy"},
		"BadPackage":       {reason: "no name", object: source("{sourceType: Catalog, catalog: {packageName: -a}}"), wants: "spec.source.catalog.packageName"},
		"NoCatalog":        {reason: "the type says so", object: source("{sourceType: Catalog}"), wants: "spec.source", says: "catalog must be set"},
		"TwoSources":       {reason: "one only", object: source("{sourceType: Catalog, catalog: {packageName: a}, image: {ref: 'a.b/c:v1'}}"), wants: "spec.source", says: "image must be set"},
		"Image":            {reason: "by tag", object: source("{sourceType: Image, image: {ref: 'quay.io/team/bundle:v1.2.3'}}")},
		"ImageByDigest":    {reason: "by digest", object: source("{sourceType: Image, image: {ref: 'quay.io/team/bundle" + digest + "'}}")},
		"ImageByBoth":      {reason: "by both", object: source("{sourceType: Image, image: {ref: 'localhost:5000/bundle:v1" + digest + "'}}")},
		"ImageByNeither":   {reason: "latest is not meant", object: source("{sourceType: Image, image: {ref: 'localhost:5000/bundle'}}"), wants: "spec.source.image.ref", says: "must end with a tag"},
		"BadImage":         {reason: "upper case", object: source("{sourceType: Image, image: {ref: 'quay.io/Team/bundle:v1'}}"), wants: "spec.source.image.ref"},
		"ImageForChart":    {reason: "the type says so", object: source("{sourceType: Chart, image: {ref: 'a.b/c:v1'}}"), wants: "spec.source"},
		"Chart":            {reason: "by tag", object: source("{sourceType: Chart, chart: {ref: 'quay.io/team/chart:1.2.3'}}")},
		"ChartByNothing":   {reason: "where is it", object: source("{sourceType: Chart, chart: {}}"), wants: "spec.source.chart.ref"},
		"OtherSource":      {reason: "not allowed", object: source("{sourceType: Git}"), wants: "spec.source.sourceType", says: `"Catalog", "Image", "Chart"`},
		"NoSource":         {reason: "required", object: "spec: {namespace: a}", wants: "spec.source"},
		"NoNamespace":      {reason: "required", object: "spec: {source: {sourceType: Chart, chart: {ref: 'a.b/c:v1'}}}", wants: "spec.namespace"},
		"LongNamespace":    {reason: "63 at most", object: "spec: {namespace: " + strings.Repeat("a", 64) + ", source: {sourceType: Chart, chart: {ref: 'a.b/c:v1'}}}", wants: "spec.namespace"},
		"BadNamespace":     {reason: "a dot", object: "spec: {namespace: a.b, source: {sourceType: Chart, chart: {ref: 'a.b/c:v1'}}}", wants: "spec.namespace"},
		"ServiceAccount":   {reason: "allowed", object: spec(", serviceAccount: {name: installer}")},
		"NoServiceAccount": {reason: "a name", object: spec(", serviceAccount: {}"), wants: "spec.serviceAccount.name"},
		"Enforcement":      {reason: "allowed", object: spec(", install: {preflight: {crdUpgradeSafety: {enforcement: None}}}")},
		"EmptyInstall":     {reason: "nothing in it", object: spec(", install: {}"), wants: "spec.install"},
		"EmptyPreflight":   {reason: "nothing in it", object: spec(", install: {preflight: {}}"), wants: "spec.install.preflight"},
		"BadEnforcement":   {reason: "not allowed", object: spec(", install: {preflight: {crdUpgradeSafety: {enforcement: Warn}}}"), wants: "spec.install.preflight.crdUpgradeSafety.enforcement"},
		"Config":           {reason: "any object", object: spec(", config: {configType: Inline, inline: {a: {b: [1]}}}")},
		"NoConfig":         {reason: "required", object: spec(", config: {configType: Inline}"), wants: "spec.config", says: "inline must be set"},
		"EmptyConfig":      {reason: "nothing in it", object: spec(", config: {configType: Inline, inline: {}}"), wants: "spec.config.inline"},
		"Deadline":         {reason: "allowed", object: spec(", progressDeadlineMinutes: 10")},
		"ShortDeadline":    {reason: "ten at least", object: spec(", progressDeadlineMinutes: 9"), wants: "spec.progressDeadlineMinutes"},
		"LongDeadline":     {reason: "720 at most", object: spec(", progressDeadlineMinutes: 721"), wants: "spec.progressDeadlineMinutes"},

		"OtherPackage":        {reason: "immutable", old: catalog(""), object: source("{sourceType: Catalog, catalog: {packageName: b}}"), wants: "spec.source.catalog.packageName", says: "cannot be changed"},
		"OtherNamespace":      {reason: "immutable", old: catalog(""), object: "spec: {namespace: b, source: {sourceType: Catalog, catalog: {packageName: argocd-operator}}}", wants: "spec.namespace", says: "cannot be changed"},
		"OtherServiceAccount": {reason: "immutable", old: spec(", serviceAccount: {name: a}"), object: spec(", serviceAccount: {name: b}"), wants: "spec.serviceAccount.name", says: "cannot be changed"},
		"ServiceAccountGone":  {reason: "it can be taken away", old: spec(", serviceAccount: {name: a}"), object: spec("")},
		"ServiceAccountNew":   {reason: "it can be given", old: spec(""), object: spec(", serviceAccount: {name: a}")},

		"Bundle":     {reason: "what OLM writes", object: status("install: {bundle: {name: argocd-operator.v1.2.3, version: 1.2.3-rc.1+a, release: '5'}}")},
		"NoSemver":   {reason: "three numbers", object: status("install: {bundle: {name: a, version: '1.2'}}"), wants: "status.install.bundle.version"},
		"BadRelease": {reason: "a space", object: status("install: {bundle: {name: a, version: 1.2.3, release: 'a b'}}"), wants: "status.install.bundle.release"},
		"Active":     {reason: "what OLM writes", object: status("activeRevisions: [{name: a-1}, {name: a-2, conditions: [{type: Progressing, status: 'True', reason: RollingOut, message: '', lastTransitionTime: '2026-11-23T00:00:00Z'}]}]")},
	} {
		t.Run(name, func(t *testing.T) {
			errs := j.errors(j.read(t, tc.object), j.read(t, tc.old))
			if tc.wants == "" {
				if len(errs) > 0 {
					t.Errorf("%s: %v", tc.reason, errs.ToAggregate())
				}
				return
			}
			for _, err := range errs {
				if err.Field == tc.wants && strings.Contains(err.Error(), tc.says) {
					return
				}
			}
			t.Errorf("%s: %v, want an error of %s with %q", tc.reason, errs.ToAggregate(), tc.wants, tc.says)
		})
	}
	object := j.read(t, catalog(", other: 1"))
	if out, _ := json.Marshal(object["spec"]); string(out) != `{"namespace":"argocd","source":{"catalog":{"packageName":"argocd-operator","upgradeConstraintPolicy":"CatalogProvided"},"sourceType":"Catalog"}}` {
		t.Errorf("with its default, and without what is not known, it is %s", out)
	}
}
