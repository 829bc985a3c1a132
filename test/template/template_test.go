//go:build integration

// Package template_test tests images of catalogs with templates, on a real control plane with the
// real program. All scenarios share both; each has its own namespace and kinds:
//
//	go test ./test/template -run 'TestTemplates/Design'
package template_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/penstock-project/penstock/pkg/imagetemplate/annotated"
	"github.com/penstock-project/penstock/test/framework/await"
	"github.com/penstock-project/penstock/test/framework/client"
	"github.com/penstock-project/penstock/test/framework/cluster"
	"github.com/penstock-project/penstock/test/framework/penstock"
	"github.com/penstock-project/penstock/test/framework/poll"
)

type shared struct {
	*cluster.Cluster
	t      *testing.T
	host   dynamic.Interface
	server *penstock.Server
	// name is the scenario's namespace, and the prefix of its kinds' groups.
	name string
}

func TestTemplates(t *testing.T) {
	w := start(t)
	for name, do := range scenarios() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			do(w.in(t, strings.ToLower(name)))
		})
	}
}

func start(t *testing.T) shared {
	t.Helper()
	w := shared{Cluster: cluster.Start(t), t: t}
	var err error
	if w.host, err = dynamic.NewForConfig(w.Config()); err != nil {
		t.Fatal(err)
	}
	definition, err := os.ReadFile("testdata/catalogsource.yaml")
	if err != nil {
		t.Fatal(err)
	}
	w.MustKubectlInput(string(definition), "apply", "-f", "-")
	w.server = penstock.Build(t).Serve(t, w.Cluster, penstock.DataDir(t))
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("what the server complained of:\n%s", w.server.Complaints())
		}
		if strings.Contains(w.server.Log(), "panic") {
			t.Errorf("the server panicked:\n%s", w.server.Log())
		}
	})
	w.awaitStamps()
	return w
}

// awaitStamps waits until kube-apiserver calls the webhook for templates.
func (w shared) awaitStamps() {
	w.t.Helper()
	client.New(w.t, w.Config(), "default").Stamped(`{"apiVersion": "operators.coreos.com/v1alpha1", "kind": "CatalogSource", "metadata": {"name": "probe", "annotations": {"olm.catalogImageTemplate": "x"}}, "spec": {"sourceType": "grpc"}}`)
}

// in returns the cluster for a scenario, and creates the scenario's namespace.
func (w shared) in(t *testing.T, name string) shared {
	t.Helper()
	w.Cluster, w.t, w.name = w.Cluster.In(t), t, name
	w.MustKubectl("create", "namespace", name)
	return w
}

func (w shared) group() string { return w.name + ".example.com" }

// define installs kind Sample, and allows Penstock to read the samples with these names.
func (w shared) define(granted ...string) {
	w.t.Helper()
	w.MustKubectlInput(fmt.Sprintf(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: samples.%[1]s}
spec:
  group: %[1]s
  scope: Namespaced
  names: {kind: Sample, plural: samples, singular: sample}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
`, w.group()), "apply", "-f", "-")
	w.MustKubectl("wait", "--for=condition=Established", poll.TimeoutFlag, "crd/samples."+w.group())
	if len(granted) > 0 {
		w.grantReader(granted...)
	}
}

// grantReader allows Penstock to read samples.
func (w shared) grantReader(names ...string) {
	w.t.Helper()
	w.grant("templates", "{kind: ServiceAccount, namespace: penstock-system, name: penstock-templates}",
		fmt.Sprintf("- {apiGroups: [%s], resources: [samples], resourceNames: [%s], verbs: [get, list, watch]}", w.group(), strings.Join(names, ", ")))
}

func (w shared) grant(name, subject, rules string) {
	w.t.Helper()
	if rules == "" {
		rules = " []"
	}
	w.MustKubectlInput(fmt.Sprintf(`
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: %[1]s, namespace: %[2]s}
rules:
%[3]s
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: %[1]s, namespace: %[2]s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: %[1]s}
subjects: [%[4]s]
`, name, w.name, rules, subject), "apply", "--server-side", "--force-conflicts", "-f", "-")
}

// mayWrite are the rights to write CatalogSources.
const mayWrite = "- {apiGroups: [operators.coreos.com], resources: [catalogsources], verbs: [create, get, patch, update, delete]}\n"

// person returns a user who may write the scenario's CatalogSources, and has the rights in rules.
// It waits until the rights are effective.
func (w shared) person(name, rules string) *cluster.Access {
	w.t.Helper()
	user := name + "-" + w.name
	w.grant(name, fmt.Sprintf("{kind: User, apiGroup: rbac.authorization.k8s.io, name: %s}", user), mayWrite+rules)
	access := w.User(user)
	w.eventually("the rights of "+user+" are known", func() bool {
		return access.Kubectl("auth", "can-i", "delete", "catalogsources.operators.coreos.com", "-n", w.name).ExitCode == 0
	})
	return access
}

func (w shared) maySee(names ...string) string {
	return fmt.Sprintf("- {apiGroups: [%s], resources: [samples], resourceNames: [%s], verbs: [get]}\n", w.group(), strings.Join(names, ", "))
}

// sample writes a Sample with spec.foo.bar.
func (w shared) sample(name, bar string) {
	w.t.Helper()
	w.MustKubectlInput(fmt.Sprintf("{apiVersion: %s/v1, kind: Sample, metadata: {name: %s, namespace: %s}, spec: {foo: {bar: %s}}}", w.group(), name, w.name, bar), "apply", "-f", "-")
}

// variable returns the template variable for the field spec.foo.bar of a Sample.
func (w shared) variable(name string) string {
	return fmt.Sprintf("{group:%s,version:v1,kind:Sample,name:%s,namespace:%s,jsonpath:{.spec.foo.bar}}", w.group(), name, w.name)
}

// source returns the manifest of a CatalogSource with a template; more are further fields of spec.
func (w shared) source(name, template string, more ...string) string {
	annotations := map[string]string{}
	if template != "" {
		annotations[annotated.OLMAnnotation] = template
	}
	return w.annotatedSource(name, annotations, more...)
}

func (w shared) annotatedSource(name string, annotations map[string]string, more ...string) string {
	quoted, err := json.Marshal(annotations)
	if err != nil {
		w.t.Fatal(err)
	}
	spec := append([]string{"displayName: My always up2date Catalog"}, more...)
	if !strings.Contains(strings.Join(more, ""), "sourceType") {
		spec = append(spec, "sourceType: grpc")
	}
	return fmt.Sprintf("{apiVersion: operators.coreos.com/v1alpha1, kind: CatalogSource, metadata: {name: %s, namespace: %s, annotations: %s}, spec: {%s}}", name, w.name, quoted, strings.Join(spec, ", "))
}

func (w shared) apply(as *cluster.Access, manifest string) {
	w.t.Helper()
	as.MustKubectlInput(manifest, "apply", "--server-side", "--force-conflicts", "-f", "-")
}

// await waits until is returns true for a CatalogSource, and returns it.
func (w shared) await(name, what string, is func(*unstructured.Unstructured) bool) *unstructured.Unstructured {
	w.t.Helper()
	return w.awaitObject(annotated.CatalogSources().Resource, w.name, name, what, is)
}

func (w shared) awaitObject(resource schema.GroupVersionResource, namespace, name, what string, is func(*unstructured.Unstructured) bool) *unstructured.Unstructured {
	w.t.Helper()
	return await.Object(w.t, w.host.Resource(resource).Namespace(namespace), name, what, func(object *unstructured.Unstructured) (bool, error) {
		return object != nil && is(object), nil
	})
}

func image(object *unstructured.Unstructured) string {
	return annotated.CatalogSources().Image(object)
}

func conditions(object *unstructured.Unstructured) []metav1.Condition {
	var status struct {
		Conditions []metav1.Condition `json:"conditions"`
	}
	content, _ := json.Marshal(object.Object["status"])
	if err := json.Unmarshal(content, &status); err != nil {
		return nil
	}
	return status.Conditions
}

// says returns "status reason: message" of a condition; "" if it does not exist.
func says(object *unstructured.Unstructured, conditionType string) string {
	found := meta.FindStatusCondition(conditions(object), conditionType)
	if found == nil {
		return ""
	}
	return fmt.Sprintf("%s %s: %s", found.Status, found.Reason, found.Message)
}

const (
	resolvedType = "TemplatesHaveResolved"
	imageType    = "ResolvedImage"
	succeeded    = "True AllTemplatesResolved: catalog image reference was successfully resolved"
)

// resolvedTo reports whether a CatalogSource has an image, and both conditions match it.
func resolvedTo(want string) func(*unstructured.Unstructured) bool {
	return func(object *unstructured.Unstructured) bool {
		return image(object) == want && says(object, resolvedType) == succeeded && says(object, imageType) == "True AllTemplatesResolved: "+want
	}
}

// unresolved reports whether a CatalogSource has kept its image, and both conditions name the
// variables without a value.
func unresolved(kept, template string, variables ...string) func(*unstructured.Unstructured) bool {
	return func(object *unstructured.Unstructured) bool {
		return image(object) == kept &&
			says(object, resolvedType) == `False UnableToResolve: Cannot construct catalog image reference, variable(s) "`+strings.Join(variables, `", "`)+`" couldn't be resolved` &&
			says(object, imageType) == "False UnableToResolve: "+template
	}
}

func (w shared) live(name string) *unstructured.Unstructured {
	w.t.Helper()
	found, err := w.host.Resource(annotated.CatalogSources().Resource).Namespace(w.name).Get(w.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	return found
}

// eventually polls a check that cannot be watched.
func (w shared) eventually(what string, is func() bool) {
	w.t.Helper()
	err := poll.Until(w.t.Context(), func(context.Context) bool { return is() })
	if err != nil {
		w.t.Fatalf("%s: %v", what, err)
	}
}
