//go:build integration

package template_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/version"

	"github.com/penstock-project/penstock/pkg/imagetemplate/annotated"
	"github.com/penstock-project/penstock/test/framework/plane"
)

// scenarios returns all scenarios, which share the control plane.
func scenarios() map[string]func(shared) {
	all := map[string]func(shared){
		"Design": design, "Changes": changes, "Conditions": conditionsOfOthers, "Removed": removed, "Kinds": kinds, "Sources": sourcesWithoutImage,
		"Takeover": takeover, "Olm": leftToOLM, "Own": own, "ClusterCatalog": clusterCatalog, "Many": many, "Quiet": quiet, "Away": away,
	}
	maps.Copy(all, threats())
	return all
}

func (w shared) minor() string {
	w.t.Helper()
	var said struct {
		ServerVersion version.Info `json:"serverVersion"`
	}
	w.decode(w.MustKubectl("version", "-o", "json"), &said)
	return strings.Split(said.ServerVersion.GitVersion, ".")[1]
}

func design(w shared) {
	alice := w.person("alice", w.maySee("MySample", "mysample"))
	w.define("mysample")
	w.sample("mysample", "v2")
	w.apply(alice, w.source("versions", "quay.io/kube-release-v{kube_major_version}/catalog:v{kube_major_version}.{kube_minor_version}", "image: 'quay.io/kube-release-v1/catalog:v1.20'"))
	w.await("versions", "it follows the version", resolvedTo("quay.io/kube-release-v1/catalog:v1."+w.minor()))
	w.apply(alice, w.source("sample", "quay.io/sample/catalog:"+w.variable("mysample"), "image: 'quay.io/sample/catalog:v1'"))
	object := w.await("sample", "it follows the object", resolvedTo("quay.io/sample/catalog:v2"))
	got := conditions(object)
	if len(got) != 2 || got[0].Type != resolvedType || got[1].Type != imageType {
		w.t.Errorf("the conditions are %v", got)
	}
	missing := w.variable("missing")
	w.apply(w.person("alice", w.maySee("mysample", "missing")), w.source("failing", "quay.io/x{kube_minor_version}/catalog:"+missing, "image: 'quay.io/old:v1'"))
	w.await("failing", "its variable has no value", unresolved("quay.io/old:v1", "quay.io/x{kube_minor_version}/catalog:"+missing, missing))
}

// changes: a value changes, is removed and comes back, and a user edits the image.
func changes(w shared) {
	alice := w.person("alice", w.maySee("one"))
	w.define("one")
	template := "quay.io/c:" + w.variable("one")
	w.apply(alice, w.source("catalog", template, "image: 'quay.io/c:v0'"))
	w.await("catalog", "the object is not there yet", unresolved("quay.io/c:v0", template, w.variable("one")))
	w.sample("one", "v2")
	first := w.await("catalog", "the object came", resolvedTo("quay.io/c:v2"))
	w.sample("one", "v3")
	second := w.await("catalog", "the object changed", resolvedTo("quay.io/c:v3"))
	if a, b := conditions(first), conditions(second); !a[0].LastTransitionTime.Equal(&b[0].LastTransitionTime) || !a[1].LastTransitionTime.Equal(&b[1].LastTransitionTime) {
		w.t.Errorf("the conditions have other times although their status is the same: %v, %v", a, b)
	}
	alice.MustKubectl("-n", w.name, "patch", "catalogsource", "catalog", "--type=merge", "-p", `{"spec":{"image":"quay.io/by-hand:v1"}}`)
	w.await("catalog", "an edit is overwritten", resolvedTo("quay.io/c:v3"))
	w.MustKubectl("-n", w.name, "patch", "samples."+w.group(), "one", "--type=json", "-p", `[{"op":"remove","path":"/spec/foo/bar"}]`)
	w.await("catalog", "the field was removed", unresolved("quay.io/c:v3", template, w.variable("one")))
	w.sample("one", "v4")
	w.await("catalog", "the field came back", resolvedTo("quay.io/c:v4"))
	w.MustKubectl("-n", w.name, "delete", "samples."+w.group(), "one")
	w.await("catalog", "the object was deleted", unresolved("quay.io/c:v4", template, w.variable("one")))
	w.sample("one", "a/b")
	w.sample("one", "v5")
	w.await("catalog", "the object was created again", resolvedTo("quay.io/c:v5"))
	// The catalog is created again with the same template.
	alice.MustKubectl("-n", w.name, "delete", "catalogsource", "catalog")
	w.apply(alice, w.source("catalog", template))
	w.await("catalog", "it had no image", resolvedTo("quay.io/c:v5"))
}

// conditionsOfOthers: conditions of other writers keep their content and order; Penstock's
// conditions come last.
func conditionsOfOthers(w shared) {
	alice := w.person("alice", "")
	w.apply(alice, w.source("catalog", ""))
	w.MustKubectl("-n", w.name, "patch", "catalogsource", "catalog", "--subresource=status", "--type=merge", "-p",
		`{"status":{"message":"theirs","conditions":[{"type":"Ready","status":"True","reason":"A","message":"a","observedGeneration":7,"lastTransitionTime":"2021-07-19T23:00:00Z"},{"type":"Another","status":"Unknown","reason":"B","message":"","lastTransitionTime":"2021-07-19T23:00:01Z"}]}}`)
	before := conditions(w.live("catalog"))
	w.apply(alice, w.source("catalog", "quay.io/c:{foo}"))
	after := w.await("catalog", "the syntax is wrong", func(o *unstructured.Unstructured) bool {
		return says(o, resolvedType) == "False UnableToResolve: Cannot construct catalog image reference, one or more template(s) has improper syntax"
	})
	got := conditions(after)
	if len(got) != 4 || fmt.Sprint(got[:2]) != fmt.Sprint(before) || got[2].Type != resolvedType || got[3].Type != imageType {
		w.t.Errorf("the conditions are %v, before they were %v", got, before)
	}
	w.apply(alice, w.source("catalog", "quay.io/c:v{kube_major_version}"))
	got = conditions(w.await("catalog", "the syntax was corrected", resolvedTo("quay.io/c:v1")))
	if len(got) != 4 || fmt.Sprint(got[:2]) != fmt.Sprint(before) {
		w.t.Errorf("the conditions are %v, before they were %v", got, before)
	}
}

// removed: without the annotation both conditions are removed, and the image stays.
func removed(w shared) {
	alice := w.person("alice", "")
	for name, change := range map[string][]string{"removed": {annotated.OLMAnnotation + "-"}, "emptied": {annotated.OLMAnnotation + "="}} {
		w.apply(alice, w.source(name, "quay.io/c:v{kube_major_version}"))
		w.await(name, "it is resolved", resolvedTo("quay.io/c:v1"))
		w.MustKubectl("-n", w.name, "patch", "catalogsource", name, "--subresource=status", "--type=json", "-p",
			`[{"op":"add","path":"/status/conditions/0","value":{"type":"Ready","status":"True","reason":"A","message":"a","lastTransitionTime":"2021-07-19T23:00:00Z"}}]`)
		alice.MustKubectl(append([]string{"-n", w.name, "annotate", "--overwrite", "catalogsource", name}, change...)...)
		w.await(name, "the conditions go", func(o *unstructured.Unstructured) bool {
			return image(o) == "quay.io/c:v1" && len(conditions(o)) == 1 && conditions(o)[0].Type == "Ready"
		})
	}
}

// kinds: a kind is created, deleted and created again. Templates can name cluster-scoped objects
// and objects of the core group.
func kinds(w shared) {
	alice := w.person("alice", w.maySee("one")+"- {apiGroups: [\"\"], resources: [configmaps], verbs: [get]}\n")
	template := "quay.io/c:" + w.variable("one")
	w.apply(alice, w.source("catalog", template, "image: 'quay.io/c:v0'"))
	w.await("catalog", "there is no such kind", unresolved("quay.io/c:v0", template, w.variable("one")))
	w.define("one")
	w.sample("one", "v1")
	w.await("catalog", "the kind came", resolvedTo("quay.io/c:v1"))
	w.MustKubectl("delete", "crd", "samples."+w.group())
	w.await("catalog", "the kind went", unresolved("quay.io/c:v1", template, w.variable("one")))
	w.define()
	w.sample("one", "v2")
	w.await("catalog", "the kind came again", resolvedTo("quay.io/c:v2"))
	w.MustKubectl("-n", w.name, "create", "configmap", "settings", "--from-literal=tag=v7")
	w.grant("maps", "{kind: ServiceAccount, namespace: penstock-system, name: penstock-templates}", `- {apiGroups: [""], resources: [configmaps], resourceNames: [settings], verbs: [get, list, watch]}`)
	w.apply(alice, w.source("core", "quay.io/c:{group:,version:v1,kind:ConfigMap,name:settings,namespace:"+w.name+",jsonpath:{.data.tag}}"))
	w.await("core", "it follows an object of the core group", resolvedTo("quay.io/c:v7"))
	w.MustKubectlInput(fmt.Sprintf(`
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: namespace-%[1]s}
rules:
- {apiGroups: [""], resources: [namespaces], resourceNames: [%[1]s], verbs: [get, list, watch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: namespace-%[1]s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: namespace-%[1]s}
subjects: [{kind: ServiceAccount, namespace: penstock-system, name: penstock-templates}]
`, w.name), "apply", "-f", "-")
	w.apply(w.Access, w.source("cluster", "quay.io/c:{group:,version:v1,kind:Namespace,name:"+w.name+",namespace:,jsonpath:{.metadata.name}}"))
	w.await("cluster", "it follows an object in no namespace", resolvedTo("quay.io/c:"+w.name))
}

// sourcesWithoutImage: Penstock sets no image in a source without an image, and unusual fields
// cause no error.
func sourcesWithoutImage(w shared) {
	alice := w.person("alice", "")
	w.apply(alice, w.source("internal", "quay.io/c:v{kube_major_version}", "sourceType: configmap", "configMap: a"))
	w.await("internal", "it has no image", func(o *unstructured.Unstructured) bool {
		return image(o) == "" && says(o, resolvedType) == `False UnableToResolve: Cannot construct catalog image reference, spec.sourceType is "configmap", and only grpc has an image`
	})
	w.apply(alice, w.source("strategy", "quay.io/c:v{kube_major_version}", "updateStrategy: {}"))
	w.await("strategy", "a strategy without a poll is none of our business", resolvedTo("quay.io/c:v1"))
	w.apply(alice, w.source("equal", "quay.io/c:v{kube_major_version}", "image: 'quay.io/c:v1'"))
	equal := w.await("equal", "it is as the template says already", resolvedTo("quay.io/c:v1"))
	if equal.GetGeneration() != 1 {
		w.t.Errorf("generation %d: the same image was written", equal.GetGeneration())
	}
}

// takeover: an image that a GitOps tool applies by force is set again, and managedFields shows
// which field the tool should ignore.
func takeover(w shared) {
	alice := w.person("alice", "")
	manifest := w.source("catalog", "quay.io/c:v{kube_major_version}", "image: 'quay.io/c:v0'")
	w.apply(alice, manifest)
	w.await("catalog", "it is resolved", resolvedTo("quay.io/c:v1"))
	w.apply(alice, manifest)
	object := w.await("catalog", "it is resolved again", resolvedTo("quay.io/c:v1"))
	owners := map[string]bool{}
	for _, entry := range object.GetManagedFields() {
		if entry.FieldsV1 != nil && strings.Contains(string(entry.FieldsV1.GetRawBytes()), `"f:image"`) {
			owners[entry.Manager] = true
		}
	}
	if len(owners) != 1 || !owners["penstock-image-templates"] {
		w.t.Errorf("the image belongs to %v", owners)
	}
}

// byOLM writes a condition as OLM's own controller does.
func (w shared) byOLM(name string, conditionMessage string) {
	w.t.Helper()
	patch := fmt.Sprintf(`{"status":{"conditions":[{"type":"TemplatesHaveResolved","status":"False","reason":"UnableToResolve","message":%q,"lastTransitionTime":"2021-07-19T23:00:00Z"}]}}`, conditionMessage)
	_, err := w.host.Resource(annotated.CatalogSources().Resource).Namespace(w.name).Patch(w.t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "catalog"}, "status")
	if err != nil {
		w.t.Fatal(err)
	}
}

// leftToOLM: if OLM's own controller is active, Penstock leaves OLM's annotation to it, and follows
// only its own annotation.
func leftToOLM(w shared) {
	alice := w.person("alice", "")
	w.apply(alice, w.source("catalog", "", "image: 'quay.io/c:v0'"))
	w.byOLM("catalog", "theirs")
	w.apply(alice, w.annotatedSource("catalog", map[string]string{annotated.OLMAnnotation: "quay.io/theirs:v{kube_major_version}", annotated.OwnAnnotation: "quay.io/ours:v{kube_major_version}"}, "image: 'quay.io/c:v0'"))
	w.await("catalog", "there are two templates", func(o *unstructured.Unstructured) bool {
		return image(o) == "quay.io/c:v0" && strings.Contains(says(o, resolvedType), "theirs") &&
			says(o, "penstock.dev/TemplatesHaveResolved") == "False UnableToResolve: Cannot construct catalog image reference, annotation olm.catalogImageTemplate is set too, and only one of the two can choose the image"
	})
	w.apply(alice, w.annotatedSource("catalog", map[string]string{annotated.OwnAnnotation: "quay.io/ours:v{kube_major_version}"}, "image: 'quay.io/c:v0'"))
	w.await("catalog", "ours is followed", func(o *unstructured.Unstructured) bool {
		return image(o) == "quay.io/ours:v1" && strings.Contains(says(o, resolvedType), "theirs") &&
			says(o, "penstock.dev/TemplatesHaveResolved") == succeeded && says(o, "penstock.dev/ResolvedImage") == "True AllTemplatesResolved: quay.io/ours:v1"
	})
}

// own tests Penstock's annotation alone.
func own(w shared) {
	alice := w.person("alice", "")
	w.apply(alice, w.annotatedSource("catalog", map[string]string{annotated.OwnAnnotation: "quay.io/c:v{kube_minor_version}"}))
	w.await("catalog", "it is resolved", func(o *unstructured.Unstructured) bool {
		return image(o) == "quay.io/c:v"+w.minor() && len(conditions(o)) == 2 && says(o, "penstock.dev/TemplatesHaveResolved") == succeeded
	})
}

// clusterCatalog: the catalogs of OLM v1 follow templates in the same way.
func clusterCatalog(w shared) {
	kind := annotated.ClusterCatalogs()
	w.MustKubectlInput(fmt.Sprintf(`{apiVersion: olm.operatorframework.io/v1, kind: ClusterCatalog, metadata: {name: %s, annotations: {olm.catalogImageTemplate: "127.0.0.1:1/c:v{kube_minor_version}"}}, spec: {availabilityMode: Unavailable, source: {type: Image, image: {ref: "127.0.0.1:1/c:v0"}}}}`, w.name), "apply", "-f", "-")
	want := "127.0.0.1:1/c:v" + w.minor()
	w.awaitObject(kind.Resource, "", w.name, "it is resolved", func(o *unstructured.Unstructured) bool {
		return kind.Image(o) == want && says(o, resolvedType) == succeeded && says(o, imageType) == "True AllTemplatesResolved: "+want && says(o, "Serving") != ""
	})
	w.MustKubectl("patch", "clustercatalog", w.name, "--type=merge", "-p", `{"spec":{"source":{"image":{"ref":"127.0.0.1:1/c:v0"}}}}`)
	w.awaitObject(kind.Resource, "", w.name, "an edit is overwritten", func(o *unstructured.Unstructured) bool { return kind.Image(o) == want })
	w.MustKubectl("delete", "clustercatalog", w.name)
}

// many: a change of one object updates all catalogs that name it, with one watch.
func many(w shared) {
	count := 40
	if isFull() {
		count = 200
	}
	w.define("one")
	w.sample("one", "v1")
	var all []string
	for i := range count {
		all = append(all, w.source(fmt.Sprintf("catalog-%d", i), "quay.io/c:"+w.variable("one")))
	}
	w.MustKubectlInput(strings.Join(all, "\n---\n"), "apply", "--server-side", "-f", "-")
	reached := func(want string) {
		for i := range count {
			w.await(fmt.Sprintf("catalog-%d", i), "it is resolved", resolvedTo(want))
		}
	}
	reached("quay.io/c:v1")
	began := time.Now()
	w.sample("one", "v2")
	reached("quay.io/c:v2")
	w.t.Logf("%d catalogs followed one object within %s", count, time.Since(began).Round(time.Millisecond))
}

// quiet: one change of an object leads to one write of the image and one of the status. An object
// that no template names any more is not watched.
func quiet(w shared) {
	alice := w.person("alice", w.maySee("one"))
	w.define("one")
	w.sample("one", "v1")
	w.apply(alice, w.source("catalog", "quay.io/c:"+w.variable("one")))
	w.await("catalog", "it is resolved", resolvedTo("quay.io/c:v1"))
	mark := w.Audit().Mark()
	// Changes of the catalog's metadata, and of another field of the object, cause no write.
	alice.MustKubectl("-n", w.name, "label", "catalogsource", "catalog", "a=b")
	w.MustKubectl("-n", w.name, "label", "samples."+w.group(), "one", "a=b")
	w.sample("one", "v2")
	w.await("catalog", "the object changed", resolvedTo("quay.io/c:v2"))
	alice.MustKubectl("-n", w.name, "delete", "catalogsource", "catalog")
	isHere := func(r plane.Request) bool { return strings.Contains(r.URI, w.name) }
	w.eventually("the watch ends with its last user", func() bool {
		watches := w.Audit().Since(0, plane.ByVerb("watch"), plane.ByResource("samples"), isHere)
		for _, one := range watches {
			if one.Ended.IsZero() {
				return false
			}
		}
		return len(watches) > 0
	})
	if writes := w.Audit().Since(mark, plane.Writes(), plane.ByAgent("penstock/"), plane.ByResource("catalogsources", "catalogsources/status"), isHere); len(writes) != 2 {
		w.t.Errorf("%d writes for one change of the image: %s", len(writes), writes)
	}
}

func isFull() bool { return os.Getenv("FULL") == "1" }

func (w shared) decode(text string, into any) {
	w.t.Helper()
	if err := json.Unmarshal([]byte(text), into); err != nil {
		w.t.Fatal(err)
	}
}
