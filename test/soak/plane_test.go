//go:build integration

package soak

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/penstock-project/penstock/pkg/generated/clientset/versioned"
	"github.com/penstock-project/penstock/test/framework/cluster"
	"github.com/penstock-project/penstock/test/framework/objects"
	"github.com/penstock-project/penstock/test/framework/penstock"
)

const (
	// patience limits the time until all chains match the rule. The engine waits up to two minutes
	// between repairs of an object that is changed again and again.
	patience   = 6 * time.Minute
	namespaces = 8
	// definitionShare is the number of extensions per extension with a definition and an instance.
	definitionShare = 10
)

// soakPlane is a control plane with Penstock, and all clients that disturb it.
type soakPlane struct {
	*cluster.Cluster
	t        *testing.T
	settings settings
	began    time.Time
	program  *penstock.Program
	dataDir  string
	server   *penstock.Server
	chains   []*chain
	author   *author
	meddler  dynamic.Interface
	tally    tally
}

func newSoakPlane(t *testing.T, s settings, program *penstock.Program) *soakPlane {
	t.Helper()
	w := &soakPlane{t: t, settings: s, began: time.Now(), Cluster: cluster.Start(t), program: program, dataDir: penstock.DataDir(t), tally: tally{counts: map[string]int{}}}
	w.server = program.Serve(t, w, w.dataDir)
	config := w.Config()
	config.UserAgent = "author"
	api, err := versioned.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	config = w.Config()
	config.UserAgent = "meddler"
	if w.meddler, err = dynamic.NewForConfig(config); err != nil {
		t.Fatal(err)
	}
	w.author = &author{
		soakPlane: w, revisions: api.OlmV1alpha1().ClusterExtensionRevisions(), histories: api.OlmV1alpha1().RevisionHistories(), named: map[string]bool{},
	}
	for i := range namespaces {
		ns := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace"}}
		ns.SetName(fmt.Sprint("soak-", i))
		if _, err := w.meddler.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}).Create(t.Context(), ns, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		w.bystand(ns.GetName())
	}
	for i := range s.extensions {
		w.chains = append(w.chains, &chain{name: fmt.Sprintf("ext%03d", i), namespace: fmt.Sprint("soak-", i%namespaces), defines: i%definitionShare == 0})
	}
	return w
}

// bystand creates objects that belong to no extension, some with labels and names similar to
// theirs.
func (w *soakPlane) bystand(namespace string) {
	w.t.Helper()
	for _, name := range []string{"bystander", "ext000-a", "ext001-z"} {
		o := configMap(namespace, name+"-bystander", "theirs")
		o.SetLabels(map[string]string{"app.kubernetes.io/managed-by": "penstock"})
		if _, err := w.meddler.Resource(resource("ConfigMap")).Namespace(namespace).Create(w.t.Context(), o, metav1.CreateOptions{}); err != nil {
			w.t.Fatal(err)
		}
	}
}

func (w *soakPlane) say(format string, args ...any) {
	fmt.Printf("%5.0f s  %s\n", time.Since(w.began).Seconds(), fmt.Sprintf(format, args...))
}

func (w *soakPlane) restart() {
	w.server.Stop(w.t)
	w.server = w.program.Serve(w.t, w, w.dataDir)
}

// kill kills the process at random times, as if its machine was lost, and starts it again.
func (w *soakPlane) kill(ctx context.Context, random *rand.Rand) {
	for {
		select {
		case <-time.After(time.Duration(5+random.IntN(15)) * time.Second):
		case <-w.server.Ended():
			w.t.Fatalf("penstock has ended by itself:\n%s", w.server.Log())
		case <-ctx.Done():
			return
		}
		w.server.Kill(w.t)
		if log := w.server.Log(); strings.Contains(log, "panic:") {
			w.t.Errorf("it panicked:\n%s", log)
		}
		w.tally.count("killed")
		w.server = w.program.Serve(w.t, w, w.dataDir)
	}
}

type tally struct {
	mu     sync.Mutex
	counts map[string]int
}

func (t *tally) count(what string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.counts[what]++
}

func (t *tally) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var parts []string
	for _, what := range slices.Sorted(maps.Keys(t.counts)) {
		parts = append(parts, fmt.Sprintf("%s %d", what, t.counts[what]))
	}
	return strings.Join(parts, ", ")
}

type chain struct {
	name, namespace string
	// defines is true for extensions with a definition and an instance.
	defines bool
}

func (c *chain) group() string { return c.name + ".soak.example.com" }

func (c *chain) phases(random *rand.Rand) []any {
	value := fmt.Sprint(random.IntN(1000))
	first := []any{entry(configMap(c.namespace, c.name+"-always", value))}
	second := []any{entry(secret(c.namespace, c.name+"-secret", value))}
	for i := range 4 {
		if random.IntN(2) == 0 {
			first = append(first, entry(configMap(c.namespace, fmt.Sprint(c.name, "-", i), value)))
		}
	}
	if random.IntN(2) == 0 {
		second = append(second, entry(serviceAccount(c.namespace, c.name)))
	}
	if c.defines {
		first = append(first, entry(definition(c.group())))
		second = append(second, entry(instance(c.group(), c.namespace, c.name, value)))
	}
	return []any{map[string]any{"name": "first", "objects": first}, map[string]any{"name": "second", "objects": second}}
}

func entry(o *unstructured.Unstructured) map[string]any { return map[string]any{"object": o.Object} }

func object(apiVersion, kind, namespace, name string, more map[string]any) *unstructured.Unstructured {
	o := objects.New(apiVersion, kind, namespace, name)
	maps.Copy(o, more)
	return &unstructured.Unstructured{Object: o}
}

func configMap(namespace, name, value string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: objects.ConfigMap(namespace, name, "value="+value, "other=1")}
}

func secret(namespace, name, value string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: objects.Secret(namespace, name, "password="+value)}
}

func serviceAccount(namespace, name string) *unstructured.Unstructured {
	return object("v1", "ServiceAccount", namespace, name, nil)
}

func definition(group string) *unstructured.Unstructured {
	anything := map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}
	return object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "things."+group, map[string]any{"spec": map[string]any{
		"group": group, "scope": "Namespaced", "names": map[string]any{"kind": "Thing", "plural": "things"},
		"versions": []any{map[string]any{"name": "v1", "served": true, "storage": true, "schema": map[string]any{"openAPIV3Schema": anything}}},
	}})
}

func instance(group, namespace, name, value string) *unstructured.Unstructured {
	return object(group+"/v1", "Thing", namespace, name, map[string]any{"spec": map[string]any{"value": value}})
}

// resource returns the resource of a kind that extensions have, except instances.
func resource(kind string) schema.GroupVersionResource {
	switch kind {
	case "CustomResourceDefinition":
		return schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	default:
		return schema.GroupVersionResource{Version: "v1", Resource: strings.ToLower(kind) + "s"}
	}
}
