package gitops

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/penstock-project/penstock/pkg/adopt"
	"github.com/penstock-project/penstock/test/framework/penstock"
	"github.com/penstock-project/penstock/test/framework/poll"
)

// olmv0 is a site in which OLM v0 has installed a Subscription.
type olmv0 struct {
	*site
	csv, uid string
	watched  []string
	// copied is the namespace of a copy of the ClusterServiceVersion.
	copied   string
	approval string
}

func definitionsOfOLMv0() string {
	var all strings.Builder
	for _, kind := range []struct{ name, version, scope string }{
		{"Subscription", "v1alpha1", "Namespaced"}, {"ClusterServiceVersion", "v1alpha1", "Namespaced"}, {"InstallPlan", "v1alpha1", "Namespaced"},
		{"OperatorGroup", "v1", "Namespaced"}, {"Operator", "v1", "Cluster"}, {"OperatorCondition", "v2", "Namespaced"},
	} {
		fmt.Fprintf(&all, `---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[1]s.operators.coreos.com}
spec:
  group: operators.coreos.com
  scope: %[4]s
  names: {kind: %[2]s, plural: %[1]s}
  versions:
  - name: %[3]s
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`, strings.ToLower(kind.name)+"s", kind.name, kind.version, kind.scope)
	}
	return all.String()
}

// fromOLMv0 adopts an installation of OLM v0. Before OLM's operators are scaled to zero, the
// adoption is refused.
func fromOLMv0(t *testing.T, h *host) {
	h.MustKubectl("create", "namespace", "olm")
	for _, name := range []string{"olm-operator", "catalog-operator"} {
		h.MustKubectl("create", "deployment", "-n", "olm", name, "--image=example.com/olm")
		h.MustKubectl("rollout", "status", "-n", "olm", "deployment/"+name, poll.TimeoutFlag)
	}
	o := newOLMv0(h.in(t, "olm-zero"))
	for _, name := range []string{"olm-operator", "catalog-operator"} {
		mark := o.Audit().Mark()
		o.says(o.adoptOLM().Stderr, "nothing adopted", "Deployment olm/"+name+" runs (1 replica)", "kubectl scale -n olm deployment/"+name+" --replicas=0")
		o.nothingWritten(mark)
		h.MustKubectl("scale", "-n", "olm", "deployment/"+name, "--replicas=0")
		h.MustKubectl("rollout", "status", "-n", "olm", "deployment/"+name, poll.TimeoutFlag)
	}
	o.says(o.adoptOLM("--dry-run").Stdout, "there is no Subscription in namespace olm-zero: nothing to adopt")
	o.installs(o.manifests(2))
	o.refusals(h.in(t, "olm-many"))
	o.goesOver()
	o.leavesOLM()
	diesInOLMv0(h.in(t, "olm-dies"))
	if os.Getenv("FULL") == "1" {
		busy := newOLMv0(h.in(t, "olm-busy"))
		busy.copied = "kube-node-lease"
		busy.installs(busy.manifests(2))
		busy.whileOthersWrite(func() { busy.says(busy.mustAdoptOLM(), "olm-busy-1 has succeeded") })
	}
}

func newOLMv0(s *site) *olmv0 {
	s.most, s.anyOwner = 3, true
	return &olmv0{site: s, csv: s.release + ".v1.2.0", watched: []string{s.namespace}, copied: "default", approval: "Automatic"}
}

func (o *olmv0) created(object map[string]any) {
	o.t.Helper()
	o.MustKubectlInput(o.json(object), "create", "--field-manager=olm", "-f", "-")
}

func (o *olmv0) of(version, kind, name string, content map[string]any) map[string]any {
	object := map[string]any{
		"apiVersion": "operators.coreos.com/" + version, "kind": kind,
		"metadata": map[string]any{"name": name, "namespace": o.namespace, "labels": map[string]any{"operators.coreos.com/" + o.release + "." + o.namespace: ""}},
	}
	for field, value := range content {
		object[field] = value
	}
	return object
}

// asks creates the Subscription and the related objects of OLM.
func (o *olmv0) asks() {
	o.t.Helper()
	o.created(o.of("v1", "OperatorGroup", "all", map[string]any{"status": map[string]any{"namespaces": o.watched}}))
	o.created(o.of("v1alpha1", "Subscription", o.release, map[string]any{
		"spec": map[string]any{
			"name": o.release, "channel": "stable", "source": "hub", "sourceNamespace": "olm", "installPlanApproval": o.approval,
			"config": map[string]any{"env": []any{map[string]any{"name": "LEVEL", "value": "debug"}}, "selector": map[string]any{}},
		},
		"status": map[string]any{"installedCSV": o.csv, "currentCSV": o.csv, "state": "AtLatestKnown"},
	}))
	other := o.of("v1alpha1", "ClusterServiceVersion", "database.v3.0.0", map[string]any{
		"spec":   map[string]any{"customresourcedefinitions": map[string]any{"owned": []any{map[string]any{"name": "databases.example.com"}}}},
		"status": map[string]any{"phase": "Succeeded"},
	})
	o.created(other)
	csv := o.of("v1alpha1", "ClusterServiceVersion", o.csv, map[string]any{
		"spec": map[string]any{"version": "1.2.0", "customresourcedefinitions": map[string]any{
			"owned":    []any{map[string]any{"name": "carts." + o.namespace + ".example.com", "kind": "Cart", "version": "v1"}},
			"required": []any{map[string]any{"name": "databases.example.com", "kind": "Database", "version": "v1"}},
		}},
		"status": map[string]any{"phase": "Succeeded"},
	})
	csv["metadata"].(map[string]any)["finalizers"] = []string{"operators.coreos.com/csv-cleanup"}
	o.created(csv)
	o.uid = o.read(".metadata.uid", "clusterserviceversion/"+o.csv)
	csv["metadata"] = map[string]any{"name": o.csv, "namespace": o.copied, "labels": map[string]any{"olm.copiedFrom": o.namespace}}
	o.created(csv)
	condition := o.of("v2", "OperatorCondition", o.csv, nil)
	condition["metadata"].(map[string]any)["ownerReferences"] = []any{o.owner()}
	o.created(condition)
	step := func(group, kind, name string) map[string]any {
		return map[string]any{"resolving": o.csv, "status": "Created", "resource": map[string]any{"group": group, "version": "v1", "kind": kind, "name": name}}
	}
	o.created(o.of("v1alpha1", "InstallPlan", "install-1", map[string]any{"status": map[string]any{"plan": []any{
		map[string]any{"resolving": o.csv, "resource": map[string]any{"group": "operators.coreos.com", "version": "v1alpha1", "kind": "ClusterServiceVersion", "name": o.csv}},
		step("scheduling.k8s.io", "PriorityClass", o.namespace+"-urgent"), step("", "ConfigMap", "lost"),
		map[string]any{"resolving": "another.v1.0.0", "resource": map[string]any{"group": "", "version": "v1", "kind": "ConfigMap", "name": "kube-root-ca.crt"}},
	}}}))
	o.created(o.of("v1", "Operator", o.release+"."+o.namespace, map[string]any{"status": map[string]any{"components": map[string]any{
		"refs": []any{map[string]any{"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "name": "bundled", "namespace": o.namespace}},
	}}}))
}

func (o *olmv0) owner() map[string]any {
	return map[string]any{"apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion", "name": o.csv, "uid": o.uid, "controller": false, "blockOwnerDeletion": false}
}

// installs creates the operator's objects as OLM does: with owner references in its namespace, and
// with labels for cluster-scoped objects.
func (o *olmv0) installs(objects []map[string]any) {
	o.t.Helper()
	o.asks()
	for _, object := range objects {
		metadata := object["metadata"].(map[string]any)
		labels := metadata["labels"].(map[string]any)
		labels["operators.coreos.com/"+o.release+"."+o.namespace] = ""
		labels["olm.managed"] = "true"
		labels["olm.owner"], labels["olm.owner.kind"], labels["olm.owner.namespace"] = o.csv, "ClusterServiceVersion", o.namespace
		if object["kind"] != "ClusterRole" {
			metadata["ownerReferences"] = []any{o.owner()}
		}
	}
	o.send(objects, "create", "--field-manager=olm")
	o.created(map[string]any{"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": map[string]any{"name": "bundled", "namespace": o.namespace, "ownerReferences": []any{o.owner()}}})
	o.MustKubectlInput(fmt.Sprintf(`apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: %[1]s-urgent}
value: 7
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: carts.%[1]s.example.com}
spec:
  group: %[1]s.example.com
  scope: Namespaced
  names: {kind: Cart, plural: carts}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
`, o.namespace), "create", "--field-manager=catalog", "-f", "-")
	// Changes by hand, and by an autoscaler.
	o.MustKubectl("set", "image", "-n", o.namespace, "deployment/web", "web=example.com/by-hand")
	o.MustKubectl("scale", "-n", o.namespace, "deployment/web", "--replicas=3")
	o.MustKubectl("rollout", "status", "-n", o.namespace, "deployment/web", poll.TimeoutFlag)
}

func (o *olmv0) adoptOLM(flags ...string) penstock.Output {
	o.t.Helper()
	return o.program.Run(o.t, "", append([]string{"adopt", "olmv0", "--kubeconfig", o.Kubeconfig(), "-n", o.namespace}, flags...)...)
}

func (o *olmv0) mustAdoptOLM(flags ...string) string {
	o.t.Helper()
	out := o.adoptOLM(flags...)
	if out.ExitCode != 0 {
		o.t.Fatal(out)
	}
	return out.Stdout + out.Stderr
}

// refusals: installations that OLM has not finished, or that cannot become an extension.
func (o *olmv0) refusals(s *site) {
	o.t.Helper()
	many := newOLMv0(s)
	many.release, many.csv, many.watched, many.copied = o.release, o.csv, []string{"default", "olm"}, "kube-public"
	many.asks()
	refuses := func(part string, flags ...string) {
		s.t.Helper()
		mark := s.Audit().Mark()
		out := many.adoptOLM(flags...)
		if out.ExitCode == 0 {
			s.t.Errorf("it is not refused: %s", out)
		}
		s.says(out.Stderr, part)
		many.nothingWritten(mark)
	}
	refuses("OperatorGroup all has several namespaces (MultiNamespace: default, olm)")
	refuses("there is no Subscription "+many.namespace+"/none", "none")
	patch := func(kind, name, content string) {
		s.MustKubectl("patch", "-n", many.namespace, kind+".operators.coreos.com", name, "--type=merge", "-p", content)
	}
	patch("operatorgroups", "all", `{"status":{"namespaces":[""]}}`)
	patch("clusterserviceversions", many.csv, `{"status":{"phase":"Installing"}}`)
	refuses(many.csv + " is Installing")
	patch("clusterserviceversions", many.csv, `{"spec":{"install":{"spec":{"deployments":[{"name":"gone"}]}}},"status":{"phase":"Failed","reason":"InstallCheckFailed","message":"timeout"}}`)
	refuses(many.csv + " is Failed (InstallCheckFailed: timeout), and its Deployment gone does not exist")
	patch("clusterserviceversions", many.csv, fmt.Sprintf(`{"status":{"phase":"Succeeded"},"spec":{"customresourcedefinitions":{"owned":[{"name":"carts.%s.example.com","kind":"Cart","version":"v1"}]}}}`, o.namespace))
	refuses("CustomResourceDefinition carts." + o.namespace + ".example.com is owned by ClusterServiceVersion " + o.namespace + "/" + o.csv + ", too")
	s.says(o.adoptOLM("--dry-run").Stderr, "is owned by ClusterServiceVersion "+many.namespace+"/"+many.csv+", too")
	patch("clusterserviceversions", many.csv, fmt.Sprintf(`{"spec":{"install":null,"customresourcedefinitions":{"owned":[{"name":"carts.%s.example.com","kind":"Cart","version":"v1"}]}}}`, many.namespace))
	patch("clusterserviceversions", "database.v3.0.0", fmt.Sprintf(`{"spec":{"replaces":%q}}`, many.csv))
	refuses(many.csv + " is being replaced by database.v3.0.0")
	out := many.program.Run(s.t, "", "adopt", "olmv0", "--kubeconfig", s.Kubeconfig(), "--dry-run")
	s.says(out.Stdout, "olm-many/olm-zero", "olm-zero/olm-zero", "refused", "can be adopted")
	s.MustKubectl("delete", "namespace", s.namespace, "--wait=false")
}

// goesOver: the Subscription is adopted, and no object is disturbed.
func (o *olmv0) goesOver() {
	o.t.Helper()
	before := o.objects()
	pods := o.read("range .items[*]}{.metadata.uid} {end", "replicasets,pods")
	others := []string{"priorityclass/" + o.namespace + "-urgent", "lease/bundled", "crd/carts." + o.namespace + ".example.com"}
	uids := func() string {
		return o.read(".metadata.uid", others[0]) + o.read(".metadata.uid", others[1]) + o.read(".metadata.uid", others[2])
	}
	was := uids()

	mark := o.Audit().Mark()
	out := o.logged(o.mustAdoptOLM("--dry-run"))
	o.says(out, "olm-zero/olm-zero", o.csv, "can be adopted", "nothing was written", "Deployment.apps olm-zero/web", "same",
		"Deployment.apps olm-zero/web was changed by hand (kubectl-set), and is taken over as it is",
		"CustomResourceDefinition databases.example.com", "ClusterServiceVersion database.v3.0.0 has it", "OperatorCondition olm-zero/"+o.csv,
		"OperatorGroup olm-zero/all", "ClusterServiceVersion default/"+o.csv, "it is a copy", "spec.config.selector", "ConfigMap olm-zero/lost")
	o.nothingWritten(mark)

	mark = o.Audit().Mark()
	out = o.logged(o.mustAdoptOLM())
	o.says(out, "olm-zero/olm-zero is extension olm-zero: 9 objects, olm-zero-1 has succeeded",
		"kubectl delete subscriptions.operators.coreos.com -n olm-zero olm-zero", "kubectl delete clusterserviceversions.operators.coreos.com -n olm-zero "+o.csv+" --wait=false",
		"OLM upgraded without approval", `kubectl patch clusterextension olm-zero --type=merge -p '{"metadata":{"annotations":{"penstock.dev/upgrade-approval":null}},"spec":{"source":{"catalog":{"version":null}}}}'`)
	o.undisrupted(mark, before, pods)
	if now := uids(); now != was {
		o.t.Errorf("uids were %s, and are %s", was, now)
	}
	for _, object := range append(others, "configmap/settings", "secret/token", "deployment/web", "service/web", "clusterrole/olm-zero-reader") {
		raw := o.MustKubectl("get", "-n", o.namespace, object, "-o", "json")
		if strings.Contains(raw, "olm.owner") || strings.Contains(raw, "ownerReferences") || !strings.Contains(raw, `"penstock.dev/chain": "olm-zero"`) {
			o.t.Errorf("whose is it?\n%s", raw)
		}
	}
	o.says(o.read(".spec", "clusterextension/olm-zero"), `"namespace":"olm-zero"`, `"packageName":"olm-zero"`, `"version":"1.2.0"`, `"channels":["stable"]`,
		`"watchNamespace":"olm-zero"`, `"deploymentConfig":{"env":[{"name":"LEVEL","value":"debug"}]}`)
	o.becomes("Manual", `.metadata.annotations.penstock\.dev/upgrade-approval`, "clusterextension/olm-zero")
	o.becomes("1.2.0", ".status.install.bundle.version", "clusterextension/olm-zero")
	if owner := o.read(".metadata.ownerReferences[*].uid", ours+"/olm-zero-1"); owner != o.read(".metadata.uid", "clusterextension/olm-zero") {
		o.t.Errorf("the revision belongs to %q", owner)
	}
	o.MustKubectl("patch", "-n", o.namespace, "subscriptions.operators.coreos.com", o.release, "--type=merge", "-p", `{"spec":{"installPlanApproval":"Manual"}}`)
	mark = o.Audit().Mark()
	o.says(o.mustAdoptOLM(), "adopted before", "olm-zero-1 has succeeded", "OLM asked for approval before each upgrade",
		`kubectl patch clusterextension olm-zero --type=merge -p '{"spec":{"source":{"catalog":{"version":null}}}}'`)
	o.nothingWritten(mark)
	o.undisrupted(mark, before, pods)
}

// leavesOLM runs the printed commands, and OLM finishes the cleanup.
func (o *olmv0) leavesOLM() {
	o.t.Helper()
	before := o.objects()
	o.MustKubectl("delete", "subscriptions.operators.coreos.com", "-n", o.namespace, o.release)
	o.MustKubectl("delete", "clusterserviceversions.operators.coreos.com", "-n", o.namespace, o.csv, "--wait=false")
	if found := o.MustKubectl("get", "clusterroles,clusterrolebindings,validatingwebhookconfigurations", "-o", "name", "-l", "olm.owner="+o.csv+",olm.owner.namespace="+o.namespace); found != "" {
		o.t.Errorf("OLM would delete %s", found)
	}
	o.MustKubectl("patch", "clusterserviceversions.operators.coreos.com", "-n", o.namespace, o.csv, "--type=merge", "-p", `{"metadata":{"finalizers":null}}`)
	// By then the garbage collector has processed everything that the ClusterServiceVersion owned.
	o.MustKubectl("wait", "-n", o.namespace, "--for=delete", poll.TimeoutFlag, "operatorconditions.operators.coreos.com/"+o.csv)
	for name, one := range o.objects() {
		if one.UID != before[name].UID {
			o.t.Errorf("%s is another one", name)
		}
	}
	if len(o.objects()) != len(before) {
		o.t.Errorf("objects are %v", o.objects())
	}
	if replicas := o.read(".spec.replicas", "deployment/web"); replicas != "3" {
		o.t.Errorf("it has %s replicas", replicas)
	}
	o.MustKubectl("delete", "-n", o.namespace, "configmap/more")
	o.MustKubectl("wait", "-n", o.namespace, "--for=create", poll.TimeoutFlag, "configmap/more")
}

// diesInOLMv0: after the command is killed at any write, the same command finishes the work. FULL=1
// kills it right before and right after each write.
func diesInOLMv0(s *site) {
	ctx, cancel := context.WithTimeout(s.t.Context(), 3*patience)
	defer cancel()
	ways := []bool{true}
	step := 2
	if os.Getenv("FULL") == "1" {
		ways, step = []bool{false, true}, 1
	}
	o := newOLMv0(s)
	o.approval = "Manual"
	o.created(o.of("v1", "OperatorGroup", "all", map[string]any{"status": map[string]any{"namespaces": []string{""}}}))
	for k, died := 1, true; died; k += step {
		died = false
		for _, lands := range ways {
			o.release, o.csv = fmt.Sprintf("dies-%d-%t", k, lands), fmt.Sprintf("dies-%d-%t.v1.0.0", k, lands)
			if !o.diesAt(ctx, k, lands) {
				continue
			}
			died = true
		}
	}
}

func (o *olmv0) diesAt(ctx context.Context, k int, lands bool) bool {
	o.t.Helper()
	o.created(o.of("v1alpha1", "ClusterServiceVersion", o.csv, map[string]any{"spec": map[string]any{"version": "1.0.0"}, "status": map[string]any{"phase": "Succeeded"}}))
	o.uid = o.read(".metadata.uid", "clusterserviceversion/"+o.csv)
	o.created(o.of("v1alpha1", "Subscription", o.release, map[string]any{
		"spec": map[string]any{"name": o.release, "installPlanApproval": o.approval}, "status": map[string]any{"installedCSV": o.csv},
	}))
	uids := func() string {
		return o.read(".metadata.uid", "configmap/"+o.release) + " " + o.read(".metadata.uid", "clusterrole/"+o.release)
	}
	owned := map[string]any{"olm.owner": o.csv, "olm.owner.kind": "ClusterServiceVersion", "olm.owner.namespace": o.namespace}
	o.created(map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"a": "b"}, "metadata": map[string]any{"name": o.release, "namespace": o.namespace, "ownerReferences": []any{o.owner()}, "labels": owned}})
	o.created(map[string]any{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "rules": []any{}, "metadata": map[string]any{"name": o.release, "labels": owned}})
	before := uids()
	f := &fuse{left: k, lands: lands}
	err := o.takeOLM(ctx, f)
	if f.dead != (err != nil) {
		o.t.Fatalf("killed at write %d (which landed: %t): %t, error %v", k, lands, f.dead, err)
	}
	if err == nil {
		return false
	}
	if err := o.takeOLM(ctx, &fuse{left: -1}); err != nil {
		o.t.Fatalf("again after it was killed at write %d (which landed: %t): %v", k, lands, err)
	}
	if after := uids(); after != before {
		o.t.Errorf("killed at write %d: uids were %s, and are %s", k, before, after)
	}
	for _, object := range []string{"configmap/" + o.release, "clusterrole/" + o.release} {
		raw := o.MustKubectl("get", "-n", o.namespace, object, "-o", "json")
		if strings.Contains(raw, "olm.owner") || strings.Contains(raw, "ownerReferences") || !strings.Contains(raw, "penstock.dev/chain") {
			o.t.Errorf("killed at write %d (which landed: %t): whose is it?\n%s", k, lands, raw)
		}
	}
	if owner := o.read(".metadata.ownerReferences[*].uid", ours+"/"+o.release+"-1"); owner != o.read(".metadata.uid", "clusterextension/"+o.release) {
		o.t.Errorf("killed at write %d: the revision belongs to %q", k, owner)
	}
	return true
}

func (o *olmv0) takeOLM(ctx context.Context, f *fuse) error {
	adopter := o.adopter(f)
	plans, err := adopter.PlanOLMv0(ctx, adopt.OLMv0Request{Namespace: o.namespace, Subscriptions: []string{o.release}})
	if err != nil {
		return err
	}
	if obstacles := plans[0].Obstacles(); len(obstacles) > 0 {
		return errors.New(strings.Join(obstacles, "; "))
	}
	revision, err := adopter.AdoptOLMv0(ctx, plans[0])
	if err != nil {
		return err
	}
	return adopter.Await(ctx, revision)
}
