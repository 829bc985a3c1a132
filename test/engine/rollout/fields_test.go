//go:build integration

package rollout_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/penstock-project/penstock/pkg/rollout"
	"github.com/penstock-project/penstock/pkg/rollout/preview"
	"github.com/penstock-project/penstock/pkg/rollout/targetclient"
)

// TestFields tests fields that kube-apiserver or a controller sets, or that kube-apiserver refuses
// to change. The scenarios run at the same time on one cluster.
func TestFields(t *testing.T) {
	t.Parallel()
	w := start(t)
	w.runControllers()
	for name, scenario := range map[string]func(*testing.T, *chain){
		"secret-key":      removesKeysOfStringData,
		"secret-key-old":  removesKeysThatWereWrittenAsStringData,
		"leftovers":       removesDefaultsThatBlock,
		"refused":         hasAWayOutOfRefusals,
		"refused-restart": remembersRefusals,
		"invalid":         keepsTheOlderOneWhenTheNewerIsInvalid,
		"aggregated":      leavesRulesToTheirController,
		"aggregated-old":  takesNoRightsAwayOfWhatItApplied,
		"ca-bundle":       leavesInjectedBundles,
		"claim":           leavesLargerClaims,
		"status":          keepsStatusThatIsContent,
		"counted":         leavesCounters,
		"finished":        runsFinishedJobsOnce,
		"finished-down":   runsJobsOnceThatFinishedMeanwhile,
		"deleted-again":   dampsRecreation,
		"definitions":     dropsDefinitionsWithoutInstances,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			scenario(t, w.in(t).chain(name))
		})
	}
}

// object parses YAML.
func object(t *testing.T, text string) map[string]any {
	t.Helper()
	o := map[string]any{}
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(raw); err != nil {
		t.Fatal(err)
	}
	maps.Copy(o, u.Object)
	return o
}

// data returns the decoded data of a Secret in the cluster.
func (c *chain) data(secret map[string]any) map[string]string {
	c.t.Helper()
	live := c.get(id(secret))
	if live == nil {
		return nil
	}
	found := map[string]string{}
	encoded, _, _ := unstructured.NestedStringMap(live.Object, "data")
	for key, value := range encoded {
		decoded, err := base64.StdEncoding.DecodeString(value)
		if err != nil {
			c.t.Fatal(err)
		}
		found[key] = string(decoded)
	}
	return found
}

func secretOf(ns, body string) string {
	return "{apiVersion: v1, kind: Secret, metadata: {namespace: " + ns + ", name: s}, type: Opaque, " + body + "}"
}

func removesKeysOfStringData(t *testing.T, c *chain) {
	ns := c.home()
	one := object(t, secretOf(ns, "stringData: {a: '1', b: '2'}, data: {a: eA==, c: Mw==}"))
	c.roll(rev(1).phase("p", one))
	if got := c.data(one); fmt.Sprint(got) != "map[a:1 b:2 c:3]" {
		t.Errorf("stringData wins over data: %v", got)
	}
	c.quiet()
	two := object(t, secretOf(ns, "stringData: {a: '1'}"))
	c.roll(rev(2).phase("p", two), rev(1).phase("p", one))
	if got := c.data(two); fmt.Sprint(got) != "map[a:1]" {
		t.Errorf("the dropped keys are still there: %v", got)
	}
	c.settled(t, two)
	c.quiet()
}

// removesKeysThatWereWrittenAsStringData: an earlier Penstock applied a Secret, so its
// managedFields contain stringData and not data.
func removesKeysThatWereWrittenAsStringData(t *testing.T, c *chain) {
	ns := c.home()
	one := object(t, secretOf(ns, "stringData: {a: '1', b: '2'}"))
	c.roll(rev(1).phase("p", one))
	c.kill()
	c.asEarlier(one)
	c.run()
	c.roll(rev(1).phase("p", one))
	c.quiet() // a new Penstock by itself changes nothing
	two := object(t, secretOf(ns, "stringData: {a: '3'}"))
	c.roll(rev(2).phase("p", two), rev(1).phase("p", one))
	if got := c.data(two); fmt.Sprint(got) != "map[a:3]" {
		t.Errorf("the dropped key is still there: %v", got)
	}
}

// asEarlier applies an object unchanged, as an earlier Penstock did, and records that in the
// inventory.
func (c *chain) asEarlier(o map[string]any) {
	c.t.Helper()
	sealed := seal(o)
	body := (&unstructured.Unstructured{Object: o}).DeepCopy()
	body.SetLabels(map[string]string{"penstock.dev/chain": c.name})
	body.SetAnnotations(map[string]string{"penstock.dev/applied": string(sealed.Digest)})
	raw, err := json.Marshal(body)
	if err != nil {
		c.t.Fatal(err)
	}
	live, err := c.at(sealed.ID).Patch(context.Background(), sealed.Name, types.ApplyPatchType, raw, metav1.PatchOptions{FieldManager: "penstock/" + c.name, Force: ptr.To(true)})
	if err != nil {
		c.t.Fatal(err)
	}
	seen := names().Observe(live)
	mine, _ := seen.Entry("penstock/" + c.name)
	c.ledger.mu.Lock()
	defer c.ledger.mu.Unlock()
	entry := c.ledger.inventory.Entries[sealed.ID]
	entry.ManagedEntry, entry.Generation, entry.ResourceVersion = mine.Digest, seen.Generation, seen.ResourceVersion
	entries := maps.Clone(c.ledger.inventory.Entries)
	entries[sealed.ID] = entry
	c.ledger.inventory.Entries = entries
	c.ledger.version++
}

// deploymentOf returns a Deployment in YAML. spec, pod and container are further fields of its
// spec, its Pod template and its container.
func deploymentOf(ns, name, spec, pod, container string) string {
	return fmt.Sprintf(`{apiVersion: apps/v1, kind: Deployment, metadata: {namespace: %s, name: %s}, spec: {%s
selector: {matchLabels: {app: x}}, template: {metadata: {labels: {app: x}}, spec: {%s containers: [{name: c, image: "registry.example.com/x:1", %s}]}}}}`, ns, name, spec, pod, container)
}

// removesDefaultsThatBlock: defaults that kube-apiserver set for the old manifest conflict with the
// new manifest.
func removesDefaultsThatBlock(t *testing.T, c *chain) {
	ns := c.home()
	mount := `volumeMounts: [{name: v, mountPath: /v}]`
	cases := map[string][2]string{
		"recreate": {deploymentOf(ns, "recreate", "", "", ""), deploymentOf(ns, "recreate", "strategy: {type: Recreate},", "", "")},
		"rolling":  {deploymentOf(ns, "rolling", "strategy: {type: RollingUpdate},", "", ""), deploymentOf(ns, "rolling", "strategy: {type: Recreate},", "", "")},
		"volume": {deploymentOf(ns, "volume", "", "volumes: [{name: v, configMap: {name: a}}],", mount),
			deploymentOf(ns, "volume", "", "volumes: [{name: v, secret: {secretName: a}}],", mount)},
		"empty-dir": {deploymentOf(ns, "empty-dir", "", "volumes: [{name: v}],", mount),
			deploymentOf(ns, "empty-dir", "", "volumes: [{name: v, persistentVolumeClaim: {claimName: a}}],", mount)},
		"probe": {deploymentOf(ns, "probe", "", "", "livenessProbe: {httpGet: {port: 80}}"),
			deploymentOf(ns, "probe", "", "", "livenessProbe: {tcpSocket: {port: 80}}")},
		"env": {deploymentOf(ns, "env", "", "", "env: [{name: A, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]"),
			deploymentOf(ns, "env", "", "", "env: [{name: A, value: x}]")},
		"source": {deploymentOf(ns, "source", "", "", "env: [{name: A, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]"),
			deploymentOf(ns, "source", "", "", "env: [{name: A, valueFrom: {secretKeyRef: {name: a, key: b, optional: true}}}]")},
		"affinity": {"{apiVersion: v1, kind: Service, metadata: {namespace: " + ns + ", name: affinity}, spec: {sessionAffinity: ClientIP, ports: [{port: 80}]}}",
			"{apiVersion: v1, kind: Service, metadata: {namespace: " + ns + ", name: affinity}, spec: {sessionAffinity: None, ports: [{port: 80}]}}"},
	}
	one, two := rev(1), rev(2)
	var before, after []map[string]any
	for _, tc := range cases {
		before, after = append(before, object(t, tc[0])), append(after, object(t, tc[1]))
	}
	c.roll(one.phase("p", before...))
	uids := map[string]types.UID{}
	for _, o := range after {
		uids[id(o).String()] = c.uid(o)
	}
	c.become(two.phase("p", after...), one)
	report := c.until("rolled out or refused", func(r rollout.Report) bool {
		return complete(r) || strings.Contains(strings.Join(failures(r), "\n"), "ApplyRejected")
	})
	if !complete(report) {
		t.Fatalf("refused: %v\n%s", failures(report), messages(report))
	}
	for _, o := range after {
		if c.uid(o) != uids[id(o).String()] {
			t.Errorf("%s was replaced", id(o))
		}
		live := c.get(id(o))
		for key, value := range o["spec"].(map[string]any) {
			if key == "strategy" || key == "sessionAffinity" {
				if fmt.Sprint(live.Object["spec"].(map[string]any)[key]) != fmt.Sprint(value) {
					t.Errorf("%s: %s is %v", id(o), key, live.Object["spec"].(map[string]any)[key])
				}
			}
		}
	}
	c.quiet()
}

// unchangeables returns objects before and after a change that kube-apiserver refuses.
func unchangeables(t *testing.T, ns string) map[string][2]map[string]any {
	t.Helper()
	cases := map[string][2]string{
		"type": {"{apiVersion: v1, kind: Secret, metadata: {namespace: NS, name: type}, type: Opaque, data: {tls.crt: eA==, tls.key: eA==}}",
			"{apiVersion: v1, kind: Secret, metadata: {namespace: NS, name: type}, type: kubernetes.io/tls, data: {tls.crt: eA==, tls.key: eA==}}"},
		"priority": {"{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: NS}, value: 1}",
			"{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: NS}, value: 2}"},
		"ingress class": {"{apiVersion: networking.k8s.io/v1, kind: IngressClass, metadata: {name: NS}, spec: {controller: example.com/a}}",
			"{apiVersion: networking.k8s.io/v1, kind: IngressClass, metadata: {name: NS}, spec: {controller: example.com/b}}"},
		"storage class": {"{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: NS}, provisioner: example.com/a, parameters: {a: b}}",
			"{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: NS}, provisioner: example.com/a, parameters: {a: c}}"},
		"endpoint slice": {"{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {namespace: NS, name: slice}, addressType: IPv4, endpoints: []}",
			"{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {namespace: NS, name: slice}, addressType: IPv6, endpoints: []}"},
		"quota": {"{apiVersion: v1, kind: ResourceQuota, metadata: {namespace: NS, name: quota}, spec: {hard: {pods: '9'}, scopes: [BestEffort]}}",
			"{apiVersion: v1, kind: ResourceQuota, metadata: {namespace: NS, name: quota}, spec: {hard: {pods: '9'}, scopes: [NotBestEffort]}}"},
		"controller revision": {"{apiVersion: apps/v1, kind: ControllerRevision, metadata: {namespace: NS, name: revision}, revision: 1, data: {a: b}}",
			"{apiVersion: apps/v1, kind: ControllerRevision, metadata: {namespace: NS, name: revision}, revision: 1, data: {a: c}}"},
		"custom": {"{apiVersion: NS.example.com/v1, kind: Fixed, metadata: {namespace: NS, name: x}, spec: {value: a}}",
			"{apiVersion: NS.example.com/v1, kind: Fixed, metadata: {namespace: NS, name: x}, spec: {value: b}}"},
		"node port": {"{apiVersion: v1, kind: Service, metadata: {namespace: NS, name: node}, spec: {type: NodePort, clusterIP: 10.96.44.5, ports: [{port: 80, nodePort: PORT}]}}",
			"{apiVersion: v1, kind: Service, metadata: {namespace: NS, name: node}, spec: {type: NodePort, clusterIP: 10.96.44.6, ports: [{port: 80, nodePort: PORT}]}}"},
	}
	found := map[string][2]map[string]any{}
	for name, tc := range cases {
		port, ips := "31771", [2]string{"10.96.44.5", "10.96.44.6"}
		if ns != "refused" {
			port, ips = "31772", [2]string{"10.96.44.7", "10.96.44.8"}
		}
		both := [2]map[string]any{}
		for i := range tc {
			text := strings.ReplaceAll(strings.ReplaceAll(tc[i], "NS", ns), "PORT", port)
			text = strings.ReplaceAll(strings.ReplaceAll(text, "10.96.44.5", ips[0]), "10.96.44.6", ips[1])
			both[i] = object(t, text)
		}
		found[name] = both
	}
	return found
}

// fixed is the definition of a kind with an immutable value and its own error message.
func fixed(ns string) map[string]any {
	definition := widgets(ns+".example.com", "Fixed", "fixeds")
	version := definition["spec"].(map[string]any)["versions"].([]any)[0].(map[string]any)
	version["schema"] = map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "properties": map[string]any{
		"spec": map[string]any{"type": "object", "properties": map[string]any{"value": map[string]any{"type": "string",
			"x-kubernetes-validations": []any{map[string]any{"rule": "self == oldSelf", "message": "once is enough"}}}}}}}}
	return definition
}

// hasAWayOutOfRefusals: the message advises the user to delete the object, for any error text of
// kube-apiserver. The deletion is enough.
func hasAWayOutOfRefusals(t *testing.T, c *chain) {
	refusedAndDeleted(t, c, func() {})
}

// remembersRefusals: the process is replaced between the refusal and the deletion.
func remembersRefusals(t *testing.T, c *chain) {
	refusedAndDeleted(t, c, func() {
		c.kill()
	})
}

func refusedAndDeleted(t *testing.T, c *chain, meanwhile func()) {
	ns := c.home()
	definition := fixed(ns)
	var before, after []map[string]any
	for _, both := range unchangeables(t, ns) {
		before, after = append(before, both[0]), append(after, both[1])
	}
	one := rev(1).phase("definition", definition).phase("p", before...)
	c.roll(one)
	two := rev(2).phase("definition", definition).phase("p", after...)
	c.become(two, one)
	c.refusedByPreview(after)
	report := c.until("refused", func(r rollout.Report) bool {
		failures := r.Layers[0].Phases[1].Failures
		for _, f := range failures {
			if !f.Immutable {
				return false
			}
		}
		return len(failures) == len(after)
	})
	for _, f := range report.Layers[0].Phases[1].Failures {
		if !strings.Contains(f.Message, "kubectl delete "+strings.ToLower(f.GroupKind().String())+" "+f.Name) || !f.NeedsPerson {
			t.Errorf("the advice of %s: %s", f.ID, f.Message)
		}
		if f.IsSecret() && !strings.Contains(f.Message, "type") {
			t.Errorf("the message does not name the field: %s", f.Message)
		}
	}
	meanwhile()
	for _, o := range after {
		c.remove(id(o))
	}
	if c.process == nil {
		c.run()
	}
	c.until("complete", complete)
	for _, o := range after {
		if got := names().Observe(c.get(id(o))); got.Applied != seal(o).Digest {
			t.Errorf("%s does not have the new manifest", id(o))
		}
	}
}

// refusedByPreview checks that a preview reports that kube-apiserver refuses these objects. The
// preview writes nothing.
func (c *chain) refusedByPreview(objects []map[string]any) {
	c.t.Helper()
	mark := c.Audit().Mark()
	refused := map[string]bool{}
	for _, item := range c.previewed().Items {
		if item.Failure == nil {
			continue
		}
		refused[item.ID.String()] = true
		if item.Failure.Reason != rollout.ReasonRejected || !strings.Contains(item.Failure.Message, "delete") {
			c.t.Errorf("the preview of %s: %s: %s", item.ID, item.Failure.Reason, item.Failure.Message)
		}
	}
	for _, o := range objects {
		if !refused[id(o).String()] {
			c.t.Errorf("a preview does not say that %s is refused", id(o))
		}
	}
	if spent := c.spent(mark); spent["apply"] > 0 {
		c.t.Errorf("a preview has written: %v", spent)
	}
}

// keepsTheOlderOneWhenTheNewerIsInvalid: an invalid manifest does not lead to the advice to delete.
// After a deletion the older revision creates the object again.
func keepsTheOlderOneWhenTheNewerIsInvalid(t *testing.T, c *chain) {
	ns := c.home()
	service := func(port string) map[string]any {
		return object(t, "{apiVersion: v1, kind: Service, metadata: {namespace: "+ns+", name: s}, spec: {ports: [{port: "+port+"}]}}")
	}
	one, two := rev(1).phase("p", service("80")), rev(2).phase("p", service("99999"))
	c.roll(one)
	c.become(two, one)
	report := c.stuck("2/p Service invalid/s: ApplyRejected")
	if f := report.Layers[0].Phases[0].Failures[0]; f.Immutable || strings.Contains(f.Message, "delete the object") {
		t.Errorf("the message asks for a deletion: %s", f.Message)
	}
	uid := c.uid(service("80"))
	c.remove(id(service("80")))
	c.until("made again", func(rollout.Report) bool {
		live := c.get(id(service("80")))
		return live != nil && live.GetUID() != uid
	})
}

// keepsStatusThatIsContent: status belongs to a controller if the kind has a status subresource.
// Otherwise it belongs to the manifest.
func keepsStatusThatIsContent(t *testing.T, c *chain) {
	ns := c.home()
	group := ns + ".example.com"
	apart, content := widgets(group, "Post", "posts"), widgets(group, "Lamp", "lamps")
	version := content["spec"].(map[string]any)["versions"].([]any)[0].(map[string]any)
	subresources := version["subresources"]
	delete(version, "subresources")
	version["schema"].(map[string]any)["openAPIV3Schema"].(map[string]any)["required"] = []any{"status"}
	with := func(kind, status string) map[string]any {
		return object(t, "{apiVersion: "+group+"/v1, kind: "+kind+", metadata: {namespace: "+ns+", name: x}, spec: {value: a}, status: "+status+"}")
	}
	status := func(kind string) string { return fmt.Sprint(c.get(id(with(kind, "{}"))).Object["status"]) }
	one := rev(1).phase("p", apart, content).phase("q", with("Post", "{phase: 'on', old: a}"), with("Lamp", "{phase: 'on', old: a}"))
	c.roll(one)
	c.quiet()
	if post, lamp := status("Post"), status("Lamp"); post != "<nil>" || lamp != "map[old:a phase:on]" {
		t.Errorf("applied: %s, %s", post, lamp)
	}
	// A controller changes the status of the Post. Another user changes the status of the Lamp,
	// where it is content.
	if _, err := c.at(id(with("Post", "{}"))).Patch(t.Context(), "x", types.MergePatchType, []byte(`{"status":{"phase":"failed"}}`), metav1.PatchOptions{FieldManager: "controller"}, "status"); err != nil {
		t.Fatal(err)
	}
	c.patch(id(with("Lamp", "{}")), "somebody", `{"status":{"phase":"failed"}}`)
	c.until("repaired", func(r rollout.Report) bool { return complete(r) && status("Lamp") == "map[old:a phase:on]" })
	if got := status("Post"); got != "map[phase:failed]" {
		t.Errorf("the controller's status is %s", got)
	}

	two := rev(2).phase("p", apart, content).phase("q", with("Post", "{phase: 'off'}"), with("Lamp", "{phase: 'off'}"))
	c.become(two, one)
	for _, item := range c.previewed().Items {
		switch before, after := string(item.Before), string(item.After); {
		case item.Kind == "Lamp" && (!strings.Contains(before, `"status":{"old":"a","phase":"on"}`) || !strings.Contains(after, `"status":{"phase":"off"}`)):
			t.Errorf("a preview changes %s into %s", before, after)
		case item.Kind == "Post" && strings.Contains(before+after, `"status":`):
			t.Errorf("a preview shows the controller's status: %s, %s", before, after)
		}
	}
	c.roll(two, one)
	if post, lamp := status("Post"), status("Lamp"); post != "map[phase:failed]" || lamp != "map[phase:off]" {
		t.Errorf("changed: %s, %s", post, lamp)
	}
	c.quiet()

	// The definition gets the status subresource. From now on status belongs to a controller.
	version["subresources"] = subresources
	c.redefine(content)
	c.patch(id(with("Lamp", "{}")), "somebody", `{"spec":{"value":"b"}}`)
	c.until("repaired", func(r rollout.Report) bool {
		return complete(r) && valueOf(c.get(id(with("Lamp", "{}"))).Object) == "a"
	})
	c.until("complete", complete)
	c.quiet()
}

// previewed returns the preview of a rollout of the layers.
func (c *chain) previewed() preview.Preview {
	c.t.Helper()
	target, err := targetclient.New(targetclient.Options{Config: c.admin})
	if err != nil {
		c.t.Fatal(err)
	}
	inventory, _ := c.ledger.load()
	found, err := preview.New(preview.Options{Reader: target, Trier: target, Names: names()}).Preview(context.Background(),
		rollout.Work{Owner: c.name, Layers: c.layers, Inventory: inventory, Bodies: c}, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	return found
}

// leavesRulesToTheirController: Penstock never owns the rules of an aggregated role, however the
// manifest writes them.
func leavesRulesToTheirController(t *testing.T, c *chain) {
	var roles []map[string]any
	for name, rules := range map[string]string{"absent": "", "empty": "rules: [],", "null": "rules: null,", "filled": "rules: [{apiGroups: [example.com], resources: [a], verbs: [get]}],"} {
		roles = append(roles, object(t, "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: aggregated-"+name+"}, "+rules+
			" aggregationRule: {clusterRoleSelectors: [{matchLabels: {aggregated: 'yes'}}]}}"))
	}
	one := rev(1).phase("p", roles...)
	c.roll(one)
	for _, role := range roles {
		if live := c.get(id(role)); live.Object["rules"] != nil {
			t.Errorf("%s has rules from the manifest: %v", id(role), live.Object["rules"])
		}
		c.patch(id(role), "clusterrole-aggregation-controller", `{"rules":[{"apiGroups":["example.com"],"resources":["b"],"verbs":["list"]}]}`)
	}
	mark := c.Audit().Mark()
	c.until("complete", complete)
	if spent := c.spent(mark); spent["apply"] > 0 {
		t.Errorf("the engine wrote: %v", spent)
	}
	two := rev(2).phase("p")
	for _, role := range roles {
		role := (&unstructured.Unstructured{Object: role}).DeepCopy()
		role.SetLabels(map[string]string{"version": "2"})
		two.phases[0].objects = append(two.phases[0].objects, role.Object)
	}
	c.roll(two, one)
	for _, role := range roles {
		if live := c.get(id(role)); valueOf(live.Object) != "list" {
			t.Errorf("%s lost its rules: %v", id(role), live.Object["rules"])
		}
	}
}

// takesNoRightsAwayOfWhatItApplied: an earlier Penstock applied the rules, and no other writer has
// changed them since.
func takesNoRightsAwayOfWhatItApplied(t *testing.T, c *chain) {
	role := func(version string) map[string]any {
		return object(t, "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: aggregated-old, labels: {version: '"+version+"'}},"+
			" rules: [{apiGroups: [example.com], resources: [a], verbs: [get]}], aggregationRule: {clusterRoleSelectors: [{matchLabels: {aggregated: 'no'}}]}}")
	}
	one := rev(1).phase("p", role("1"))
	c.roll(one)
	c.kill()
	earlier := role("1")
	c.asEarlier(earlier)
	c.run()
	c.roll(one)
	c.quiet()
	c.roll(rev(2).phase("p", role("2")), one)
	if live := c.get(id(earlier)); valueOf(live.Object) != "get" {
		t.Errorf("the role lost its rules: %v", live.Object["rules"])
	}
}

func leavesInjectedBundles(t *testing.T, c *chain) {
	const bundle = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCkFBQUEKLS0tLS1FTkQgQ0VSVElGSUNBVEUtLS0tLQo="
	var webhooks []map[string]any
	for name, value := range map[string]string{"empty": `""`, "break": "Cg==", "first": bundle, "absent": "null"} {
		webhooks = append(webhooks, object(t, `{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration,
  metadata: {name: injected-`+name+`, annotations: {cert-manager.io/inject-ca-from: a/b}},
  webhooks: [{name: a.example.com, admissionReviewVersions: [v1], sideEffects: None, failurePolicy: Ignore,
    clientConfig: {caBundle: `+value+`, url: "https://example.com"}, rules: [{apiGroups: [fields.example.com], apiVersions: [v1], operations: [CREATE], resources: [nothing]}]}]}`))
	}
	one := rev(1).phase("p", webhooks...)
	c.roll(one)
	const injected = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCkJCQkIKLS0tLS1FTkQgQ0VSVElGSUNBVEUtLS0tLQo="
	for _, w := range webhooks {
		live := c.get(id(w))
		config := live.Object["webhooks"].([]any)[0].(map[string]any)["clientConfig"].(map[string]any)
		config["caBundle"] = injected
		if _, err := c.at(id(w)).Update(t.Context(), live, metav1.UpdateOptions{FieldManager: "cainjector"}); err != nil {
			t.Fatal(err)
		}
	}
	c.until("complete", complete)
	two := rev(2).phase("p")
	for _, w := range webhooks {
		next := (&unstructured.Unstructured{Object: w}).DeepCopy()
		next.SetLabels(map[string]string{"version": "2"})
		two.phases[0].objects = append(two.phases[0].objects, next.Object)
	}
	c.roll(two, one)
	for _, w := range webhooks {
		live := c.get(id(w))
		config := live.Object["webhooks"].([]any)[0].(map[string]any)["clientConfig"].(map[string]any)
		if config["caBundle"] != injected {
			t.Errorf("%s: the bundle was taken back: %v", id(w), config["caBundle"])
		}
	}
}

// looksAt makes a change as another user, and waits until the engine has read the object. The
// inventory records the read. A pass alone does not prove it, because it can come before the watch
// event.
func (c *chain) looksAt(change func()) {
	c.t.Helper()
	_, before := c.ledger.load()
	change()
	c.until("looked at", func(r rollout.Report) bool {
		_, now := c.ledger.load()
		return complete(r) && now != before
	})
}

func leavesLargerClaims(t *testing.T, c *chain) {
	ns := c.home()
	class := object(t, "{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: grows}, provisioner: example.com/a, allowVolumeExpansion: true}")
	c.create(class)
	claim := func(size, version string) map[string]any {
		return object(t, "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {namespace: "+ns+", name: d, labels: {version: '"+version+"'}},"+
			" spec: {storageClassName: grows, volumeName: '', accessModes: [ReadWriteOnce], resources: {requests: {storage: "+size+"}}}}")
	}
	size := func() string {
		got, _, _ := unstructured.NestedString(c.get(id(claim("1Gi", "1"))).Object, "spec", "resources", "requests", "storage")
		return got
	}
	one := rev(1).phase("p", claim("1Gi", "1"))
	c.become(one)
	c.until("created", func(rollout.Report) bool { return c.get(id(claim("1Gi", "1"))) != nil })
	c.patch(id(claim("1Gi", "1")), "binder", `{"spec":{"volumeName":"pv-grows"}}`)
	c.patch(id(claim("1Gi", "1")), "binder", `{"status":{"phase":"Bound","capacity":{"storage":"1Gi"}}}`, "status")
	c.until("complete", complete)
	c.looksAt(func() {
		c.patch(id(claim("1Gi", "1")), "kubectl-edit", `{"spec":{"resources":{"requests":{"storage":"3Gi"}}}}`)
	})
	if got := size(); got != "3Gi" {
		t.Errorf("the size was taken back: %s", got)
	}
	c.quiet()
	two := rev(2).phase("p", claim("2Gi", "2"))
	c.roll(two, one)
	if got := size(); got != "3Gi" {
		t.Errorf("a smaller manifest: %s", got)
	}
	three := rev(3).phase("p", claim("5Gi", "3"))
	c.roll(three, two)
	if got := size(); got != "5Gi" {
		t.Errorf("a larger manifest: %s", got)
	}
	c.quiet()
}

func leavesCounters(t *testing.T, c *chain) {
	ns := c.home()
	counted := object(t, deploymentOf(ns, "counted", "", "", ""))
	counted["metadata"].(map[string]any)["annotations"] = map[string]any{"deployment.kubernetes.io/revision": "1"}
	c.roll(rev(1).phase("p", counted))
	c.looksAt(func() {
		c.patch(id(counted), "kube-controller-manager", `{"metadata":{"annotations":{"deployment.kubernetes.io/revision":"7"}}}`)
	})
	if got := c.get(id(counted)).GetAnnotations()["deployment.kubernetes.io/revision"]; got != "7" {
		t.Errorf("the count was taken back: %s", got)
	}
}

func jobOf(t *testing.T, ns, name, spec string) map[string]any {
	return object(t, "{apiVersion: batch/v1, kind: Job, metadata: {namespace: "+ns+", name: "+name+"}, spec: {"+spec+
		" template: {spec: {restartPolicy: Never, containers: [{name: c, image: 'registry.example.com/x:1'}]}}}}")
}

// finish writes the final status of a Job as the Job controller does.
func (c *chain) finish(job map[string]any, how string) {
	c.t.Helper()
	before := map[string]string{"Complete": "SuccessCriteriaMet", "Failed": "FailureTarget"}[how]
	status := `{"status":{"startTime":"2026-01-01T00:00:00Z"}}`
	c.patch(id(job), "job-controller", status, "status")
	completion := ""
	if how == "Complete" {
		completion = `"completionTime":"2026-01-01T00:00:01Z","succeeded":1,`
	}
	c.patch(id(job), "job-controller", fmt.Sprintf(`{"status":{%s"conditions":[
  {"type":%q,"status":"True","lastProbeTime":"2026-01-01T00:00:01Z","lastTransitionTime":"2026-01-01T00:00:01Z"},
  {"type":%q,"status":"True","lastProbeTime":"2026-01-01T00:00:01Z","lastTransitionTime":"2026-01-01T00:00:01Z"}]}}`, completion, before, how), "status")
}

// vanish deletes a Job as the TTL controller does.
func (c *chain) vanish(job map[string]any) {
	c.t.Helper()
	background := metav1.DeletePropagationBackground
	if err := c.at(id(job)).Delete(context.Background(), id(job).Name, metav1.DeleteOptions{PropagationPolicy: &background}); err != nil {
		c.t.Fatal(err)
	}
}

func runsFinishedJobsOnce(t *testing.T, c *chain) {
	ns := c.home()
	job, failed, x := jobOf(t, ns, "j", "ttlSecondsAfterFinished: 1,"), jobOf(t, ns, "failed", "ttlSecondsAfterFinished: 0,"), configMap(ns, "x", "1")
	one := rev(1).phase("p", job).phase("next", x)
	c.become(one)
	c.until("created", func(rollout.Report) bool { return c.get(id(job)) != nil })
	c.finish(job, "Complete")
	c.vanish(job)
	c.until("complete", complete)
	if c.get(id(job)) != nil || c.value(x) != "1" {
		t.Error("the Job was run again, or the phase after it was not rolled out")
	}
	c.quiet()
	// A new process, and a new revision with the same Job, do not run the Job again.
	c.kill()
	c.run()
	two := rev(2).phase("p", job).phase("next", configMap(ns, "x", "2"))
	c.roll(two, one)
	c.roll(two)
	if c.get(id(job)) != nil {
		t.Error("the Job was run again")
	}
	// A changed Job runs.
	changed := jobOf(t, ns, "j", "backoffLimit: 1, ttlSecondsAfterFinished: 1,")
	three := rev(3).phase("p", changed, failed)
	c.become(three, two)
	c.until("created", func(rollout.Report) bool { return c.get(id(changed)) != nil && c.get(id(failed)) != nil })
	// A Job deleted before it has finished runs again.
	uid := c.uid(changed)
	c.vanish(changed)
	c.until("created again", func(rollout.Report) bool {
		live := c.get(id(changed))
		return live != nil && live.GetUID() != uid
	})
	c.finish(failed, "Failed")
	c.vanish(failed)
	c.finish(changed, "Complete")
	report := c.until("failed", func(r rollout.Report) bool { return strings.Contains(messages(r), "it is not run again") })
	if c.get(id(failed)) != nil {
		t.Errorf("the failed Job was run again: %v", failures(report))
	}
}

func runsJobsOnceThatFinishedMeanwhile(t *testing.T, c *chain) {
	ns := c.home()
	job := jobOf(t, ns, "j", "ttlSecondsAfterFinished: 0,")
	one := rev(1).phase("p", job)
	c.become(one)
	c.until("created", func(rollout.Report) bool { return c.get(id(job)) != nil })
	c.kill()
	c.finish(job, "Complete")
	c.vanish(job)
	c.run()
	c.until("complete", complete)
	if c.get(id(job)) != nil {
		t.Error("the Job was run again")
	}
	c.quiet()
}

// dampsRecreation: another user deletes an object each time the engine creates it.
func dampsRecreation(t *testing.T, c *chain) {
	ns := c.home()
	x := configMap(ns, "x", "1")
	c.roll(rev(1).phase("p", x))
	deleted := 0
	c.until("contested", func(r rollout.Report) bool {
		if c.get(id(x)) != nil {
			c.remove(id(x))
			deleted++
		}
		return strings.Join(failures(r), "\n") == "1/p ConfigMap deleted-again/x: Contested"
	})
	if deleted > 8 {
		t.Errorf("the object was created %d times before that", deleted)
	}
}

// dropsDefinitionsWithoutInstances: the deletion of a definition needs an acknowledgement only if
// the definition has instances.
func dropsDefinitionsWithoutInstances(t *testing.T, c *chain) {
	ns := c.home()
	c.budget = &rollout.Budget{}
	empty, full := widgets("empty.example.com", "Widget", "widgets"), widgets("full.example.com", "Widget", "widgets")
	stays := []map[string]any{configMap(ns, "e", "1"), configMap(ns, "f", "1"), configMap(ns, "g", "1"), configMap(ns, "h", "1"), configMap(ns, "a", "1"), configMap(ns, "b", "1"), configMap(ns, "c", "1"), configMap(ns, "d", "1")}
	one := rev(1).phase("p", append(slices.Clone(stays), empty, full)...)
	c.roll(one)
	theirs := widget("full.example.com", "Widget", ns, "theirs", "1")
	c.create(theirs)
	c.become(rev(2).phase("p", stays...))
	c.stuck("leaving CustomResourceDefinition.apiextensions.k8s.io widgets.full.example.com: BudgetExceeded")
	if c.get(id(empty)) != nil || c.get(id(full)) == nil || c.value(theirs) != "1" {
		t.Error("want only the definition without instances deleted")
	}
}
