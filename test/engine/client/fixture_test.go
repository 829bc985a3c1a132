//go:build integration

// Package client_test tests the facts on which the engine relies, against a real kube-apiserver:
// server-side apply, the client of the cluster (package targetclient), and the observed state
// (package observe).
package client_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/rollout"
	"github.com/penstock-project/penstock/pkg/rollout/observe"
	"github.com/penstock-project/penstock/pkg/rollout/targetclient"
	"github.com/penstock-project/penstock/test/framework/cluster"
	"github.com/penstock-project/penstock/test/framework/poll"
)

var (
	_ rollout.Writer   = (*targetclient.Client)(nil)
	_ rollout.Reader   = (*targetclient.Client)(nil)
	_ rollout.Observer = (*observe.Cache)(nil)
)

const manager = "penstock/chain-a"

func names() observe.Names {
	return observe.Names{ChainLabel: "penstock.dev/chain", AppliedAnnotation: "penstock.dev/applied", ManagerPrefix: "penstock/"}
}

// targetCluster is a cluster with an outsider: a client for changes that Penstock does not make.
type targetCluster struct {
	*cluster.Cluster
	outsider dynamic.Interface
}

func start(t *testing.T) targetCluster {
	t.Helper()
	c := cluster.Start(t)
	outsider, err := dynamic.NewForConfig(c.User("outsider", "system:masters").Config())
	if err != nil {
		t.Fatal(err)
	}
	return targetCluster{c, outsider}
}

// in returns the targetCluster for a subtest.
func (w targetCluster) in(t *testing.T) targetCluster {
	w.Cluster = w.Cluster.In(t)
	return w
}

// config returns an administrator's configuration with a user agent, by which the audit log finds
// its requests.
func (w targetCluster) config(agent string) *rest.Config {
	config := w.Config()
	config.UserAgent = agent
	return config
}

func (w targetCluster) host(t *testing.T, agent string) *targetclient.Client {
	t.Helper()
	h, err := targetclient.New(targetclient.Options{Config: w.config(agent)})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// kindOf describes a kind for tests that create and change its objects.
type kindOf struct {
	schema.GroupVersionKind
	resource schema.GroupVersionResource
	// body is an object without its metadata.
	body map[string]any
	// value is the path of a field of the body, followed by another value for it.
	value []string
	other any
	// added is the path of a field that the body lacks.
	added []string
	// status is a patch of the status subresource, or nil without a status.
	status map[string]any
	// settled reports whether the kind's own controller has finished writing. It is nil without
	// such a controller.
	settled func(*unstructured.Unstructured) bool
}

// namesAccepted reports whether the naming controller has processed the names of the spec. It is
// the only controller that writes to an established definition.
func namesAccepted(crd *unstructured.Unstructured) bool {
	wanted, _, _ := unstructured.NestedStringSlice(crd.Object, "spec", "names", "shortNames")
	accepted, _, _ := unstructured.NestedStringSlice(crd.Object, "status", "acceptedNames", "shortNames")
	categories, _, _ := unstructured.NestedStringSlice(crd.Object, "spec", "names", "categories")
	listed, _, _ := unstructured.NestedStringSlice(crd.Object, "status", "acceptedNames", "categories")
	conditions, _, _ := unstructured.NestedSlice(crd.Object, "status", "conditions")
	established := slices.ContainsFunc(conditions, func(c any) bool {
		condition, _ := c.(map[string]any)
		return condition["type"] == "Established" && condition["status"] == "True"
	})
	return established && slices.Equal(wanted, accepted) && slices.Equal(categories, listed)
}

func kinds() map[string]kindOf {
	return map[string]kindOf{
		"ConfigMap": {
			GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"},
			resource:         schema.GroupVersionResource{Version: "v1", Resource: "configmaps"},
			body:             map[string]any{"data": map[string]any{"a": "1", "b": "<2>"}},
			value:            []string{"data", "a"}, other: "9", added: []string{"data", "c"},
		},
		"Deployment": {
			GroupVersionKind: schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"},
			resource:         schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"},
			body: map[string]any{"spec": map[string]any{
				"replicas": int64(2), // not the default, which a removal would restore
				"selector": map[string]any{"matchLabels": map[string]any{"app": "x"}},
				"template": map[string]any{
					"metadata": map[string]any{"labels": map[string]any{"app": "x"}},
					"spec": map[string]any{"containers": []any{map[string]any{
						"name": "c", "image": "example.com/c:1", "resources": map[string]any{"requests": map[string]any{"cpu": "0.5"}},
					}}},
				},
			}},
			value: []string{"spec", "replicas"}, other: int64(3), added: []string{"spec", "revisionHistoryLimit"},
			status: map[string]any{"observedGeneration": int64(1), "replicas": int64(1)},
		},
		"CustomResourceDefinition": {
			GroupVersionKind: schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"},
			resource:         schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"},
			body: map[string]any{"spec": map[string]any{
				"group": "facts.example.com", "scope": "Namespaced",
				"names": map[string]any{"kind": "Fact", "plural": "facts", "shortNames": []any{"fct"}},
				"versions": []any{map[string]any{"name": "v1", "served": true, "storage": true,
					"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "description": "one"}}}},
			}},
			value: []string{"spec", "names", "shortNames"}, other: []any{"fax"}, added: []string{"spec", "names", "categories"},
			settled: namesAccepted,
		},
		"CustomResource": {
			GroupVersionKind: widgets(),
			resource:         widgets().GroupVersion().WithResource("widgets"),
			body:             map[string]any{"spec": map[string]any{"size": int64(1), "colour": "red"}},
			value:            []string{"spec", "size"}, other: int64(2), added: []string{"spec", "shape"},
			status: map[string]any{"ready": true},
		},
	}
}

func widgets() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}
}

// widgetCRD is the definition of widgets. Installing it waits until they are served.
const widgetCRD = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",
  "metadata":{"name":"widgets.example.com","labels":{"penstock.dev/chain":"platform"}},
  "spec":{"group":"example.com","scope":"Namespaced","names":{"kind":"Widget","plural":"widgets"},
    "versions":[{"name":"v1","served":true,"storage":true,"subresources":{"status":{}},
      "schema":{"openAPIV3Schema":{"type":"object","properties":{
        "spec":{"type":"object","x-kubernetes-preserve-unknown-fields":true},
        "status":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}}}]}}`

func (w targetCluster) installWidgets() {
	w.MustKubectlInput(widgetCRD, "apply", "--server-side", "-f", "-")
	w.MustKubectl("wait", "--for=condition=Established", poll.TimeoutFlag, "crd/widgets.example.com")
}

// ref returns a reference to an object of the kind. A CustomResourceDefinition has a fixed name.
func (k kindOf) ref(namespace, name string) manifest.Ref {
	ref := manifest.Ref{ID: manifest.ID{Group: k.Group, Kind: k.Kind, Namespace: namespace, Name: name}, Version: k.Version}
	if k.Kind == "CustomResourceDefinition" {
		ref.Namespace, ref.Name = "", "facts.facts.example.com"
	}
	return ref
}

// manifest returns the manifest of an object of chain-a.
func (k kindOf) manifest(t *testing.T, ref manifest.Ref, change ...func(*unstructured.Unstructured)) []byte {
	t.Helper()
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": ref.APIVersion(), "kind": ref.Kind}}
	for key, value := range k.body {
		o.Object[key] = value
	}
	o = o.DeepCopy()
	o.SetNamespace(ref.Namespace)
	o.SetName(ref.Name)
	o.SetLabels(map[string]string{"penstock.dev/chain": "chain-a"})
	o.SetAnnotations(map[string]string{"penstock.dev/applied": "sha256:0"})
	for _, c := range change {
		c(o)
	}
	raw, err := json.Marshal(o.Object)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// merge returns a JSON merge patch that sets one field.
func merge(t *testing.T, value any, path ...string) []byte {
	t.Helper()
	patch := map[string]any{}
	at := patch
	for _, key := range path[:len(path)-1] {
		inner := map[string]any{}
		at[key] = inner
		at = inner
	}
	at[path[len(path)-1]] = value
	raw, err := json.Marshal(patch)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// namespace creates a namespace named after the test.
func (w targetCluster) namespace(t *testing.T) string {
	t.Helper()
	name := strings.ToLower(strings.NewReplacer("/", "-", "_", "-").Replace(t.Name()))
	ns := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace"}}
	ns.SetName(name)
	resource := schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	if _, err := w.outsider.Resource(resource).Create(t.Context(), ns, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	return name
}

// watcher is a running cache, with a channel of its notifications.
type watcher struct {
	*observe.Cache
	heard chan string
}

func (w targetCluster) watch(t *testing.T, config *rest.Config, mapping *targetclient.Client) watcher {
	t.Helper()
	heard := make(chan string, 1000)
	c, err := observe.New(observe.Options{Config: config, Mapping: mapping.Discover, Names: names(), Notify: func(owner string) {
		select {
		case heard <- owner:
		default:
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("Run: %v", err)
			}
		case <-time.After(poll.Patience):
			t.Errorf("Run did not return within %s of the end of its context", poll.Patience)
		}
	})
	return watcher{c, heard}
}

// until checks an object after every notification until it has the expected state.
func (w watcher) until(t *testing.T, id manifest.ID, what string, as func(observe.Observation, observe.Presence) bool) observe.Observation {
	t.Helper()
	timeout := time.After(poll.Patience)
	for {
		seen, presence := w.Get(id)
		if as(seen, presence) {
			return seen
		}
		select {
		case <-w.heard:
		case <-timeout:
			t.Fatalf("waited %s for %s to be %s: is %s %+v, trouble: %v", poll.Patience, id, what, presence, seen, w.Trouble(id))
		}
	}
}

func (w watcher) untilKnown(t *testing.T, id manifest.ID, want observe.Presence) observe.Observation {
	t.Helper()
	return w.until(t, id, string(want), func(_ observe.Observation, p observe.Presence) bool { return p == want })
}

// quiet discards the notifications received so far.
func (w watcher) quiet() {
	for {
		select {
		case <-w.heard:
		default:
			return
		}
	}
}
