package plan

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"

	"github.com/penstock-project/penstock/pkg/governance/profile"
)

func definitions() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
}

func knobResource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "knobs.test", Version: "v1", Resource: "knobs"}
}

func crd(plural, group string, established bool) *unstructured.Unstructured {
	status := map[bool]string{true: "True", false: "False"}[established]
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": plural + "." + group, "generation": int64(3)},
		"spec": map[string]any{"group": group, "names": map[string]any{"plural": plural}, "versions": []any{
			map[string]any{"name": "v1", "served": true, "schema": map[string]any{"openAPIV3Schema": known()}}}},
		"status": map[string]any{"conditions": []any{map[string]any{"type": "Established", "status": status}}},
	}}
}

// TestFactWatch: the watch notices a definition that is created, deleted and created again, with
// its objects, without a restart. An unknown state is never an answer.
func TestFactWatch(t *testing.T) {
	client := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{
		definitions(): "CustomResourceDefinitionList", knobResource(): "KnobList",
	})
	changed := make(chan struct{}, 1)
	watched := NewFactWatch(client, []profile.Profile{knobs{n: 1}}, func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	})
	if _, err := watched.Facts(); err == nil {
		t.Error("there are facts before anything was read")
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	go func() { _ = watched.Run(ctx) }()
	deadline := time.After(60 * time.Second)
	until := func(what, want string) {
		t.Helper()
		for {
			now := describe(watched)
			if now == want {
				return
			}
			select {
			case <-changed:
			case <-deadline:
				t.Fatalf("%s: the facts are %q, want %q", what, now, want)
			}
		}
	}
	do := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	until("nothing is there", "")
	do(client.Resource(definitions()).Create(ctx, crd("levers", "knobs.test", true), metav1.CreateOptions{}))
	do(client.Resource(definitions()).Create(ctx, crd("knobs", "knobs.test", false), metav1.CreateOptions{}))
	until("it is not established", "")
	do(client.Resource(definitions()).Update(ctx, crd("knobs", "knobs.test", true), metav1.UpdateOptions{}))
	until("it is served", "v1 of generation 3:")
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "knobs.test/v1", "kind": "Knob", "metadata": map[string]any{"name": "one"}}}
	do(client.Resource(knobResource()).Create(ctx, object, metav1.CreateOptions{}))
	until("one was made", "v1 of generation 3: one")
	do(nil, client.Resource(definitions()).Delete(ctx, "knobs.knobs.test", metav1.DeleteOptions{}))
	until("it went", "")
	do(client.Resource(definitions()).Create(ctx, crd("knobs", "knobs.test", true), metav1.CreateOptions{}))
	until("it is back", "v1 of generation 3: one")
}

func describe(watched *FactWatch) string {
	facts, err := watched.Facts()
	if err != nil {
		return err.Error()
	}
	definition, found := facts.Definitions["knobs.knobs.test"]
	if !found {
		return ""
	}
	var names []string
	for _, object := range facts.Objects[schema.GroupKind{Group: "knobs.test", Kind: "Knob"}] {
		names = append(names, object.GetName())
	}
	return strings.TrimSpace(fmt.Sprintf("%s of generation %d: %s", definition.Preferred().Name, definition.Generation, strings.Join(names, " ")))
}
