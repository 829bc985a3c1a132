//go:build integration

package rollout_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/penstock-project/penstock/pkg/rollout"
)

// fieldCases is a folder of revisions that users reported. It is not part of the repository.
const fieldCases = "../../../../shared/data/field-cases/apply/"

// TestFieldCases rolls out revisions that failed for users. TestFields tests each kind of these
// cases.
func TestFieldCases(t *testing.T) {
	if _, err := os.Stat(fieldCases); err != nil {
		t.Skipf("no field cases beside the repository: %v", err)
	}
	t.Parallel()
	w := start(t)
	w.runControllers()
	w.create(namespace("fb"))
	for name, do := range map[string]func(*testing.T, *chain, func(string) *revision){
		"01-secret-stringdata-key": func(t *testing.T, c *chain, read func(string) *revision) {
			one, two := read("1"), read("2")
			c.roll(one)
			c.roll(two, one)
			if got := c.data(two.phases[0].objects[0]); fmt.Sprint(got) != "map[a:1]" {
				t.Errorf("the Secret has %v", got)
			}
		},
		"02-deployment-recreate":          becomesRecreate,
		"02b-recreate-from-rollingupdate": becomesRecreate,
		"03-secret-type": func(t *testing.T, c *chain, read func(string) *revision) {
			one, two := read("1"), read("2")
			secret := two.phases[0].objects[0]
			c.roll(one)
			c.become(two, one)
			report := c.until("refused", func(r rollout.Report) bool {
				return len(r.Layers[0].Phases[0].Failures) > 0 && r.Layers[0].Phases[0].Failures[0].Immutable
			})
			if message := report.Layers[0].Phases[0].Failures[0].Message; !strings.Contains(message, "type") || !strings.Contains(message, "kubectl delete secret sec-type") {
				t.Errorf("the message: %s", message)
			}
			c.remove(id(secret))
			c.until("complete", complete)
			if kind := c.get(id(secret)).Object["type"]; kind != "kubernetes.io/basic-auth" {
				t.Errorf("the Secret was made again with type %v", kind)
			}
		},
		"04-aggregated-role": func(t *testing.T, c *chain, read func(string) *revision) {
			one := read("1")
			role := one.phases[0].objects[0]
			c.roll(one)
			c.patch(id(role), "clusterrole-aggregation-controller", `{"rules":[{"apiGroups":[""],"resources":["pods"],"verbs":["get"]}]}`)
			c.until("complete", complete)
			if live := c.get(id(role)); valueOf(live.Object) != "get" {
				t.Errorf("the rules are %v", live.Object["rules"])
			}
		},
		"05-job-ttl": func(t *testing.T, c *chain, read func(string) *revision) {
			one := read("1")
			job := one.phases[0].objects[0]
			c.become(one)
			c.until("created", func(rollout.Report) bool { return c.get(id(job)) != nil })
			c.finish(job, "Complete")
			c.vanish(job)
			c.until("complete", complete)
			if c.get(id(job)) != nil {
				t.Error("the Job was run again")
			}
		},
		"11-cabundle-placeholder": func(t *testing.T, c *chain, read func(string) *revision) {
			const injected = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCkJCQkIKLS0tLS1FTkQgQ0VSVElGSUNBVEUtLS0tLQo="
			one := read("1")
			one.phases[0].objects = append(one.phases[0].objects, read("empty").phases[0].objects...)
			c.roll(one)
			bundle := func(o map[string]any) map[string]any {
				return o["webhooks"].([]any)[0].(map[string]any)["clientConfig"].(map[string]any)
			}
			for _, o := range one.phases[0].objects {
				live := c.get(id(o))
				bundle(live.Object)["caBundle"] = injected
				if _, err := c.at(id(o)).Update(t.Context(), live, metav1.UpdateOptions{FieldManager: "cainjector"}); err != nil {
					t.Fatal(err)
				}
			}
			c.until("complete", complete)
			for _, o := range one.phases[0].objects {
				if got := bundle(c.get(id(o)).Object)["caBundle"]; got != injected {
					t.Errorf("%s has the bundle %v", id(o), got)
				}
			}
		},
		"12-status-without-subresource": func(t *testing.T, c *chain, read func(string) *revision) {
			one := read("lamp")
			// The definition allows no fraction in spec.cpu. This case is about status only.
			one.phases[1].objects[0]["spec"].(map[string]any)["cpu"] = "0.5"
			c.roll(one)
			if got := c.get(id(one.phases[1].objects[0])).Object["status"]; fmt.Sprint(got) != "map[phase:on]" {
				t.Errorf("status is %v", got)
			}
			c.quiet()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := w.in(t).chain("case-" + strings.TrimSuffix(name[:3], "-"))
			do(t, c, func(file string) *revision { return caseOf(t, name+"/"+file+".json") })
		})
	}
}

// becomesRecreate checks that defaults of the old strategy do not block the new strategy.
func becomesRecreate(t *testing.T, c *chain, read func(string) *revision) {
	one, two := read("1"), read("2")
	deployment := two.phases[0].objects[0]
	c.roll(one)
	uid := c.uid(deployment)
	c.roll(two, one)
	kind, _, _ := unstructured.NestedString(c.get(id(deployment)).Object, "spec", "strategy", "type")
	if kind != "Recreate" || c.uid(deployment) != uid {
		t.Errorf("the strategy is %s", kind)
	}
}

// caseOf reads a ClusterExtensionRevision from a file.
func caseOf(t *testing.T, file string) *revision {
	t.Helper()
	text, err := os.ReadFile(fieldCases + file)
	if err != nil {
		t.Fatal(err)
	}
	var read struct {
		Spec struct {
			Revision int64
			Phases   []struct {
				Name    string
				Objects []struct{ Object json.RawMessage }
			}
		}
	}
	if err := json.Unmarshal(text, &read); err != nil {
		t.Fatal(err)
	}
	out := rev(read.Spec.Revision)
	for _, phase := range read.Spec.Phases {
		var objects []map[string]any
		for _, one := range phase.Objects {
			objects = append(objects, object(t, string(one.Object)))
		}
		out.phase(phase.Name, objects...)
	}
	return out
}
