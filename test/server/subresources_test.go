//go:build integration

package server_test

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/penstock-project/penstock/test/framework/poll"
)

// lamps is a kind with all subresources that a definition can have.
const lamps = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: lamps.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Lamp, listKind: LampList, plural: lamps, singular: lamp}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}, scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas}}
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

const podSpec = "{containers: [{name: c, image: i, resources: {requests: {cpu: 10m}}}]}"

// withSubresources returns, for each kind with writable subresources, the fields that an object
// needs besides its identity.
func withSubresources() map[string]string {
	template := "selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: " + podSpec + "}"
	job := "template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}"
	return map[string]string{
		"namespaces":                           "",
		"persistentvolumeclaims":               "spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}",
		"pods":                                 "spec: " + podSpec,
		"replicationcontrollers":               "spec: {replicas: 0, selector: {a: b}, template: {metadata: {labels: {a: b}}, spec: " + podSpec + "}}",
		"resourcequotas":                       "spec: {hard: {configmaps: 100}}",
		"services":                             "spec: {ports: [{port: 80}]}",
		"daemonsets.apps":                      "spec: {" + template + "}",
		"deployments.apps":                     "spec: {replicas: 0, " + template + "}",
		"replicasets.apps":                     "spec: {replicas: 0, " + template + "}",
		"statefulsets.apps":                    "spec: {replicas: 0, serviceName: s, " + template + "}",
		"horizontalpodautoscalers.autoscaling": "spec: {maxReplicas: 1, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: nobody}}",
		"cronjobs.batch":                       "spec: {suspend: true, schedule: '@yearly', jobTemplate: {spec: {" + job + "}}}",
		"jobs.batch":                           "spec: {suspend: true, " + job + "}",
		"ingresses.networking.k8s.io":          "spec: {defaultBackend: {service: {name: s, port: {number: 80}}}}",
		"poddisruptionbudgets.policy":          "spec: {maxUnavailable: 1}",
		"resourceclaims.resource.k8s.io":       "spec: {}",
		"lamps.example.com":                    "spec: {replicas: 1}",
	}
}

// sideDoors are changes of metadata that would take away an object's protection.
var sideDoors = map[string]func(*unstructured.Unstructured){
	"without the label": func(o *unstructured.Unstructured) {
		unstructured.RemoveNestedField(o.Object, "metadata", "labels", "penstock.dev/chain")
	},
	"another label": func(o *unstructured.Unstructured) {
		_ = unstructured.SetNestedField(o.Object, "other", "metadata", "labels", "penstock.dev/chain")
	},
	"without managedFields": func(o *unstructured.Unstructured) { o.SetManagedFields([]metav1.ManagedFieldsEntry{{}}) },
	"without what Penstock has applied": func(o *unstructured.Unstructured) {
		o.SetManagedFields([]metav1.ManagedFieldsEntry{{
			Manager: "penstock/guard", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: o.GetAPIVersion(),
			FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:labels":{}}}`), Time: ptr.To(metav1.Unix(1, 0)),
		}})
	},
	"with an owner that is not there": func(o *unstructured.Unstructured) {
		o.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "gone", UID: "0b0e6f0e-0000-4000-8000-000000000000"}})
	},
}

// harrysRules are all rights to all kinds of the test, without the right to bypass.
const harrysRules = `[{apiGroups: ["", apps, autoscaling, batch, networking.k8s.io, policy, resource.k8s.io, example.com], resources: ["*"], verbs: ["*"]}]`

// subresources: a user has all rights in a protected namespace. The user can remove the marks of a
// governed object through no subresource of the host.
func (d door) subresources() {
	const namespace = "sides"
	d.MustKubectlInput(lamps, "create", "-f", "-")
	d.MustKubectl("wait", "--for=condition=Established", "crd/lamps.example.com", poll.TimeoutFlag)
	d.MustKubectlInput(roleFor("harry", harrysRules), "create", "-f", "-")
	d.MustKubectl("create", "namespace", namespace)
	d.MustKubectl("label", "namespace", namespace, "policy.penstock.dev/protect=true")
	admin := d.dynamicAs(d.Config())
	config := d.Config()
	config.Impersonate = rest.ImpersonationConfig{UserName: "harry"}
	harry := d.dynamicAs(config)

	known := unstructuredOf(d, schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, "")
	configMaps := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	if _, err := admin.Resource(configMaps).Namespace(namespace).Apply(d.t.Context(), known.GetName(), known, metav1.ApplyOptions{FieldManager: "penstock/guard"}); err != nil {
		d.t.Fatal(err)
	}
	eventually(d.t, "the webhook", func() error {
		return missing(d.Kubectl("delete", "configmap", "kept", "--namespace="+namespace, "--dry-run=server", "--as=harry").Stderr, []string{"deleting ConfigMap sides/kept is not allowed"})
	})

	bodies := withSubresources()
	for _, found := range d.writable() {
		name := found.GroupResource().String()
		body, known := bodies[name]
		if name == "podcertificaterequests.certificates.k8s.io" {
			continue // only a kubelet creates it, with a proof that it has the key
		}
		if found.Group == "shapes.example.com" {
			continue // they are tested in the scenario Manifests
		}
		if !known {
			d.t.Errorf("%s has subresources %v: add a body for it to this test", name, found.subresources)
			continue
		}
		object := unstructuredOf(d, found.kind, body)
		var at, attacker dynamic.ResourceInterface = admin.Resource(found.GroupVersionResource), harry.Resource(found.GroupVersionResource)
		if found.namespaced {
			at, attacker = admin.Resource(found.GroupVersionResource).Namespace(namespace), harry.Resource(found.GroupVersionResource).Namespace(namespace)
		} else {
			object.SetName(namespace)
		}
		apply := func() {
			if _, err := at.Apply(d.t.Context(), object.GetName(), object, metav1.ApplyOptions{FieldManager: "penstock/guard", Force: true}); err != nil {
				d.t.Errorf("applying %s: %v", name, err)
			}
		}
		apply()
		// "" means the object itself.
		for _, sub := range append(found.subresources, "") {
			for what, change := range sideDoors {
				refused := d.puts(attacker, at, object.GetName(), sub, change)
				now, err := at.Get(d.t.Context(), object.GetName(), metav1.GetOptions{})
				if err != nil {
					d.t.Fatalf("%s/%s, %s: %v", name, sub, what, err)
				}
				if lost := marksLost(now); lost != "" {
					d.t.Errorf("%s/%s, %s: %s (%v)", name, sub, what, lost, refused)
					now.SetOwnerReferences(nil)
					_, _ = at.Update(d.t.Context(), now, metav1.UpdateOptions{})
					apply()
				}
			}
		}
	}
	d.bindings(namespace)
	d.ordinary(namespace)
}

// bindings: the labels of a binding become those of the Pod, so the marks are refused there too.
func (d door) bindings(namespace string) {
	at := fmt.Sprintf("/api/v1/namespaces/%s/pods/kept/binding", namespace)
	binding := `{"apiVersion":"v1","kind":"Binding","metadata":{"name":"kept","labels":{%s}},"target":{"kind":"Node","name":"n"}}`
	d.tries("another extension's label by a binding", "harry", fmt.Sprintf(binding, `"penstock.dev/chain":"other"`),
		"giving Pod sides/kept the label penstock.dev/chain by its binding is not allowed", "create", "--raw", at, "-f", "-")
	d.tries("scheduling", "harry", fmt.Sprintf(binding, `"topology.kubernetes.io/zone":"z"`), "", "create", "--raw", at, "-f", "-")
	if got := d.MustKubectl("get", "pod", "kept", "--namespace="+namespace, "-o", `jsonpath={.metadata.labels.penstock\.dev/chain} {.spec.nodeName}`); got != "guard n" {
		d.t.Errorf("the pod has label and node %q", got)
	}
}

// ordinary: controllers and autoscalers can continue their work.
func (d door) ordinary(namespace string) {
	in := "--namespace=" + namespace
	d.tries("status", "harry", "", "", "patch", "persistentvolumeclaim", "kept", in, "--subresource=status", "--type=merge", "-p", `{"status":{"phase":"Lost"}}`)
	d.tries("status of a custom resource", "harry", "", "", "patch", "lamp", "kept", in, "--subresource=status", "--type=merge", "-p", `{"status":{"replicas":1}}`)
	d.tries("scale", "harry", "", "", "scale", "deployment", "kept", in, "--replicas=2")
	d.tries("another label", "harry", "", "", "label", "persistentvolumeclaim", "kept", in, "a=b")
	d.tries("deleting", "harry", "", "deleting PersistentVolumeClaim sides/kept is not allowed", "delete", "persistentvolumeclaim", "kept", in, "--wait=false")
}

// puts updates an object through one of its subresources. It returns the error of a refusal. All
// subresources accept a PUT, some accept only that.
func (d door) puts(as, reader dynamic.ResourceInterface, name, sub string, change func(*unstructured.Unstructured)) error {
	var read, write []string
	if sub != "" {
		write = []string{sub}
	}
	if sub == "scale" {
		read = write // it has its own kind
	}
	object, err := reader.Get(d.t.Context(), name, metav1.GetOptions{}, read...)
	if err != nil {
		return err
	}
	change(object)
	_, err = as.Update(d.t.Context(), object, metav1.UpdateOptions{FieldManager: "penstock/guard"}, write...)
	return err
}

// writable is a resource, with its subresources that accept updates.
type writable struct {
	schema.GroupVersionResource
	kind         schema.GroupVersionKind
	namespaced   bool
	subresources []string
}

// writable returns every resource of the host that can be protected, with the subresources through
// which its objects can be written.
func (d door) writable() []writable {
	client := discovery.NewDiscoveryClientForConfigOrDie(d.Config())
	_, lists, err := client.ServerGroupsAndResources()
	if err != nil {
		d.t.Fatal(err)
	}
	found := map[schema.GroupVersionResource]*writable{}
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			d.t.Fatal(err)
		}
		if strings.HasSuffix(version.Group, "olm.operatorframework.io") || strings.HasSuffix(version.Group, "kubevirt.io") {
			continue
		}
		for _, resource := range list.APIResources {
			if !strings.Contains(resource.Name, "/") && (resource.Namespaced || resource.Name == "namespaces") {
				gvr := version.WithResource(resource.Name)
				found[gvr] = &writable{GroupVersionResource: gvr, kind: version.WithKind(resource.Kind), namespaced: resource.Namespaced}
			}
		}
		for _, resource := range list.APIResources {
			parent, sub, ok := strings.Cut(resource.Name, "/")
			if of := found[version.WithResource(parent)]; ok && of != nil && slices.ContainsFunc(resource.Verbs, func(verb string) bool { return verb == "update" || verb == "patch" }) {
				of.subresources = append(of.subresources, sub)
			}
		}
	}
	var out []writable
	for _, one := range found {
		if len(one.subresources) > 0 {
			out = append(out, *one)
		}
	}
	if len(out) < 15 {
		d.t.Fatalf("discovery has only %d resources with subresources", len(out))
	}
	return out
}

func (d door) dynamicAs(config *rest.Config) dynamic.Interface {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		d.t.Fatal(err)
	}
	return client
}

// unstructuredOf returns an object as Penstock applies it.
func unstructuredOf(d door, kind schema.GroupVersionKind, body string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(body), &object.Object); err != nil {
		d.t.Fatalf("%s: %v", kind, err)
	}
	if object.Object == nil {
		object.Object = map[string]any{}
	}
	object.SetGroupVersionKind(kind)
	object.SetName("kept")
	object.SetLabels(map[string]string{"penstock.dev/chain": "guard"})
	return object
}

// marksLost returns why an object is no longer protected, or "".
func marksLost(object *unstructured.Unstructured) string {
	if got := object.GetLabels()["penstock.dev/chain"]; got != "guard" {
		return fmt.Sprintf("label penstock.dev/chain is %q", got)
	}
	if !slices.ContainsFunc(object.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Manager == "penstock/guard" && entry.Operation == metav1.ManagedFieldsOperationApply
	}) {
		return fmt.Sprintf("managedFields are %v", object.GetManagedFields())
	}
	if len(object.GetOwnerReferences()) > 0 {
		return "it has an owner"
	}
	return ""
}
