//go:build integration

package rollout_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/penstock-project/penstock/pkg/rollout"
	"github.com/penstock-project/penstock/pkg/rollout/stage"
)

// yieldsToAutoscalers: replicas set through the scale subresource, and fields that a revision
// yields, stay with their managers. That survives upgrades, and restarts of the engine and of the
// workload.
func yieldsToAutoscalers(t *testing.T, c *chain) {
	ns := c.home()
	app := func(value string) map[string]any { return deployment(ns, "slow", value) }
	ready := func() {
		t.Helper()
		if err := c.available(c.get(id(app("")))); err != nil {
			t.Fatal(err)
		}
		c.seen(app(""))
		c.until("complete", complete)
	}
	said := func(what string) func(rollout.Report) bool {
		return func(rollout.Report) bool { return strings.Contains(strings.Join(c.events, "\n"), what) }
	}
	is := func(when string, replicas int64, cpu string) {
		t.Helper()
		live := c.get(id(app("")))
		have, _, _ := unstructured.NestedInt64(live.Object, "spec", "replicas")
		containers, _, _ := unstructured.NestedSlice(live.Object, "spec", "template", "spec", "containers")
		request, _, _ := unstructured.NestedString(containers[0].(map[string]any), "resources", "requests", "cpu")
		if have != replicas || request != cpu {
			t.Errorf("%s: %d replicas with %s, want %d with %s", when, have, request, replicas, cpu)
		}
	}
	one := rev(1).yielding("spec.template.spec.containers[*].resources").phase("base", app("1"))
	c.become(one)
	c.stuck("1/base Deployment.apps yield/slow: ProbeFailed")
	ready()
	is("rolled out", 2, "500m")

	// A HorizontalPodAutoscaler writes like this.
	mark := c.Audit().Mark()
	c.patch(id(app("")), "kube-controller-manager", `{"spec":{"replicas":7}}`, "scale")
	c.until("yielded", said("Yielded: left fields of Deployment.apps yield/slow: .spec.replicas to kube-controller-manager"))
	ready()
	// The engine applies because it has no schema which says that 0.5 equals 500m.
	if diff := cmp.Diff(map[string]int{"get": 1, "apply": 1}, writesOf(c.spent(mark))); diff != "" {
		t.Errorf("requests for yielding a field (-want +got):\n%s", diff)
	}
	// A recommender that edits the template writes like this.
	c.MustKubectl("set", "resources", "-n", ns, "deployment", "slow", "--requests=cpu=900m", "--field-manager=vpa")
	c.until("yielded", said(".spec.template.spec.containers[name=main].resources.requests.cpu to vpa"))
	ready()
	is("taken", 7, "900m")

	// Changes by a user.
	c.MustKubectl("rollout", "restart", "-n", ns, "deployment", "slow")
	c.MustKubectl("label", "-n", ns, "deployment", "slow", "team=blue")
	c.MustKubectl("annotate", "-n", ns, "deployment", "slow", "note=hello")
	ready()

	fresh(c)
	c.patch(id(app("")), "kube-controller-manager", `{"spec":{"replicas":8}}`, "scale")
	c.rollSlow(rev(2).yielding("spec.template.spec.containers[*].resources").phase("base", app("2")), ready)
	is("upgraded", 8, "900m")
	live := c.get(id(app("")))
	restarted, _, _ := unstructured.NestedString(live.Object, "spec", "template", "metadata", "annotations", "kubectl.kubernetes.io/restartedAt")
	if restarted == "" || live.GetLabels()["team"] != "blue" || live.GetAnnotations()["note"] != "hello" {
		t.Errorf("a user's changes were undone: restarted %q, labels %v, annotations %v", restarted, live.GetLabels(), live.GetAnnotations())
	}
	// Changes while no process runs.
	c.kill()
	c.patch(id(app("")), "kube-controller-manager", `{"spec":{"replicas":9}}`, "scale")
	c.MustKubectl("set", "resources", "-n", ns, "deployment", "slow", "--requests=cpu=950m", "--field-manager=vpa")
	c.rollSlow(rev(3).yielding("spec.template.spec.containers[*].resources").phase("base", app("3")), ready)
	is("upgraded after scaling unseen", 9, "950m")
	c.settled(t, app("3"))
	c.quiet()
	if inventory, _ := c.ledger.load(); len(inventory.Entries[id(app(""))].Yielded) != 2 {
		t.Errorf("remembered: %v", inventory.Entries)
	}

	// kube-apiserver records no manager for a value of zero.
	fresh(c)
	c.patch(id(app("")), "keda", `{"spec":{"replicas":0}}`, "scale")
	c.rollSlow(rev(4).yielding("spec.template.spec.containers[*].resources").phase("base", app("4")), ready)
	is("scaled to zero", 0, "950m")

	// The inventory is empty.
	c.kill()
	c.ledger.inventory = rollout.Inventory{}
	c.run()
	c.until("complete", complete)
	is("rolled out again without a record", 0, "950m")

	// An adoption does not scale the workload down, not even for a moment.
	theirs := deployment(ns, "slow-adopted", "0")
	raw, err := json.Marshal(theirs)
	if err != nil {
		t.Fatal(err)
	}
	c.MustKubectlInput(string(raw), "apply", "-f", "-")
	c.patch(id(theirs), "kube-controller-manager", `{"spec":{"replicas":7}}`, "scale")
	c.become(rev(5).adopting(stage.AdoptUncontrolled).phase("base", app("4")).phase("more", deployment(ns, "slow-adopted", "1")))
	c.until("adopted", said("left .spec.replicas to kube-controller-manager"))
	if replicas, _, _ := unstructured.NestedInt64(c.get(id(theirs)).Object, "spec", "replicas"); replicas != 7 {
		t.Errorf("%d replicas", replicas)
	}
}

// rollSlow rolls a revision out whose workloads a test makes available itself.
func (c *chain) rollSlow(r *revision, ready func()) {
	c.t.Helper()
	c.become(r)
	c.until("applied", func(report rollout.Report) bool {
		return len(failures(report)) == 1 && strings.HasSuffix(failures(report)[0], "ProbeFailed")
	})
	ready()
}
