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

// Killed: the program is killed after changes of an extension and its revisions, from installation
// to deletion, and started again. pkg/controller/extension (TestCrash) tests all writes of the
// controller alone.
func killed(w shared) {
	const step = 4
	w.dieBehindEach(step, func() {
		w.server().Kill(w.top)
		w.serve()
	})
}

// TestLeaders (FULL=1) kills the leading replica after the same changes. Another replica continues.
func TestLeaders(t *testing.T) {
	if os.Getenv("FULL") != "1" {
		t.Skip("each change of the leader takes up to 15 s: FULL=1")
	}
	w := shared{Cluster: cluster.Start(t, cluster.Workloads()), t: t, top: t, program: penstock.Build(t), images: registry.Serve(t)}
	w.connect()
	// Without a data directory a process needs a flag for the folder of catalogs.
	set := replicas.Start(t, w.Cluster, w.program, append(w.flags(), "--catalog-dir="+t.TempDir())...)
	w.awaitStamps()
	const step = 12
	w.in(t, "leaders").dieBehindEach(step, func() { set.KillLeader(t) })
}

// dieBehindEach repeats the lifetime of an extension. Each time the program dies after another
// change: the first, and then every step-th, until there are no more changes.
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

// arm makes the program die once, after the n-th change of the scenario's extension and its
// revisions. Existing objects count as the first changes. The returned function ends that, waits
// until the program is back, and returns the change, or "" if there were fewer changes.
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

// behindChange calls die after the n-th watch event of objects for whose name counts is true.
func behindChange(n int, watches []watch.Interface, counts func(name string) bool, die func()) (behind func() string) {
	var (
		seen    atomic.Int64
		what    string
		running sync.WaitGroup
	)
	// All watches are open before this point, because a dead program's API cannot be watched.
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

// lifetime installs an extension, publishes a newer version, upgrades to it, and deletes the
// extension. The result is the same as if the program had not died.
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

// insist retries a write until it succeeds. While the author webhook is down, kube-apiserver
// refuses writes of extensions.
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

// uids returns the UIDs of the installed objects. A recreated object has another UID.
func (m mortal) uids() string {
	m.t.Helper()
	return m.MustKubectl("-n", m.name, "get", "configmap/"+m.name+"-config", "deployment/"+m.name, "serviceaccount/"+m.name, "-o", "jsonpath={.items[*].metadata.uid}")
}

// revisionsAre compares name, state, version and requester of the scenario's revisions.
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
