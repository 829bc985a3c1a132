//go:build integration

package extension_test

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/extension"
	"github.com/penstock-project/penstock/test/framework/cluster"
	"github.com/penstock-project/penstock/test/framework/penstock"
	"github.com/penstock-project/penstock/test/framework/plane"
	"github.com/penstock-project/penstock/test/framework/promtool"
	"github.com/penstock-project/penstock/test/framework/registry"
	"github.com/penstock-project/penstock/test/framework/replicas"
)

// The replicas: byEngine has the gate on, byHelm has it off, and spare does not run.
const (
	byEngine = iota
	byHelm
	spare
)

// skewed is an extension that replicas with different gates hand over to each other.
type skewed struct {
	mortal
	set *replicas.Set
}

// TestSkew (FULL=1) runs two replicas, one with the gate on and one with the gate off. Penstock
// reports that, and only the leader acts. The leader changes during a handover, in both directions:
// no object is recreated, no workload restarts, and the history is complete.
func TestSkew(t *testing.T) {
	if os.Getenv("FULL") != "1" {
		t.Skip("each change of the leader takes up to 15 s: FULL=1")
	}
	w := shared{Cluster: cluster.Start(t, cluster.Workloads()), t: t, top: t, program: penstock.Build(t), images: registry.Serve(t)}
	w.connect()
	set := replicas.Start(t, w.Cluster, w.program, append(w.flags(), "--catalog-dir="+t.TempDir())...)
	set.Stop(t, spare)
	set.Stop(t, byHelm)
	set.Run(t, byHelm, gateOff)
	set.AwaitLeader(t, byEngine)
	w.awaitStamps()
	t.Run("Told", func(t *testing.T) { skewed{mortal{w.in(t, "told")}, set}.told() })
	t.Run("LeaderAlone", func(t *testing.T) { skewed{mortal{w.in(t, "alone")}, set}.alone() })
	const step = 3
	points := 0
	for n, more := 1, true; more && !t.Failed(); n += step {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			var changes int
			if changes = (skewed{mortal{w.in(t, fmt.Sprintf("skew-%02d", n))}, set}).midway(n); changes == 0 {
				more = false
			}
			points += changes
		})
	}
	t.Logf("the leader changed in the middle of a handover %d times", points)
	if points == 0 {
		t.Error("the leader never changed: the test sees nothing")
	}
}

// told: metrics, the alert and the leaders' logs report the difference.
func (s skewed) told() {
	const series = `kubernetes_feature_enabled{name="BoxcutterRuntime",stage="BETA"}`
	found := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(series) + ` (\d)$`)
	scraped := map[string]string{}
	for replica, want := range map[int]string{byEngine: "1", byHelm: "0"} {
		value := found.FindStringSubmatch(s.set.Page(s.t, replica, "/metrics"))
		if value == nil || value[1] != want {
			s.t.Fatalf("replica %d says %v, want %s", replica+1, value, want)
		}
		scraped[strings.TrimSuffix(series, "}")+fmt.Sprintf(`,namespace="penstock-system",job="penstock",instance="%d"}`, replica)] = want + "x20"
	}
	const alert = `ALERTS{alertname="PenstockFeatureGatesDiffer",alertstate="firing",namespace="penstock-system",job="penstock"}`
	promtool.Check(s.t, "../..", scraped, "16m", map[string]bool{alert: false})
	const says = `ClusterExtensions are applied by this replica while it leads.*BoxcutterRuntime=`
	if log := s.set.Log(byEngine); !regexp.MustCompile(says + "true").MatchString(log) {
		s.t.Error("the log of the replica that leads does not say that its gate is on")
	}
	s.change(byEngine, byHelm)
	s.set.Await(s.t, byHelm, "ClusterExtensions are applied by this replica while it leads")
	if log := s.set.Log(byHelm); !regexp.MustCompile(says + "false").MatchString(log) {
		s.t.Error("the log of the replica that leads does not say that its gate is off")
	}
	s.change(byHelm, byEngine)
}

// alone: the replica that does not lead writes no object of an extension, in both directions.
func (s skewed) alone() {
	before := s.install()
	for _, way := range [][2]int{{byEngine, byHelm}, {byHelm, byEngine}} {
		from, to := way[0], way[1]
		mark := s.Audit().Mark()
		s.change(from, to)
		s.arrive(to)
		s.isSame(before, s.seen())
		if s.set.Source(from) == "" {
			s.t.Skip("replicas cannot be told apart on this system")
		}
		of := func(replica int) plane.Requests {
			return s.Audit().Since(mark, plane.Writes(), plane.ByResource("deployments", "configmaps", "serviceaccounts", "clusterroles", "clusterrolebindings", "secrets", "clusterextensions/status"),
				func(r plane.Request) bool {
					return r.Source == s.set.Source(replica) && (r.Namespace == s.name || strings.Contains(r.Name, s.name))
				})
		}
		if writes := of(from); len(writes) > 0 {
			s.t.Errorf("%d does not lead, and wrote:\n%s", from+1, writes)
		}
		if len(of(to)) == 0 {
			s.t.Errorf("%d leads, and no write of it is in the audit log: the test sees nothing", to+1)
		}
	}
}

// midway changes the leader after the n-th change of an extension, its objects and its release, in
// both directions. It returns the number of directions that had so many changes.
func (s skewed) midway(n int) (times int) {
	before, mark := s.install(), s.Audit().Mark()
	for _, way := range [][2]int{{byEngine, byHelm}, {byHelm, byEngine}} {
		from, to := way[0], way[1]
		if what := s.interrupt(n, from, to); what != "" {
			s.t.Logf("change %d of the way to replica %d: %s", n, to+1, what)
			times++
			s.isSame(before, s.seen())
			s.change(from, to)
		}
		s.arrive(to)
		s.isSame(before, s.seen())
		s.ownedBy(to == byHelm)
	}
	if lost := s.Audit().Since(mark, plane.ByVerb("delete", "create"), plane.ByResource("deployments", "replicasets", "pods", "configmaps", "serviceaccounts"),
		func(r plane.Request) bool {
			return r.Namespace == s.name && !strings.Contains(r.URI, "dryRun=All") && r.Name != "kube-root-ca.crt"
		}); len(lost) > 0 {
		s.t.Errorf("objects were made or deleted:\n%s", lost)
	}
	s.wholeHistory()
	// Helm records a release before the handover. No such record remains if the handover did not
	// happen.
	s.eventually("no release is left that the engine has not taken over", func() bool {
		return s.MustKubectl("-n", "penstock-system", "get", "secrets", "-o", "name", "-l", "owner=operator-controller,type=index,name="+s.name+",!"+olmv1alpha1.SupersededByLabel) == ""
	})
	return times
}

// install installs the extension and returns its objects.
func (s skewed) install() (before map[string]string) {
	s.t.Helper()
	s.publish(s.name, bundle{Package: s.name, Version: "1.0.0"})
	s.insist(s.author("alice").Access, s.extend(s.name, s.name))
	s.arrive(byEngine)
	return s.seen()
}

// change makes another replica the leader. The old leader restarts as a follower.
func (s skewed) change(from, to int) {
	s.t.Helper()
	s.set.Stop(s.t, from)
	s.set.AwaitLeader(s.t, to)
	s.run(from)
}

// run starts a replica with its gate.
func (s skewed) run(replica int) {
	s.t.Helper()
	// The replica outlives the scenario.
	if replica == byHelm {
		s.set.Run(s.top, replica, gateOff)
		return
	}
	s.set.Run(s.top, replica)
}

// interrupt kills the leading replica. The other replica takes over and is killed after the n-th
// change. Then the first replica starts again and finishes, and both run. It returns the change.
// With fewer changes it returns "", and the other replica leads and has finished.
func (s skewed) interrupt(n, from, to int) (behind string) {
	s.t.Helper()
	var died atomic.Bool
	ended := behindChange(n, s.changes(), func(name string) bool { return strings.Contains(name, s.name) }, func() {
		s.set.Kill(s.top, to)
		s.run(from)
		died.Store(true)
	})
	s.set.Kill(s.t, from)
	s.eventually("the other replica has finished, or was killed", func() bool { return died.Load() || s.arrived(to) })
	if behind = ended(); behind == "" {
		s.run(from)
		return ""
	}
	s.set.AwaitLeader(s.t, from)
	s.arrive(from)
	s.run(to)
	return behind
}

// changes watches the extension, its objects and the Secrets of releases. It does not watch the
// replicas' own API, because they are killed.
func (s skewed) changes() []watch.Interface {
	s.t.Helper()
	var watches []watch.Interface
	of := []dynamic.ResourceInterface{s.host.Resource(extension.Resource), s.host.Resource(schema.GroupVersionResource{Version: "v1", Resource: "secrets"}).Namespace("penstock-system")}
	for _, resource := range []schema.GroupVersionResource{deployments, configMaps, accounts} {
		of = append(of, s.host.Resource(resource).Namespace(s.name))
	}
	for _, one := range of {
		list, err := one.List(s.t.Context(), metav1.ListOptions{})
		if err != nil {
			s.t.Fatal(err)
		}
		changes, err := one.Watch(s.t.Context(), metav1.ListOptions{ResourceVersion: list.GetResourceVersion()})
		if err != nil {
			s.t.Fatal(err)
		}
		watches = append(watches, changes)
	}
	return watches
}

// chain returns the revisions, newest first, or nil if they cannot be read now.
func (s skewed) chain() []olmv1alpha1.ClusterExtensionRevision {
	list, err := s.own.OlmV1alpha1().ClusterExtensionRevisions().List(s.t.Context(), metav1.ListOptions{LabelSelector: olmv1alpha1.ChainLabel + "=" + s.name})
	if err != nil {
		return nil
	}
	slices.SortFunc(list.Items, func(a, b olmv1alpha1.ClusterExtensionRevision) int { return int(b.Spec.Revision - a.Spec.Revision) })
	return list.Items
}

// arrived reports whether the extension is in the state that a replica's gate asks for.
func (s skewed) arrived(at int) bool {
	chain := s.chain()
	if len(chain) == 0 {
		return false
	}
	newest := &chain[0]
	held := newest.Annotations[olmv1alpha1.HandedToHelmAnnotation] != ""
	if held != (at == byHelm) || held && !handed(newest) || !held && !succeeded(newest) {
		return false
	}
	back := newest.Annotations[olmv1alpha1.AdoptedReleaseAnnotation] != "" && newest.Annotations[olmv1alpha1.ReleaseSecretsAnnotation] == ""
	object, err := s.host.Resource(extension.Resource).Get(s.t.Context(), s.name, metav1.GetOptions{})
	if err != nil || !held && back {
		return false
	}
	found, err := extension.From(object)
	if err != nil || !installed("1.0.0")(found) {
		return false
	}
	if at == byHelm {
		return condition(found, "Ready") == "Unknown/HandedToHelm"
	}
	return condition(found, "Ready") == "True/Succeeded"
}

func (s skewed) arrive(at int) {
	s.t.Helper()
	s.eventually(fmt.Sprintf("the extension is where the gate of replica %d says", at+1), func() bool { return s.arrived(at) })
}

// wholeHistory checks that the history has every number up to the newest.
func (s skewed) wholeHistory() {
	s.t.Helper()
	found, err := s.own.OlmV1alpha1().RevisionHistories().Get(s.t.Context(), s.name, metav1.GetOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	var got []int64
	for _, row := range found.Revisions {
		got = append(got, row.Revision)
	}
	slices.Sort(got)
	for i, number := range got {
		if number != int64(i+1) {
			s.t.Errorf("history has the revisions %v", got)
			break
		}
	}
	if newest := s.chain()[0].Spec.Revision; int64(len(got)) != newest {
		s.t.Errorf("history has the revisions %v, and the newest is %d", got, newest)
	}
}
