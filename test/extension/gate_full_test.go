//go:build integration

package extension_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/penstock-project/penstock/pkg/extension"
	"github.com/penstock-project/penstock/test/framework/plane"
)

// TestGateKilled (FULL=1) kills the program after changes of an extension and its revisions, during
// the handover to Helm and back, and starts it again. pkg/controller/extension (TestThereAndBack,
// TestBackAgain) covers each write of the controller.
func TestGateKilled(t *testing.T) {
	if os.Getenv("FULL") != "1" {
		t.Skip("it takes minutes: FULL=1")
	}
	w := start(t)
	const step = 2
	points := 0
	for n, more := 1, true; more && !t.Failed(); n += step {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			m := mortal{shared: w.in(t, fmt.Sprintf("killed-%d", n))}
			if more = m.thereAndBack(n); more {
				points++
			}
		})
	}
	if points == 0 {
		t.Error("it was never killed: the test sees nothing")
	}
}

// thereAndBack hands an extension to Helm and back. In each direction it kills the program after
// the n-th change. It returns false if there were fewer changes.
func (m *mortal) thereAndBack(n int) (killed bool) {
	m.t.Helper()
	m.publish(m.name, bundle{Package: m.name, Version: "1.0.0"})
	m.insist(m.author("alice").Access, m.extend(m.name, m.name))
	m.awaitRevision(m.name+"-1", "it was rolled out", succeeded)
	m.awaitExtension(m.name, "it is installed", installed("1.0.0"))
	before := m.seen()
	for _, way := range []struct {
		flags  []string
		arrive func()
	}{
		{[]string{gateOff}, func() {
			m.awaitRevision(m.name+"-1", "it was handed to Helm", handed)
			m.awaitExtension(m.name, "Helm has it installed", func(e *extension.Extension) bool {
				return installed("1.0.0")(e) && strings.Contains(message(e, "Ready"), "Helm release")
			})
		}},
		{nil, func() {
			m.awaitRevision(m.name+"-2", "it was taken back", takenBack)
			m.awaitExtension(m.name, "it is installed", installed("1.0.0"))
		}},
	} {
		m.server().Stop(m.top)
		m.serve(way.flags...)
		behind := m.armOnce(n, way.flags)
		way.arrive()
		if what := behind(); what != "" {
			m.t.Logf("change %d, with %v: %s", n, way.flags, what)
			killed = true
		}
		m.isSame(before, m.seen())
	}
	m.ownedBy(false)
	return killed
}

// armOnce is like arm, but restarts the program with flags.
func (m *mortal) armOnce(n int, flags []string) (behind func() string) {
	m.t.Helper()
	return m.arm(n, func() {
		m.server().Kill(m.top)
		m.serve(flags...)
	})
}

// TestGateMany (FULL=1) hands 200 extensions to Helm at once, and back.
func TestGateMany(t *testing.T) {
	if os.Getenv("FULL") != "1" {
		t.Skip("it takes minutes: FULL=1")
	}
	const count = 200
	w := start(t).in(t, "many")
	ref := w.pushFiles("charts/"+w.name, map[string]string{
		"Chart.yaml":          "apiVersion: v2\nname: lamp\nversion: 1.0.0\n",
		"templates/lamp.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}}\ndata: {size: {{ .Values.size | quote }}}\n",
	})
	root := w.person("root", "- {apiGroups: [\"*\"], resources: [\"*\"], verbs: [\"*\"]}\n")
	name := func(i int) string { return fmt.Sprintf("%s-%d", w.name, i) }
	var all strings.Builder
	for i := range count {
		fmt.Fprintf(&all, "---\n{apiVersion: olm.operatorframework.io/v1, kind: ClusterExtension, metadata: {name: %s}, spec: {namespace: %s, source: {sourceType: Chart, chart: {ref: %q}}, config: {configType: Inline, inline: {size: %d}}}}\n", name(i), w.name, ref, i)
	}
	root.MustKubectlInput(all.String(), "apply", "--server-side", "-f", "-")
	is := func(kind string) func(*extension.Extension) bool {
		return func(e *extension.Extension) bool { return strings.HasPrefix(condition(e, "Ready"), kind) }
	}
	for i := range count {
		w.awaitExtension(name(i), "it is ready", is("True/"))
	}
	before, mark := w.configMaps(), w.Audit().Mark()
	w.reopen(gateOff)
	for i := range count {
		w.awaitExtension(name(i), "Helm has it", is("Unknown/HandedToHelm"))
	}
	if after := w.configMaps(); !slices.Equal(before, after) {
		t.Errorf("with Helm the ConfigMaps are\n%v\nand were\n%v", after, before)
	}
	w.reopen()
	for i := range count {
		w.awaitRevision(name(i)+"-2", "it was taken back", takenBack)
		w.awaitExtension(name(i), "it is ready", is("True/"))
	}
	if after := w.configMaps(); !slices.Equal(before, after) {
		t.Errorf("after the way back the ConfigMaps are\n%v\nand were\n%v", after, before)
	}
	if lost := w.Audit().Since(mark, plane.ByVerb("delete", "create"), plane.ByResource("configmaps"), func(r plane.Request) bool { return r.Namespace == w.name && !strings.Contains(r.URI, "dryRun=All") }); len(lost) > 0 {
		t.Errorf("ConfigMaps were made or deleted:\n%s", lost)
	}
	requests := w.Audit().Since(mark, byPenstock, plane.Not(plane.ByVerb("watch")), plane.Not(plane.ByResource("leases")))
	t.Logf("there and back took %d requests for %d extensions", len(requests), count)
}

// configMaps returns UID and content of the namespace's ConfigMaps.
func (w shared) configMaps() []string {
	w.t.Helper()
	list, err := w.host.Resource(configMaps).Namespace(w.name).List(w.t.Context(), metav1.ListOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	var out []string
	for i := range list.Items {
		one := &list.Items[i]
		out = append(out, fmt.Sprint(one.GetName(), " ", one.GetUID(), " ", one.Object["data"]))
	}
	slices.Sort(out)
	return out
}
