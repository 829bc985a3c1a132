//go:build integration

package extension_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/extension"
	"github.com/penstock-project/penstock/pkg/extensionset"
	"github.com/penstock-project/penstock/pkg/fleet"
	"github.com/penstock-project/penstock/test/framework/cluster"
)

// fleetKilled kills the program after each change of a set, its rollout and its children, and
// starts it again. Each cluster begins exactly once, and the second wave changes one cluster at a
// time. pkg/controller/fleet (TestKill) tests all writes of the controller alone, for five
// clusters.
func fleetKilled(w shared) {
	planes := map[string]*cluster.Cluster{}
	for _, target := range []string{"a", "b", "c"} {
		planes[target] = cluster.Start(w.t)
	}
	points := 0
	for n, more := 1, true; more && !w.t.Failed(); n++ {
		w.t.Run(fmt.Sprint(n), func(t *testing.T) {
			s := ship{w.in(t, fmt.Sprintf("%s-%d", w.name, n)), map[string]*cluster.Cluster{}}
			for target, ring := range map[string]string{"a": "0", "b": "1", "c": "1"} {
				s.targets[target] = planes[target].In(t)
				s.targets[target].MustKubectl("create", "namespace", s.name)
				s.open(target, ring, s.kubeconfig(s.targets[target]))
			}
			if what := s.dies(n); what != "" {
				points++
				t.Logf("change %d: %s", n, what)
			} else {
				more = false
			}
		})
	}
	w.t.Logf("the program died %d times", points)
	if points < 10 {
		w.t.Error("that is too seldom: the test misses changes")
	}
}

// dies rolls out a version and kills the program after the n-th change. It returns that change, or
// "" if there were fewer changes.
func (s ship) dies(n int) (behind string) {
	s.t.Helper()
	var watches []watch.Interface
	for _, resource := range []schema.GroupVersionResource{extensionset.Resource, olmv1alpha1.SchemeGroupVersion.WithResource("clusterextensionrollouts"), extension.Resource} {
		changes, err := s.host.Resource(resource).Watch(s.t.Context(), metav1.ListOptions{})
		if err != nil {
			s.t.Fatal(err)
		}
		watches = append(watches, changes)
	}
	ours := func(name string) bool {
		return name == s.name || strings.HasPrefix(name, s.name+"-") || strings.HasPrefix(name, s.name+".")
	}
	dead := behindChange(n, watches, ours, func() {
		s.server().Kill(s.top)
		s.serve()
	})
	all := s.uses("a", "b", "c")
	alice, bob := s.person("alice", mayWriteSets+mayCreate+all), s.person("bob", mayDecide+all)
	mortal{s.shared}.insist(alice.Access, s.set(s.image("1", ""), 1800, 1))
	s.t.Cleanup(func() { s.Kubectl("delete", "--ignore-not-found", "--wait=false", "clusterextensionset", s.name) })
	s.eventually("bob approves it", func() bool {
		r, err := s.as(bob).OlmV1alpha1().ClusterExtensionRollouts().Get(s.t.Context(), s.name+"-1", metav1.GetOptions{})
		return err == nil && r.Status.Digest != "" && (len(r.Status.Approvals) > 0 || s.approve(bob, r, r.Status.Digest) == nil)
	})
	done := s.rollout(1, "every cluster has it", func(r *olmv1alpha1.ClusterExtensionRollout) bool {
		begun := slices.DeleteFunc(slices.Clone(r.Status.Clusters), func(one olmv1alpha1.RolloutClusterStatus) bool { return one.Name == s.secret("a") })
		changing := 0
		for _, one := range begun {
			if one.State == string(fleet.Updating) || one.State == string(fleet.Unknown) {
				changing++
			}
		}
		if changing > 1 || len(begun) > 0 && !s.is("a", fleet.Succeeded)(r) {
			s.t.Errorf("the clusters are %s", s.states(r))
		}
		return r.Status.Phase == string(fleet.Completed)
	})
	behind = dead()
	if got, want := s.states(done), "a Succeeded, b Succeeded, c Succeeded"; got != want {
		s.t.Errorf("the clusters are %s, want %s", got, want)
	}
	for _, one := range done.Status.Clusters {
		child := extensionset.ChildName(s.name, one.Name)
		list, err := s.own.OlmV1alpha1().ClusterExtensionRevisions().List(s.t.Context(), metav1.ListOptions{LabelSelector: olmv1alpha1.ChainLabel + "=" + child})
		if err != nil {
			s.t.Fatal(err)
		}
		if one.Attempt != 1 || len(list.Items) != 1 {
			s.t.Errorf("cluster %s began %d times, and has %d revisions", one.Name, one.Attempt, len(list.Items))
		}
	}
	if got := s.has("a") + s.has("b") + s.has("c"); got != "111" {
		s.t.Errorf("the clusters have %s", got)
	}
	return behind
}
