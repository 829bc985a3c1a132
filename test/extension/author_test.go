//go:build integration

package extension_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/penstock-project/penstock/pkg/extension"
	"github.com/penstock-project/penstock/pkg/extension/author"
	"github.com/penstock-project/penstock/test/framework/client"
	"github.com/penstock-project/penstock/test/framework/poll"
)

// authorScenarios test who counts as the author of a ClusterExtension. Mallory can write
// ClusterExtensions, and nothing else.
func authorScenarios() map[string]scenario {
	return map[string]scenario{
		"Forged":      forged,
		"Replayed":    replayed,
		"Posted":      posted,
		"AtOnce":      atOnce,
		"Kept":        kept,
		"TakenOver":   takenOver,
		"Bypass":      bypass,
		"Annotations": annotations,
		"Namesake":    namesake,
	}
}

// awaitStamps returns once kube-apiserver calls the webhook that stamps authors.
func (w shared) awaitStamps() {
	w.t.Helper()
	w.name = "default"
	client.New(w.t, w.Config(), "default").Stamped(w.extend("probe", "probe"))
}

// live returns an extension as stored.
func (w shared) live(name string) *unstructured.Unstructured {
	w.t.Helper()
	found, err := w.host.Resource(extension.Resource).Get(w.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	return found
}

// stampOf returns the content of an extension's author stamp. The signature is tested in
// names_test.go: without a key, a test can only compare the stamp with the object.
func (w shared) stampOf(object *unstructured.Unstructured) author.Stamp {
	w.t.Helper()
	var stamp author.Stamp
	if err := json.Unmarshal([]byte(object.GetAnnotations()[extension.AuthorAnnotation]), &stamp); err != nil {
		w.t.Fatalf("%s has no stamp: %v", object.GetName(), err)
	}
	digest, err := author.ClusterExtensions().Digest(object)
	if err != nil {
		w.t.Fatal(err)
	}
	if stamp.Digest != digest || stamp.Generation != object.GetGeneration() || stamp.Signature == "" {
		w.t.Errorf("the stamp of generation %d is for %d, the digest %s for %s", object.GetGeneration(), stamp.Generation, digest, stamp.Digest)
	}
	return stamp
}

// isBy fails unless who is the author.
func (w shared) isBy(name string, who person, after string) {
	w.t.Helper()
	if got := w.stampOf(w.live(name)).User; got != who.name {
		w.t.Errorf("after %s, %s was written by %s, want %s", after, name, got, who.name)
	}
}

func (w shared) alice() person   { return w.person("alice", mayWrite) }
func (w shared) mallory() person { return w.person("mallory", mayWrite+mayForge) }

// mayForge are rights to status and finalizers, which must not help a forger.
const mayForge = `
- {apiGroups: [olm.operatorframework.io], resources: [clusterextensions/status, clusterextensions/finalizers], verbs: [get, patch, update]}
`

const forgedStamp = `{"user":"admin","groups":["system:masters"],"time":"2026-11-23T08:00:00Z","bypass":true,"name":"x","generation":1,"digest":"sha256:00","signature":"00"}`

// forged: the stored stamp names the user who changed the spec, for any annotation in the request.
func forged(w shared) {
	alice, mallory := w.alice(), w.mallory()
	name := w.name
	w.apply(alice, name, w.extend(name, name))
	w.isBy(name, alice, "the apply")
	before := w.live(name).GetAnnotations()[extension.AuthorAnnotation]
	quoted, _ := json.Marshal(forgedStamp)
	merge := fmt.Sprintf(`{"metadata":{"annotations":{%q:%s}}}`, extension.AuthorAnnotation, quoted)
	// The controller may write the status at any moment. Then read the object again.
	replace := func(change func(*unstructured.Unstructured), flags ...string) {
		for try := 1; ; try++ {
			object := w.live(name)
			change(object)
			text, err := object.MarshalJSON()
			if err != nil {
				w.t.Fatal(err)
			}
			out := mallory.KubectlInput(string(text), append([]string{"replace", "-f", "-"}, flags...)...)
			if out.ExitCode == 0 {
				return
			}
			if try == 10 || !strings.Contains(out.Stderr, "the object has been modified") {
				w.t.Fatal(out)
			}
		}
	}
	forge := func(o *unstructured.Unstructured) {
		of := o.GetAnnotations()
		of[extension.AuthorAnnotation] = forgedStamp
		o.SetAnnotations(of)
	}
	for what, do := range map[string]func(){
		"a merge patch": func() { mallory.MustKubectl("patch", "clusterextension", name, "--type=merge", "-p", merge) },
		"a patch by JSON": func() {
			mallory.MustKubectl("patch", "clusterextension", name, "--type=json", "-p", `[{"op":"remove","path":"/metadata/annotations/penstock.dev~1author"}]`)
		},
		"a replace": func() { replace(forge) },
		"one without": func() {
			replace(func(o *unstructured.Unstructured) { o.SetAnnotations(nil) })
		},
		"the status": func() {
			mallory.MustKubectl("patch", "clusterextension", name, "--subresource=status", "--type=merge", "-p", merge)
		},
		"a replaced status": func() { replace(forge, "--subresource=status") },
		"an apply": func() {
			mallory.MustKubectlInput(fmt.Sprintf("{apiVersion: olm.operatorframework.io/v1, kind: ClusterExtension, metadata: {name: %s, annotations: {%s: %s}}}", name, extension.AuthorAnnotation, quoted),
				"apply", "--server-side", "--force-conflicts", "--field-manager=other", "-f", "-")
		},
	} {
		do()
		if after := w.live(name).GetAnnotations()[extension.AuthorAnnotation]; after != before {
			w.t.Errorf("after %s the stamp is %s, want that of alice: %s", what, after, before)
		}
	}
	mallory.MustKubectl("patch", "clusterextension", name, "--type=merge", "-p", fmt.Sprintf(`{"metadata":{"annotations":{%q:%s}},"spec":{"progressDeadlineMinutes":20}}`, extension.AuthorAnnotation, quoted))
	w.isBy(name, mallory, "a change of the spec with a forged stamp")
	other := name + "-import"
	w.apply(mallory, other, strings.Replace(w.extend(other, name), "annotations: {", "annotations: {"+extension.AuthorAnnotation+": "+string(quoted)+", ", 1))
	w.isBy(other, mallory, "a creation with a forged stamp")
}

// replayed: a stamp of another user is not valid for another extension, for an old spec, or after a
// deletion.
func replayed(w shared) {
	alice, mallory := w.alice(), w.mallory()
	name := w.name
	w.apply(alice, name, w.extend(name, name))
	stamp := w.live(name).GetAnnotations()[extension.AuthorAnnotation]
	quoted, _ := json.Marshal(stamp)
	with := func(manifest string) string {
		return strings.Replace(manifest, "annotations: {", "annotations: {"+extension.AuthorAnnotation+": "+string(quoted)+", ", 1)
	}
	w.apply(mallory, name+"-other", with(w.extend(name+"-other", name)))
	w.isBy(name+"-other", mallory, "a copy")
	mallory.MustKubectl("patch", "clusterextension", name, "--type=merge", "-p", `{"spec":{"progressDeadlineMinutes":20}}`)
	mallory.MustKubectl("patch", "clusterextension", name, "--type=merge", "-p", fmt.Sprintf(`{"spec":{"progressDeadlineMinutes":null},"metadata":{"annotations":{%q:%s}}}`, extension.AuthorAnnotation, quoted))
	w.isBy(name, mallory, "there and back")
	mallory.MustKubectl("delete", "clusterextension", name)
	w.awaitGone(extension.Resource, name, "it is deleted")
	w.apply(mallory, name, with(w.extend(name, name)))
	w.isBy(name, mallory, "a creation of the same name")
}

// posted: Penstock refuses admission reviews that kube-apiserver did not send.
func posted(w shared) {
	mallory := w.mallory()
	review := `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","operation":"CREATE",` +
		`"kind":{"group":"olm.operatorframework.io","version":"v1","kind":"ClusterExtension"},"name":"x","userInfo":{"username":"admin","groups":["system:masters"]},` +
		`"object":{"apiVersion":"olm.operatorframework.io/v1","kind":"ClusterExtension","metadata":{"name":"x"},"spec":{"namespace":"x"}}}}`
	const path = "/apis/olm.operatorframework.io/v1alpha1/webhooks/extension-author-bypass"
	direct := &rest.Config{Host: fmt.Sprintf("https://127.0.0.1:%d", w.server().Port()), TLSClientConfig: rest.TLSClientConfig{Insecure: true}}
	forgedHeaders := rest.CopyConfig(direct)
	forgedHeaders.WrapTransport = func(next http.RoundTripper) http.RoundTripper {
		return headers{next: next, of: map[string]string{"X-Remote-User": "system:apiserver", "X-Remote-Group": "system:masters"}}
	}
	for who, config := range map[string]*rest.Config{
		"nobody":                        direct,
		"nobody, with headers":          forgedHeaders,
		"mallory":                       mallory.Config(),
		"an administrator":              w.Config(),
		"an administrator, as somebody": impersonating(w.Config(), "system:apiserver"),
	} {
		client, err := kubernetes.NewForConfig(config)
		if err != nil {
			w.t.Fatal(err)
		}
		var code int
		out, _ := client.RESTClient().Post().AbsPath(path).SetHeader("Content-Type", "application/json").Body([]byte(review)).Do(w.t.Context()).StatusCode(&code).Raw()
		if code != http.StatusForbidden && code != http.StatusUnauthorized || strings.Contains(string(out), "signature") || strings.Contains(string(out), "patch") {
			w.t.Errorf("%s got %d %s", who, code, out)
		}
	}
}

// headers adds headers to each request.
type headers struct {
	next http.RoundTripper
	of   map[string]string
}

// RoundTrip implements http.RoundTripper.
func (h headers) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	for name, value := range h.of {
		r.Header.Set(name, value)
	}
	return h.next.RoundTrip(r)
}

func impersonating(config *rest.Config, who string) *rest.Config {
	config = rest.CopyConfig(config)
	config.Impersonate = rest.ImpersonationConfig{UserName: who}
	return config
}

// atOnce: two users write concurrently. The author is the writer whose spec is stored.
func atOnce(w shared) {
	name := w.name
	deadlines := map[string]string{}
	var writers []dynamic.Interface
	var patches []string
	for i, who := range []person{w.alice(), w.mallory()} {
		client, err := dynamic.NewForConfig(who.Config())
		if err != nil {
			w.t.Fatal(err)
		}
		deadline := fmt.Sprint(20 + i)
		deadlines[deadline] = who.name
		writers, patches = append(writers, client), append(patches, `{"spec":{"progressDeadlineMinutes":`+deadline+`}}`)
		if i == 0 {
			w.apply(who, name, w.extend(name, name))
		}
	}
	for range 20 {
		var both sync.WaitGroup
		for i, client := range writers {
			both.Go(func() {
				if _, err := client.Resource(extension.Resource).Patch(w.t.Context(), name, "application/merge-patch+json", []byte(patches[i]), metav1.PatchOptions{}); err != nil {
					w.t.Errorf("patch %d: %v", i, err)
				}
			})
		}
		both.Wait()
		object := w.live(name)
		deadline, _, _ := unstructured.NestedInt64(object.Object, "spec", "progressDeadlineMinutes")
		if got := w.stampOf(object).User; got != deadlines[fmt.Sprint(deadline)] {
			w.t.Fatalf("the deadline is %d, and its author %s", deadline, got)
		}
	}
}

// kept: a write that does not change the desired content does not change the author.
func kept(w shared) {
	alice, mallory := w.alice(), w.mallory()
	name := w.name
	w.apply(alice, name, w.extend(name, name))
	before := w.live(name).GetAnnotations()[extension.AuthorAnnotation]
	mallory.MustKubectl("label", "clusterextension", name, "team=b")
	mallory.MustKubectl("annotate", "clusterextension", name, "example.com/team=b")
	mallory.MustKubectl("patch", "clusterextension", name, "--type=merge", "-p", `{"metadata":{"finalizers":["example.com/x"]}}`)
	mallory.MustKubectl("patch", "clusterextension", name, "--type=merge", "-p", `{"metadata":{"finalizers":null}}`)
	mallory.MustKubectl("patch", "clusterextension", name, "--subresource=status", "--type=merge", "-p", `{"status":{"install":{"bundle":{"name":"a","version":"1.0.0"}}}}`)
	if after := w.live(name).GetAnnotations()[extension.AuthorAnnotation]; after != before {
		w.t.Errorf("the stamp is %s, want %s", after, before)
	}
	mallory.MustKubectl("delete", "clusterextension", name)
}

// takenOver: a user who changes an annotation or renews the stamp becomes the author of the whole
// spec. A warning says so.
func takenOver(w shared) {
	alice, bob := w.alice(), w.person("bob", mayWrite)
	name := w.name
	w.apply(alice, name, w.extend(name, name))
	out := bob.Kubectl("annotate", "clusterextension", name, extension.ApprovalAnnotation+"=Manual")
	if want := "was written by " + alice.name; out.ExitCode != 0 || !strings.Contains(out.Stderr, want) {
		w.t.Errorf("bob got %s, want %q", out, want)
	}
	w.isBy(name, bob, "an annotation of bob")
	alice.MustKubectl("annotate", "--overwrite", "clusterextension", name, extension.AuthorAnnotation+"="+author.Renew)
	w.isBy(name, alice, "a renewal by alice")
	if stamp := w.stampOf(w.live(name)); stamp.Extension != string(w.live(name).GetUID()) || stamp.Generation != 1 {
		w.t.Errorf("the stamp is %v", stamp)
	}
}

// bypass: a stamp records whether its author had the right to bypass.
func bypass(w shared) {
	name := w.name
	chief := w.person("chief", mayWrite+fmt.Sprintf("\n- {apiGroups: [policy.penstock.dev], resources: [privilegechecks], resourceNames: [%s], verbs: [bypass]}\n", name))
	w.apply(chief, name, w.extend(name, name))
	if !w.stampOf(w.live(name)).Bypass {
		w.t.Error("chief may bypass for this extension, but the stamp does not record it")
	}
	w.apply(chief, name+"-other", w.extend(name+"-other", name))
	if w.stampOf(w.live(name + "-other")).Bypass {
		w.t.Error("chief cannot bypass for another extension, but the stamp records it")
	}
}

// namesake: a user of the host has the name of Penstock's loopback user and no rights. The name
// gives the user no additional rights.
func namesake(w shared) {
	const name = "system:apiserver"
	w.grant(name, "User", mayWrite+"- {apiGroups: [olm.operatorframework.io], resources: [clusterextensionrevisions], verbs: [create]}\n")
	w.publish(w.name, bundle{Package: w.name, Version: "1.0.0"})
	w.apply(person{Access: w.User(name), name: name}, w.name, w.extend(w.name, w.name))
	w.awaitExtension(w.name, "the missing rights are named", func(e *extension.Extension) bool {
		return strings.Contains(message(e, "Progressing"), name+" cannot") && strings.Contains(message(e, "Progressing"), "serviceaccounts")
	})
	if out := w.Kubectl("get", "cer", w.name+"-1"); out.ExitCode == 0 {
		w.t.Errorf("a revision exists: %s", out)
	}
}

// annotations: Penstock refuses invalid annotations, and names the allowed values.
func annotations(w shared) {
	alice := w.alice()
	name := w.name
	refused := func(manifest string, wants ...string) {
		w.t.Helper()
		out := alice.KubectlInput(manifest, "apply", "--server-side", "-f", "-")
		for _, want := range append(wants, "is invalid") {
			if out.ExitCode == 0 || !strings.Contains(out.Stderr, want) {
				w.t.Errorf("%s: %s, want %q", manifest, out, want)
			}
		}
	}
	refused(w.extend(name, name, extension.ApprovalAnnotation+": Always"), "metadata.annotations[penstock.dev/upgrade-approval]", `"Automatic", "Reviewed", "Manual"`)
	refused(w.extend(name, name, extension.SuccessDelayAnnotation+": '1h'"), "metadata.annotations[penstock.dev/success-delay-seconds]", "from 0 to 86400")
	refused(w.extend(name, name, "penstock.dev/aproval: Manual"), "metadata.annotations[penstock.dev/aproval]", "must be one of penstock.dev/upgrade-approval")
	w.apply(alice, name, w.extend(name, name, extension.ApprovalAnnotation+": Manual", extension.TargetAnnotation+": edge-1"))
	refused(w.extend(name, name, extension.ApprovalAnnotation+": Manual", extension.TargetAnnotation+": edge-2"), `it was "edge-1"`)
}

// unregistered: a write that no webhook stamps has no author, even if it restores an earlier spec
// with its stamp. After a new write the author is known.
func unregistered(w shared) {
	alice, mallory := w.alice(), w.mallory()
	name := w.name
	w.publish(name, bundle{Package: name, Version: "1.0.0"})
	w.apply(alice, name, w.extend(name, name))
	denied := func(who person) func(*extension.Extension) bool {
		return func(e *extension.Extension) bool {
			return strings.Contains(message(e, "Ready"), who.name+" cannot create")
		}
	}
	w.awaitExtension(name, "alice lacks the rights", denied(alice))
	w.MustKubectl("annotate", "namespace", "penstock-system", "penstock.dev/unregistered-at=now")
	w.MustKubectl("delete", "mutatingwebhookconfiguration,validatingwebhookconfiguration", "penstock")
	back := func() {
		w.MustKubectl("annotate", "namespace", "penstock-system", "penstock.dev/unregistered-at-")
		for _, kind := range []string{"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"} {
			w.KubectlInput("{apiVersion: admissionregistration.k8s.io/v1, kind: "+kind+", metadata: {name: penstock}}", "create", "-f", "-")
		}
		w.awaitStamps()
	}
	again := sync.OnceFunc(back)
	w.t.Cleanup(again)
	stamp := func() string { return w.live(name).GetAnnotations()[extension.AuthorAnnotation] }
	ofAlice := stamp()
	// kube-apiserver drops the two webhooks at different times. As long as it knows one of them,
	// the write is stamped or refused.
	err := poll.Until(w.t.Context(), func(context.Context) bool {
		last := stamp()
		out := mallory.Kubectl("patch", "clusterextension", name, "--type=merge", "-p", fmt.Sprintf(`{"spec":{"progressDeadlineMinutes":%d}}`, 20+time.Now().UnixNano()%600))
		return out.ExitCode == 0 && stamp() == last
	})
	if err != nil {
		w.t.Fatal("authors are stamped without webhooks")
	}
	quoted, _ := json.Marshal(ofAlice)
	mallory.MustKubectl("patch", "clusterextension", name, "--type=merge", "-p", fmt.Sprintf(`{"metadata":{"annotations":{%q:%s}},"spec":{"progressDeadlineMinutes":null}}`, extension.AuthorAnnotation, quoted))
	if stamp() != ofAlice {
		w.t.Error("the stamp of alice is not back: the test sees nothing")
	}
	w.awaitExtension(name, "nobody is its author", all(is("Ready=False/AuthorUnknown: the author of this ClusterExtension, as it is now, is not known"),
		func(e *extension.Extension) bool { return e.Spec.ProgressDeadlineMinutes == 0 }))
	again()
	mallory.MustKubectl("annotate", "--overwrite", "clusterextension", name, extension.AuthorAnnotation+"="+author.Renew)
	w.isBy(name, mallory, "a renewal")
	w.awaitExtension(name, "mallory lacks the rights", denied(mallory))
}
