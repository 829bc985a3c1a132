//go:build integration

package rollout_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/penstock-project/penstock/pkg/rollout"
	"github.com/penstock-project/penstock/pkg/rollout/observe"
	"github.com/penstock-project/penstock/pkg/rollout/preview"
	"github.com/penstock-project/penstock/pkg/rollout/stage"
	"github.com/penstock-project/penstock/test/framework/objects"
	"github.com/penstock-project/penstock/test/framework/poll"
)

// with sets a field in the metadata of a manifest.
func with(object map[string]any, field string, entries map[string]any) map[string]any {
	object["metadata"].(map[string]any)[field] = entries
	return object
}

// older is a Deployment that another tool rolled out before Penstock. It has a sidecar, a label, an
// annotation and fields that our manifest lacks.
func older(ns, name string) map[string]any {
	o := with(deployment(ns, name, "0"), "labels", map[string]any{"old": "label"})
	with(o, "annotations", map[string]any{"old": "annotation"})
	spec := o["spec"].(map[string]any)
	spec["minReadySeconds"] = int64(7)
	pod := spec["template"].(map[string]any)["spec"].(map[string]any)
	pod["containers"] = append(pod["containers"].([]any), map[string]any{"name": "sidecar", "image": "example.com/sidecar:1"})
	return o
}

// adoptsFromOthers: adoption removes fields that the former manager set and the manifest lacks.
// Fields of other managers stay.
func adoptsFromOthers(t *testing.T, c *chain) {
	ns := c.home()
	applied := func(args ...string) func(*chain, map[string]any) {
		return func(c *chain, object map[string]any) {
			raw, err := json.Marshal(object)
			if err != nil {
				t.Fatal(err)
			}
			c.MustKubectlInput(string(raw), append([]string{"apply", "-f", "-"}, args...)...)
		}
	}
	created := func(manager string) func(*chain, map[string]any) {
		return func(c *chain, object map[string]any) {
			if manager == "helm" {
				with(object, "annotations", map[string]any{"meta.helm.sh/release-name": "r", "old": "annotation"})
			}
			_, err := c.at(id(object)).Create(context.Background(), &unstructured.Unstructured{Object: object}, metav1.CreateOptions{FieldManager: manager})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, make := range map[string]func(*chain, map[string]any){
		"kubectl-apply":       applied(),
		"kubectl-server-side": applied("--server-side"),
		"helm":                created("helm"),
		"manager":             created("some-operator"),
	} {
		t.Run(name, func(t *testing.T) {
			app := deployment(ns, "slow-"+name, "1")
			make(c, older(ns, "slow-"+name))
			uid := c.uid(app)
			// The other managers are a user, an autoscaler and a controller.
			c.MustKubectl("label", "-n", ns, "deployment", "slow-"+name, "team=blue")
			c.MustKubectl("rollout", "restart", "-n", ns, "deployment", "slow-"+name)
			c.patch(id(app), "kube-controller-manager", `{"spec":{"replicas":5}}`, "scale")
			c.patch(id(app), "kube-controller-manager", `{"metadata":{"annotations":{"deployment.kubernetes.io/revision":"3"},"finalizers":["example.com/f"]}}`)
			if err := c.available(c.get(id(app))); err != nil {
				t.Fatal(err)
			}

			chain := c.targetCluster.in(t).chain("adopt-" + name)
			mark := c.Audit().Mark()
			chain.become(rev(1).adopting(stage.AdoptUncontrolled).phase("base", app))
			chain.until("adopted", func(r rollout.Report) bool {
				return strings.Contains(strings.Join(chain.events, "\n"), "took over")
			})
			if diff := cmp.Diff(map[string]int{"get": 2, "patch": 1, "apply": 1}, writesOf(chain.spent(mark))); diff != "" {
				t.Errorf("requests for an object that no watch shows, without dry-runs (-want +got):\n%s\n%s", diff, chain.requests(mark))
			}
			live := c.get(id(app))
			if live.GetUID() != uid {
				t.Error("the object was replaced")
			}
			labels, annotations := live.GetLabels(), live.GetAnnotations()
			delete(annotations, "penstock.dev/applied")
			if diff := cmp.Diff(map[string]string{"team": "blue", "penstock.dev/chain": "adopt-" + name}, labels); diff != "" {
				t.Errorf("labels (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(map[string]string{"deployment.kubernetes.io/revision": "3"}, annotations); diff != "" {
				t.Errorf("annotations (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([]string{"example.com/f"}, live.GetFinalizers()); diff != "" {
				t.Errorf("finalizers (-want +got):\n%s", diff)
			}
			spec := live.Object["spec"].(map[string]any)
			if spec["minReadySeconds"] != nil {
				t.Errorf("minReadySeconds is still %v", spec["minReadySeconds"])
			}
			containers, _, _ := unstructured.NestedSlice(live.Object, "spec", "template", "spec", "containers")
			if len(containers) != 1 {
				t.Errorf("the sidecar is still there: %v", containers)
			}
			restarted, _, _ := unstructured.NestedString(live.Object, "spec", "template", "metadata", "annotations", "kubectl.kubernetes.io/restartedAt")
			if restarted == "" {
				t.Error("a user's restart was undone")
			}
			for _, entry := range live.GetManagedFields() {
				if slices.Contains([]string{"kubectl-client-side-apply", "kubectl", "helm", "some-operator"}, entry.Manager) {
					t.Errorf("the former manager still has fields: %v", entry)
				}
			}
			if err := c.available(live); err != nil {
				t.Fatal(err)
			}
			chain.seen(app)
			chain.until("complete", complete)
			chain.quiet()
			// The next revision lacks the object and deletes it. Remove the finalizer first.
			c.patch(id(app), "somebody", `{"metadata":{"finalizers":null}}`)
			chain.roll()
		})
	}
}

// adoptsAsItWasTried: the dry-run of an adoption takes the same steps as the adoption.
// kube-apiserver refuses a plain apply of these manifests. The preview shows the result of the
// adoption.
func adoptsAsItWasTried(t *testing.T, c *chain) {
	ns := c.home()
	const definition, ports = "tried.example.com", "spec: {ports: [{name: http, port: %s, protocol: TCP}], selector: {app: x}}"
	c.create(widgets(definition, "Gadget", "gadgets"))
	poll.Eventually(t, "the kind to be served", func() (bool, string) { return c.serves(id(widget(definition, "Gadget", ns, "g", ""))), "" })
	head := func(version, kind string) string {
		return "apiVersion: " + version + "\nkind: " + kind + "\nmetadata: {namespace: " + ns + ", name: " + strings.ToLower(kind) + "-%s}\n"
	}
	deployment := head("apps/v1", "Deployment") + "spec:\n  selector: {matchLabels: {app: x}}\n  template: {metadata: {labels: {app: x}}, spec: {containers: %s}}\n"
	cases := map[string]struct{ format, old, new string }{
		"items":    {deployment, "[{name: c, image: a, env: [{name: A, value: x}], ports: [{name: http, containerPort: 80}]}]", "[{name: c, image: a, env: [{name: A, valueFrom: {fieldRef: {fieldPath: metadata.name}}}], ports: [{name: http, containerPort: 81}]}]"},
		"sidecar":  {deployment, "[{name: c, image: a, ports: [{name: http, containerPort: 80}]}, {name: s, image: s}]", "[{name: d, image: a, ports: [{name: http, containerPort: 80}]}, {name: c, image: a}]"},
		"strategy": {deployment + "  strategy: %s\n", "[{name: c, image: a}]|{type: RollingUpdate, rollingUpdate: {maxSurge: 1}}", "[{name: c, image: a}]|{type: Recreate}"},
		"default":  {deployment + "  %s\n", "[{name: c, image: a}]|minReadySeconds: 1", "[{name: c, image: a}]|strategy: {type: Recreate}"},
		"port":     {head("v1", "Service") + ports, "80", "81"},
		"custom":   {head(definition+"/v1", "Gadget") + "spec: %s", "{a: x, more: {b: [1, 2]}}", "{a: z, c: {d: 1}}"},
	}
	const fieldCase = "../../../../shared/data/field-cases/apply/06-takeover-and-change"
	files, _ := filepath.Glob(fieldCase + "/new/*")
	if len(files) == 0 {
		t.Logf("%s is absent", fieldCase)
	} else {
		here := func(file string) string {
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			return strings.ReplaceAll(string(raw), "namespace: fb", "namespace: "+ns)
		}
		cases["field"] = struct{ format, old, new string }{"# %s\n%s", here(fieldCase + "/old.yaml"), here(files[0])}
	}
	for name, tc := range cases {
		for by, args := range map[string][]string{"client": nil, "server": {"--server-side"}} {
			t.Run(name+"-"+by, func(t *testing.T) {
				manifest := func(values string) string {
					args := []any{name + "-" + by}
					for _, value := range strings.Split(values, "|") {
						args = append(args, value)
					}
					return fmt.Sprintf(tc.format, args...)
				}
				var wanted map[string]any
				decode(t, manifest(tc.new), &wanted)
				c.MustKubectlInput(manifest(tc.old), append([]string{"apply", "-f", "-"}, args...)...)
				chain := c.targetCluster.in(t).chain("tried-" + name + "-" + by)
				chain.run()
				chain.become(rev(1).adopting(stage.AdoptUncontrolled).phase("base", wanted))
				found, err := preview.New(preview.Options{Reader: chain.process.client, Trier: chain.process.client, Names: names()}).
					Preview(t.Context(), rollout.Work{Owner: chain.name, Layers: chain.layers, Bodies: chain}, nil)
				if err != nil {
					t.Fatal(err)
				}
				if found.Items[0].Action != rollout.Adopt || found.Items[0].Failure != nil {
					t.Fatalf("the preview has %+v", found.Items[0])
				}
				chain.until("adopted", func(rollout.Report) bool { return strings.Contains(strings.Join(chain.events, "\n"), "took over") })
				after := &unstructured.Unstructured{}
				if err := after.UnmarshalJSON(found.Items[0].After); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(after.Object["spec"], c.get(id(wanted)).Object["spec"]); diff != "" {
					t.Errorf("the object differs from the preview (-preview +live):\n%s", diff)
				}
				if strings.Contains(strings.Join(chain.events, "\n"), "refuses their removal") {
					t.Errorf("the former manager kept fields: %v", chain.events)
				}
				// The process ends with the subtest. The next case reuses the name, so delete the
				// object.
				c.remove(id(wanted))
			})
		}
	}
}

func decode(t *testing.T, text string, into any) {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err == nil {
		err = utiljson.Unmarshal(raw, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// writesOf removes dry-runs and discovery from the counts.
func writesOf(spent map[string]int) map[string]int {
	delete(spent, "try")
	delete(spent, "discover")
	return spent
}

// adoptsRestored: objects restored by a backup program belong to the chain again, without a
// collision. The next revision removes fields that it lacks.
func adoptsRestored(t *testing.T, c *chain) {
	ns := c.home()
	settings := configMap(ns, "settings", "1")
	settings["data"].(map[string]any)["more"] = "goes"
	service := objects.New("v1", "Service", ns, "web")
	service["spec"] = map[string]any{"selector": map[string]any{"app": "web"}, "ports": []any{map[string]any{"port": int64(80)}}}
	app := deployment(ns, "app", "1")
	all := []map[string]any{settings, secret(ns, "key", map[string]any{"password": "bWFkZS11cA=="}), service, app}
	c.roll(rev(1).phase("base", all...))
	restored := map[string]types.UID{}
	for _, object := range all {
		backup := c.get(id(object))
		if seen := names().Observe(backup); seen.Chain == "" || seen.Applied == "" {
			t.Fatalf("%s has no marks", id(object))
		}
		c.remove(id(object))
		for _, field := range []string{"uid", "resourceVersion", "managedFields", "creationTimestamp", "generation"} {
			unstructured.RemoveNestedField(backup.Object, "metadata", field)
		}
		unstructured.RemoveNestedField(backup.Object, "status")
		restored[id(object).String()] = c.create(backup.Object)
	}
	c.until("complete", complete)
	c.settled(t, all...)
	delete(settings["data"].(map[string]any), "more")
	c.roll(rev(2).phase("base", all...))
	c.settled(t, all...)
	for _, object := range all {
		if live := c.get(id(object)); live.GetUID() != restored[id(object).String()] {
			t.Errorf("%s was created again", id(object))
		}
	}
	if data, _, _ := unstructured.NestedStringMap(c.get(id(settings)).Object, "data"); len(data) != 1 {
		t.Errorf("fields that the next revision drops are still there: %v", data)
	}

	// A store with another key cannot verify the digest of a Secret. The content then decides
	// whether the Secret belongs to the chain.
	key := all[1]
	for _, password := range []string{"b3RoZXI=", "bWFkZS11cA=="} {
		backup := c.get(id(key))
		c.remove(id(key))
		for _, field := range []string{"uid", "resourceVersion", "managedFields", "creationTimestamp"} {
			unstructured.RemoveNestedField(backup.Object, "metadata", field)
		}
		annotations := backup.GetAnnotations()
		annotations[names().AppliedAnnotation] = "hmac-sha256:" + strings.Repeat("0", 64)
		backup.SetAnnotations(annotations)
		backup.Object["data"] = map[string]any{"password": password}
		c.kill()
		_, version := c.ledger.load()
		if err := c.ledger.store(rollout.Inventory{}, version); err != nil {
			t.Fatal(err)
		}
		c.create(backup.Object)
		if password != "bWFkZS11cA==" {
			c.stuck("2/base Secret adopt-restored/key: Collision")
			continue
		}
		c.until("complete", complete)
		c.settled(t, all...)
	}
	c.roll()
	c.settled(t)
}

// adoptsWhatIsWatched: adopting an object that a watch by name shows costs one read for the
// dry-run, one patch and one apply.
func adoptsWhatIsWatched(t *testing.T, c *chain) {
	ns := c.home()
	theirs := configMap(ns, "x", "theirs")
	theirs["data"].(map[string]any)["more"] = "goes"
	c.create(theirs)
	x := configMap(ns, "x", "1")
	c.become(rev(1).phase("base", x))
	c.stuck("1/base ConfigMap adopt-watched/x: Collision")
	c.until("watched", func(rollout.Report) bool {
		_, presence := c.process.watches.Get(id(x))
		return presence == observe.Present
	})
	mark := c.Audit().Mark()
	c.roll(rev(2).adopting(stage.AdoptUncontrolled).phase("base", x))
	if diff := cmp.Diff(map[string]int{"get": 1, "patch": 1, "apply": 1}, writesOf(c.spent(mark))); diff != "" {
		t.Errorf("(-want +got):\n%s\n%s", diff, c.requests(mark))
	}
	if data := c.get(id(x)).Object["data"]; !cmp.Equal(data, map[string]any{"value": "1"}) {
		t.Errorf("data is %v", data)
	}
	c.settled(t, x)
	c.quiet()
}

// adoptsWithWhatCannotGo: kube-apiserver refuses to remove a field that the former manager set.
func adoptsWithWhatCannotGo(t *testing.T, c *chain) {
	ns := c.home()
	claim := func(class any) map[string]any {
		spec := map[string]any{"accessModes": []any{"ReadWriteOnce"}, "resources": map[string]any{"requests": map[string]any{"storage": "1Gi"}}}
		if class != nil {
			spec["storageClassName"] = class
		}
		return map[string]any{"apiVersion": "v1", "kind": "PersistentVolumeClaim",
			"metadata": map[string]any{"namespace": ns, "name": "slow"}, "spec": spec}
	}
	c.create(with(claim("fast"), "labels", map[string]any{"old": "label"}))
	one := rev(1).adopting(stage.AdoptUncontrolled).phase("base", claim(nil))
	c.become(one)
	c.until("adopted", func(rollout.Report) bool {
		return strings.Contains(strings.Join(c.events, "\n"), "the server refuses their removal")
	})
	live := c.get(id(claim(nil)))
	if class, _, _ := unstructured.NestedString(live.Object, "spec", "storageClassName"); class != "fast" {
		t.Errorf("the class is %q", class)
	}
	if seen := names().Observe(live); seen.Chain != c.name {
		t.Errorf("the object does not belong to the chain: %+v", seen)
	}
}

// survivesWipedManagedFields: after another user deletes managedFields, a later revision still
// removes fields that it lacks.
func survivesWipedManagedFields(t *testing.T, c *chain) {
	ns := c.home()
	x := configMap(ns, "x", "1")
	x["data"].(map[string]any)["more"] = "1"
	one := rev(1).phase("base", x)
	c.roll(one)
	wipe := func() {
		c.MustKubectl("label", "-n", ns, "configmap", "x", "team=blue", "--overwrite")
		c.patch(id(x), "somebody", `{"metadata":{"managedFields":[{}]}}`)
	}
	check := func(want map[string]any) {
		t.Helper()
		live := c.get(id(x))
		if diff := cmp.Diff(want, live.Object["data"]); diff != "" {
			t.Errorf("data (-want +got):\n%s", diff)
		}
		if live.GetLabels()["team"] != "blue" {
			t.Errorf("a user's label was lost: %v", live.GetLabels())
		}
	}
	// The engine repairs managedFields before the upgrade.
	wipe()
	c.seen(x)
	c.until("complete", complete)
	two := rev(2).phase("base", configMap(ns, "x", "2"))
	c.roll(two)
	c.settled(t, two.objects()...)
	check(map[string]any{"value": "2"})

	// managedFields are wiped while no process runs, and then the chain is upgraded.
	three := configMap(ns, "x", "3")
	three["data"].(map[string]any)["more"] = "3"
	c.roll(rev(3).phase("base", three))
	c.kill()
	wipe()
	four := rev(4).phase("base", configMap(ns, "x", "4"))
	c.roll(four)
	c.settled(t, four.objects()...)
	check(map[string]any{"value": "4"})
	c.quiet()
}
