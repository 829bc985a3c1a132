//go:build integration

package extension_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/penstock-project/penstock/pkg/extension"
	"github.com/penstock-project/penstock/test/framework/plane"
)

// aloneScenarios run in sequence, before all other scenarios.
func aloneScenarios() map[string]scenario {
	return map[string]scenario{"ClusterUpgrade": planOfUpgrade, "Unregistered": unregistered, "Idle": idle, "OtherController": otherController, "Killed": killed, "FleetKilled": fleetKilled, "Looping": looping}
}

// byLoop selects requests of the extension controller, the catalog controller and the engine.
func byLoop(r plane.Request) bool {
	for _, part := range []string{" extensions", " catalogs", " rollout", " watch", " events"} {
		if strings.HasPrefix(r.UserAgent, "penstock/") && strings.HasSuffix(r.UserAgent, part) {
			return true
		}
	}
	return false
}

// Idle: installed extensions cost no requests.
func idle(w shared) {
	count, silence := 10, 5*time.Second
	if os.Getenv("FULL") == "1" {
		count, silence = 100, 30*time.Second
	}
	ref := w.pushFiles("charts/"+w.name, map[string]string{
		"Chart.yaml":          "apiVersion: v2\nname: lamp\nversion: 1.0.0\n",
		"templates/lamp.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}}\ndata: {size: {{ .Values.size | quote }}}\n",
	})
	root := w.person("root", "- {apiGroups: [\"*\"], resources: [\"*\"], verbs: [\"*\"]}\n")
	name := func(i int) string { return fmt.Sprintf("%s-%d", w.name, i) }
	for i := range count {
		w.apply(root, name(i), fmt.Sprintf("{apiVersion: olm.operatorframework.io/v1, kind: ClusterExtension, metadata: {name: %s}, spec: {namespace: %s, source: {sourceType: Chart, chart: {ref: %q}}, config: {configType: Inline, inline: {size: %d}}}}", name(i), w.name, ref, i))
	}
	for i := range count {
		w.awaitExtension(name(i), "it is ready", func(e *extension.Extension) bool { return strings.HasPrefix(condition(e, "Ready"), "True/") })
	}
	if got := w.MustKubectl("-n", w.name, "get", "configmap", name(3), "-o", "jsonpath={.data.size}"); got != "3" {
		w.t.Errorf("the chart received %q", got)
	}
	// Status reports of the last extensions may still arrive.
	w.quiet()
	mark := w.Audit().Mark()
	// The test waits a fixed time, because it expects no event.
	timer := time.NewTimer(silence)
	defer timer.Stop()
	<-timer.C
	if requests := w.Audit().Since(mark, byLoop, plane.Not(plane.ByVerb("watch"))); len(requests) > 0 {
		w.t.Errorf("%d requests in %s of silence:\n%s", len(requests), silence, requests)
	}
	if before := w.Audit().Since(0, byLoop, plane.Writes()); len(before) == 0 {
		w.t.Error("not even the installations are in the audit log: the test sees nothing")
	}
}

// Looping: one user has 24 and then 200 extensions whose charts loop until their time limit. An
// installation of another user takes at most 1.5 times as long as before, in the same run.
func looping(w shared) {
	loop := w.pushFiles("charts/"+w.name+"-loop", map[string]string{
		"Chart.yaml":          "apiVersion: v2\nname: loop\nversion: 1.0.0\n",
		"templates/loop.yaml": "{{ range until 9999 }}{{ range until 9999 }}{{ range until 9999 }}{{ end }}{{ end }}{{ end }}",
	})
	lamp := w.pushFiles("charts/"+w.name, map[string]string{
		"Chart.yaml":          "apiVersion: v2\nname: lamp\nversion: 1.0.0\n",
		"templates/lamp.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}}\n",
	})
	install := func(name, ref string, n int) string {
		return fmt.Sprintf("---\n{apiVersion: olm.operatorframework.io/v1, kind: ClusterExtension, metadata: {name: %s}, spec: {namespace: %s, source: {sourceType: Chart, chart: {ref: %q}}, config: {configType: Inline, inline: {number: %d}}}}\n", name, w.name, ref, n)
	}
	erin := w.person("erin", mayWrite+"- {apiGroups: [olm.operatorframework.io], resources: [clusterextensionrevisions], verbs: [create]}\n")
	ian, installs := w.author("ian"), 0
	// processor allows for the looping chart. On a machine with two processors it occupies one, and
	// the cluster's kube-apiserver needs that too. An installation that waits for it takes 30 s.
	const processor = time.Second / 2
	// median measures an odd number of installations, because other work on this machine disturbs
	// single ones.
	median := func() time.Duration {
		var took []time.Duration
		for range 7 {
			installs++
			name := fmt.Sprintf("%s-ian-%d", w.name, installs)
			began := time.Now()
			w.apply(ian, name, install(name, lamp, installs))
			w.awaitExtension(name, "it is ready", func(e *extension.Extension) bool { return strings.HasPrefix(condition(e, "Ready"), "True/") })
			took = append(took, time.Since(began))
		}
		slices.Sort(took)
		return took[len(took)/2]
	}
	quiet, loops := median(), 0
	w.t.Cleanup(func() {
		w.Kubectl("delete", "clusterextensions", "--wait=false", "-l", "loops="+w.name)
	})
	for _, many := range []int{24, 200} {
		var all strings.Builder
		for ; loops < many; loops++ {
			all.WriteString(strings.Replace(install(fmt.Sprintf("%s-erin-%d", w.name, loops), loop, loops), "metadata: {", "metadata: {labels: {loops: "+w.name+"}, ", 1))
		}
		erin.MustKubectlInput(all.String(), "create", "-f", "-")
		w.awaitExtension(w.name+"-erin-0", "it has looped until its time was over", func(e *extension.Extension) bool {
			return strings.Contains(message(e, "Progressing"), "were not rendered within")
		})
		took := median()
		w.t.Logf("an installation takes %s, and %s while %d charts of another user loop: %.2f times as long", quiet, took, many, float64(took)/float64(quiet))
		if took > quiet*3/2+processor {
			w.t.Errorf("with %d looping charts of another user, an installation takes %s, and %s without: more than 1.5 times as long", many, took, quiet)
		}
	}
}

// quiet waits until the controllers have sent no request for two seconds.
func (w shared) quiet() {
	w.t.Helper()
	for range 30 {
		mark := w.Audit().Mark()
		timer := time.NewTimer(2 * time.Second)
		<-timer.C
		if len(w.Audit().Since(mark, byLoop, plane.Not(plane.ByVerb("watch")))) == 0 {
			return
		}
	}
	w.t.Fatal("the requests do not stop")
}

// OtherController: while operator-controller holds its Lease, Penstock writes nothing. It continues
// when the Lease is deleted.
func otherController(w shared) {
	w.publish(w.name, bundle{Package: w.name, Version: "1.0.0"})
	alice := w.author("alice")
	lease := func(namespace string) {
		w.MustKubectlInput(fmt.Sprintf("{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: %s, namespace: %s}}", extension.OperatorControllerLease, namespace), "create", "-f", "-")
	}
	lease(w.name)
	w.server().Await(w.t, "it does not count")
	const namespace = "olmv1-system"
	w.MustKubectl("create", "namespace", namespace)
	lease(namespace)
	w.server().Await(w.t, "ClusterExtensions are left alone")
	w.quiet() // earlier deletions may still be in progress
	mark := w.Audit().Mark()
	w.apply(alice, w.name, w.extend(w.name, w.name))
	w.quiet()
	if requests := w.Audit().Since(mark, byLoop, plane.Writes(), plane.Not(plane.ByResource("events"))); len(requests) > 0 {
		w.t.Errorf("looping charts caused writes:\n%s", requests)
	}
	w.MustKubectl("-n", namespace, "delete", "lease", extension.OperatorControllerLease)
	w.awaitExtension(w.name, "it is installed", installed("1.0.0"))
}
