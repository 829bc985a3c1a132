//go:build integration

package template_test

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/penstock-project/penstock/pkg/extension"
	"github.com/penstock-project/penstock/pkg/extension/author"
	"github.com/penstock-project/penstock/pkg/imagetemplate/annotated"
	"github.com/penstock-project/penstock/test/framework/poll"
)

// threats returns the rows of docs/reference/threat-model.md that are attacks with a template.
func threats() map[string]func(shared) {
	return map[string]func(shared){
		"Secret": secretsNever, "NoRight": noRight, "Withdrawn": withdrawn, "Alike": alike, "Stamp": stampStays, "Hostile": hostileValue,
		"Revision": byRevision,
	}
}

func (w shared) refused(out fmt.Stringer, failed bool, want string) {
	w.t.Helper()
	if !failed || !strings.Contains(out.String(), want) {
		w.t.Errorf("want a refusal with %q: %s", want, out)
	}
}

// secretsNever: a template never reads a Secret, whatever the user's rights.
func secretsNever(w shared) {
	w.MustKubectl("-n", w.name, "create", "secret", "generic", "creds", "--from-literal=tag=v1")
	out := w.KubectlInput(w.source("catalog", "quay.io/c:{group:,version:v1,kind:Secret,name:creds,namespace:"+w.name+",jsonpath:{.data.tag}}"), "apply", "-f", "-")
	w.refused(out, out.ExitCode != 0, "templates never read Secrets")
}

// noRight: a user who writes a template must have the right to get the object, also when the user
// changes another user's template.
func noRight(w shared) {
	w.define("one")
	w.sample("one", "v1")
	template := "quay.io/c:" + w.variable("one")
	mallory, alice := w.person("mallory", ""), w.person("alice", w.maySee("one"))
	out := mallory.KubectlInput(w.source("catalog", template), "apply", "-f", "-")
	w.refused(out, out.ExitCode != 0, "mallory-noright cannot get samples."+w.group()+" noright/one")
	w.apply(alice, w.source("catalog", template))
	w.await("catalog", "alice may", resolvedTo("quay.io/c:v1"))
	out = mallory.Kubectl("-n", w.name, "annotate", "--overwrite", "catalogsource", "catalog", annotated.OLMAnnotation+"=quay.io/mallory:"+w.variable("one"))
	w.refused(out, out.ExitCode != 0, "mallory-noright cannot get")
	out = mallory.Kubectl("-n", w.name, "annotate", "--overwrite", "catalogsource", "catalog", extension.AuthorAnnotation+"="+author.Renew)
	w.refused(out, out.ExitCode != 0, "mallory-noright cannot get")
	// The stamp of alice's catalog is copied to a catalog of mallory.
	stamp := w.live("catalog").GetAnnotations()[extension.AuthorAnnotation]
	out = mallory.KubectlInput(w.annotatedSource("copy", map[string]string{annotated.OLMAnnotation: template, extension.AuthorAnnotation: stamp}), "apply", "--server-side", "-f", "-")
	w.refused(out, out.ExitCode != 0, "mallory-noright cannot get")
	// Another namespace and object do not help.
	out = mallory.KubectlInput(w.source("catalog-2", "quay.io/c:{group:,version:v1,kind:ConfigMap,name:kube-root-ca.crt,namespace:kube-system,jsonpath:{.data.x}}"), "apply", "-f", "-")
	w.refused(out, out.ExitCode != 0, "mallory-noright cannot get configmaps kube-system/kube-root-ca.crt")
}

// withdrawn: the author's right is checked at each resolution.
func withdrawn(w shared) {
	w.define("one", "two")
	w.sample("one", "v1")
	template := "quay.io/c:" + w.variable("one")
	alice := w.person("alice", w.maySee("one"))
	w.apply(alice, w.source("catalog", template))
	w.await("catalog", "alice may", resolvedTo("quay.io/c:v1"))
	alice = w.person("alice", "")
	w.eventually("alice lost the right", func() bool {
		return alice.Kubectl("auth", "can-i", "get", "samples."+w.group()+"/one", "-n", w.name).ExitCode != 0
	})
	w.sample("one", "v2")
	w.await("catalog", "alice cannot any more", unresolved("quay.io/c:v1", template, w.variable("one")))
}

// byRevision: Penstock writes the content of a revision for its user, and may read more than that
// user. So Penstock does not become the author; a user must sign the template.
func byRevision(w shared) {
	w.define("one")
	w.sample("one", "v1")
	template := "quay.io/c:" + w.variable("one")
	mallory, alice := w.person("mallory", ""), w.person("alice", w.maySee("one"))
	w.MustKubectl("create", "clusterrole", w.name, "--verb=create,get", "--resource=clusterextensionrevisions.olm.operatorframework.io")
	w.MustKubectl("create", "clusterrolebinding", w.name, "--clusterrole="+w.name, "--user=mallory-"+w.name)
	w.eventually("mallory may create revisions", func() bool {
		return mallory.Kubectl("auth", "can-i", "get", "clusterextensionrevisions.olm.operatorframework.io").ExitCode == 0
	})
	mallory.MustKubectlInput(fmt.Sprintf("{apiVersion: olm.operatorframework.io/v1alpha1, kind: ClusterExtensionRevision, metadata: {name: %s-1}, spec: {revision: 1, phases: [{name: all, objects: [{object: %s}]}]}}",
		w.name, w.source("catalog", template)), "create", "-f", "-")
	w.MustKubectl("wait", "--for=condition=Succeeded", poll.TimeoutFlag, "cer/"+w.name+"-1")
	w.await("catalog", "nobody has signed it", unresolved("", template, w.variable("one")))
	if stamp, found := w.live("catalog").GetAnnotations()[extension.AuthorAnnotation]; found {
		w.t.Errorf("the stamp is %s", stamp)
	}
	out := mallory.Kubectl("-n", w.name, "annotate", "--overwrite", "catalogsource", "catalog", extension.AuthorAnnotation+"="+author.Renew)
	w.refused(out, out.ExitCode != 0, "mallory-revision cannot get")
	alice.MustKubectl("-n", w.name, "annotate", "--overwrite", "catalogsource", "catalog", extension.AuthorAnnotation+"="+author.Renew)
	w.await("catalog", "alice has signed it", resolvedTo("quay.io/c:v1"))
	w.sample("one", "v2")
	w.await("catalog", "it is followed", resolvedTo("quay.io/c:v2"))
}

// alike: the status is the same for an object that is unreadable or absent, and for an empty field.
// An administrator grants which objects Penstock may read.
func alike(w shared) {
	w.define("missing", "empty")
	w.sample("forbidden", "s3cr3t")
	w.sample("empty", `""`)
	alice := w.person("alice", w.maySee("forbidden", "missing", "empty"))
	shown := map[string]string{}
	for _, name := range []string{"forbidden", "missing", "empty"} {
		template := "quay.io/c:" + w.variable(name)
		w.apply(alice, w.source(name, template, "image: 'quay.io/c:v0'"))
		found := w.await(name, "it is unresolved", unresolved("quay.io/c:v0", template, w.variable(name)))
		all := conditions(found)
		for i := range all {
			all[i].LastTransitionTime.Reset()
		}
		shown[name] = strings.ReplaceAll(fmt.Sprint(all), name, "NAME")
	}
	if shown["forbidden"] != shown["missing"] || shown["empty"] != shown["missing"] {
		w.t.Errorf("they differ: %v", shown)
	}
	w.grantReader("missing", "empty", "forbidden")
	w.await("forbidden", "an administrator granted it", resolvedTo("quay.io/c:s3cr3t"))
}

// stampStays: Penstock's writes of the image, and other users' writes to the rest of the spec, keep
// the author.
func stampStays(w shared) {
	w.define("one")
	w.sample("one", "v1")
	alice, bob := w.person("alice", w.maySee("one")), w.person("bob", "")
	w.apply(alice, w.source("catalog", "quay.io/c:"+w.variable("one")))
	stamp := w.await("catalog", "it is resolved", resolvedTo("quay.io/c:v1")).GetAnnotations()[extension.AuthorAnnotation]
	if !strings.Contains(stamp, `"alice-stamp"`) {
		w.t.Errorf("the stamp is %s", stamp)
	}
	bob.MustKubectl("-n", w.name, "patch", "catalogsource", "catalog", "--type=merge", "-p", `{"spec":{"publisher":"bob"},"metadata":{"annotations":{"penstock.dev/author":null}}}`)
	w.sample("one", "v2")
	object := w.await("catalog", "it is followed on", resolvedTo("quay.io/c:v2"))
	if got := object.GetAnnotations()[extension.AuthorAnnotation]; got != stamp {
		w.t.Errorf("the stamp is %s, and was %s", got, stamp)
	}
}

// hostileValue: a value that is not a valid part of a reference does not count, and is never shown.
func hostileValue(w shared) {
	const value = "s3cr3t-v1@sha256:0123"
	w.define("one")
	w.sample("one", "'"+value+"'")
	template := "quay.io/c:" + w.variable("one")
	alice := w.person("alice", w.maySee("one"))
	w.apply(alice, w.source("catalog", template, "image: 'quay.io/c:v0'"))
	w.await("catalog", "the value is none", unresolved("quay.io/c:v0", template, w.variable("one")))
	w.sample("one", "'{kube_minor_version}'")
	w.sample("one", "v1")
	object := w.await("catalog", "the value is one", resolvedTo("quay.io/c:v1"))
	for where, text := range map[string]string{
		"the object": shownWithout(object), "the events": w.MustKubectl("-n", w.name, "get", "events", "-o", "json"), "the log": w.server.Log(),
	} {
		if strings.Contains(text, "s3cr3t-v1") {
			w.t.Errorf("%s has the value", where)
		}
	}
	if events := w.MustKubectl("-n", w.name, "get", "events", "-o", "json"); strings.Contains(events, "quay.io/c:v1") {
		w.t.Errorf("the events have the image: %s", events)
	}
}

func shownWithout(object *unstructured.Unstructured) string { return fmt.Sprint(object.Object) }
