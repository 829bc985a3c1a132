//go:build integration

package extension_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/extension"
	"github.com/penstock-project/penstock/test/framework/cluster"
	"github.com/penstock-project/penstock/test/framework/packages"
	"github.com/penstock-project/penstock/test/framework/penstock"
	"github.com/penstock-project/penstock/test/framework/registry"
	"github.com/penstock-project/penstock/test/framework/replicas"
)

// Killed: the program is killed behind changes of an extension and its revisions, from its
// installation to its deletion, and started again. Each write of the loop is one of them; those
// of the loop alone are in pkg/controller/extension (TestCrash), all of them.
func killed(w shared) {
	const step = 4
	w.dieBehindEach(step, func() {
		w.server().Kill(w.top)
		w.serve()
	})
}

// TestLeaders: with FULL=1, the leading replica is killed at the same points, and another replica
// continues.
func TestLeaders(t *testing.T) {
	if os.Getenv("FULL") != "1" {
		t.Skip("each change of the leader takes up to 15 s: FULL=1")
	}
	w := shared{Cluster: cluster.Start(t, cluster.Workloads()), t: t, top: t, program: penstock.Build(t), images: registry.Serve(t)}
	w.connect()
	// Without a store of its own a process is told where catalogs are kept.
	set := replicas.Start(t, w.Cluster, w.program, append(w.flags(), "--catalog-dir="+t.TempDir())...)
	w.awaitStamps()
	const step = 12
	w.in(t, "leaders").dieBehindEach(step, func() { set.KillLeader(t) })
}

// dieBehindEach takes an extension through the same again and again, and has the program die behind another
// change each time: the first, and every step-th, until there are no more.
func (w shared) dieBehindEach(step int, die func()) {
	w.t.Helper()
	points := 0
	for n, more := 1, true; more && !w.t.Failed(); n += step {
		w.t.Run(fmt.Sprint(n), func(t *testing.T) {
			m := mortal{shared: w.in(t, fmt.Sprintf("%s-%d", w.name, n))}
			behind := m.arm(n, die)
			m.lifetime()
			what := behind()
			if more = what != ""; more {
				points++
				t.Logf("change %d: %s", n, what)
			}
		})
	}
	w.t.Logf("the program died %d times", points)
	if points == 0 {
		w.t.Error("it never did: the test sees nothing")
	}
}

// mortal is the cluster for a scenario in which the program dies.
type mortal struct{ shared }

// arm has the program die once, behind the n-th change of the extension of the scenario's name
// and its revisions from now on. The returned function ends that, waits until the program is back,
// and tells the change, "" when there were not so many. Changes that are there already count as
// the first ones.
func (m mortal) arm(n int, die func()) (behind func() string) {
	m.t.Helper()
	var watches []watch.Interface
	for _, resource := range []schema.GroupVersionResource{extension.Resource, revisions} {
		changes, err := m.host.Resource(resource).Watch(m.t.Context(), metav1.ListOptions{})
		if err != nil {
			m.t.Fatal(err)
		}
		watches = append(watches, changes)
	}
	return behindChange(n, watches, func(name string) bool { return name == m.name || strings.HasPrefix(name, m.name+"-") }, die)
}

// behindChange calls die behind the n-th change that watches tell of objects whose name counts.
func behindChange(n int, watches []watch.Interface, counts func(name string) bool, die func()) (behind func() string) {
	var (
		seen    atomic.Int64
		what    string
		running sync.WaitGroup
	)
	// Only when all watch: while the program is dead, its API cannot be watched.
	for _, changes := range watches {
		running.Go(func() {
			for change := range changes.ResultChan() {
				object, ok := change.Object.(*unstructured.Unstructured)
				if !ok || !counts(object.GetName()) || seen.Add(1) != int64(n) {
					continue
				}
				what = fmt.Sprintf("%s %s %s", change.Type, object.GetKind(), object.GetName())
				die()
			}
		})
	}
	return func() string {
		for _, one := range watches {
			one.Stop()
		}
		running.Wait()
		return what
	}
}

// lifetime installs an extension, lets the catalog have a newer version, asks for that one, and
// deletes the extension. At its end all is as if the program had never died.
func (m mortal) lifetime() {
	m.t.Helper()
	one, two := m.push(bundle{Package: m.name, Version: "1.0.0"}), m.push(bundle{Package: m.name, Version: "1.1.0", Replaces: "1.0.0"})
	first, second := m.pushCatalog(m.name, one), m.pushCatalog(m.name, one, two)
	alice := m.author("alice")
	m.insist(m.Access, packages.CatalogManifest(m.name, first))
	m.insist(alice.Access, m.extend(m.name, m.name))
	m.awaitExtension(m.name, "it is installed", all(installed("1.0.0"), is("Ready=True/Succeeded")))
	before := m.uids()
	m.insist(m.Access, packages.CatalogManifest(m.name, second))
	m.awaitRevision(m.name+"-2", "the newer version is proposed", waitsForApproval)
	m.insist(alice.Access, m.extend(m.name, m.name, "version: 1.1.0"))
	m.awaitExtension(m.name, "it is upgraded", all(installed("1.1.0"), is("Ready=True/Succeeded", "Available=True/ProbesSucceeded", "Stalled=False/NotStalled"),
		func(e *extension.Extension) bool { return len(e.Status.ActiveRevisions) == 1 }))
	if after := m.uids(); after != before {
		m.t.Errorf("the objects were %s and are %s", before, after)
	}
	m.revisionsAre(m.name+"-1 Archived 1.0.0 "+alice.name, m.name+"-3 Active 1.1.0 "+alice.name)
	m.eventually("the extension is deleted", func() bool {
		return m.Kubectl("delete", "--ignore-not-found", "--wait=false", "clusterextension", m.name).ExitCode == 0
	})
	m.awaitGone(extension.Resource, m.name, "it was deleted")
	for _, name := range []string{"-1", "-2", "-3"} {
		m.awaitGone(revisions, m.name+name, "it goes with the extension")
	}
	m.eventually("the objects go", func() bool {
		return m.MustKubectl("-n", m.name, "get", "--ignore-not-found", "-o", "name", "configmap/"+m.name+"-config", "deployment/"+m.name, "serviceaccount/"+m.name) == ""
	})
	m.MustKubectl("delete", "clustercatalog", m.name, "--wait=false")
}

// insist writes a manifest until it is written: while nobody says who wrote it, writes of
// extensions are refused.
func (m mortal) insist(as *cluster.Access, manifest string) {
	m.t.Helper()
	var out cluster.Output
	m.eventually("a manifest is written", func() bool {
		out = as.KubectlInput(manifest, "apply", "--server-side", "--force-conflicts", "-f", "-")
		if out.ExitCode != 0 && !strings.Contains(out.Stderr, "failed calling webhook") && !strings.Contains(out.Stderr, "refused") {
			m.t.Logf("it is written again: %s", out)
		}
		return out.ExitCode == 0
	})
}

// uids are those of what was installed: who makes something twice makes others.
func (m mortal) uids() string {
	m.t.Helper()
	return m.MustKubectl("-n", m.name, "get", "configmap/"+m.name+"-config", "deployment/"+m.name, "serviceaccount/"+m.name, "-o", "jsonpath={.items[*].metadata.uid}")
}

// revisionsAre compares the revisions of the scenario: name, state, version, and who made them.
func (m mortal) revisionsAre(want ...string) {
	m.t.Helper()
	var got []string
	m.eventually("the revisions are "+strings.Join(want, ", "), func() bool {
		list, err := m.own.OlmV1alpha1().ClusterExtensionRevisions().List(m.t.Context(), metav1.ListOptions{LabelSelector: olmv1alpha1.ChainLabel + "=" + m.name})
		if err != nil {
			return false
		}
		got = nil
		for _, r := range list.Items {
			who := ""
			if by := r.Status.RequestedBy; by != nil {
				who = by.Username
			}
			got = append(got, fmt.Sprintf("%s %s %s %s", r.Name, r.Spec.LifecycleState, r.Annotations[olmv1alpha1.VersionAnnotation], who))
		}
		return slices.Equal(got, want)
	})
}
