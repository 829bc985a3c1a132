package rollout

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/penstock-project/penstock/pkg/source/directory"
	"github.com/penstock-project/penstock/test/bench/operator"
	"github.com/penstock-project/penstock/test/framework/plane"
)

type release struct {
	name, namespace string
	phases          []phase
	// bundle and chart are references of images with the objects; empty if there is no image.
	bundle, chart string
}

type phase struct {
	name    string
	objects []map[string]any
}

func (r release) objects() []map[string]any {
	var all []map[string]any
	for _, p := range r.phases {
		all = append(all, p.objects...)
	}
	return all
}

func (r release) flat() release {
	r.phases = []phase{{name: "all", objects: r.objects()}}
	return r
}

// bundle is a set of extensions with the releases of a case.
type bundle struct {
	title string
	// first is installed. touched differs from it in one field. next differs as much as a new
	// version.
	first, touched, next []release
}

func (b bundle) size() string {
	count, bytes := 0, 0
	for _, r := range b.first {
		for _, o := range r.objects() {
			count++
			bytes += len(encoded(o))
		}
	}
	return fmt.Sprintf("%d objects, %.2f MB", count, float64(bytes)/1e6)
}

// marker returns the Deployment that touched changes, and that drifts.
func marker(r release) map[string]any {
	for _, o := range r.objects() {
		if o["kind"] == "Deployment" {
			return o
		}
	}
	return nil
}

func container(deployment map[string]any) map[string]any {
	spec := deployment["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)
	return spec["containers"].([]any)[0].(map[string]any)
}

// realBundle returns cert-manager if its manifests exist outside of the checkout, or a generated
// operator of its size.
func realBundle(t *testing.T) bundle {
	t.Helper()
	root, err := plane.Root()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(root, "..", "shared", "data", "manifests", "cert-manager")
	read := func(version string) release { return readRelease(t, "cert-manager", filepath.Join(dir, version)) }
	title := "cert-manager 1.19.5 to 1.20.3"
	if _, err := os.Stat(dir); err != nil {
		title = "a made-up operator of cert-manager's size"
		read = func(version string) release {
			return madeUp("made-up", 46, 470_000, map[string]int{"1.19.5": 1, "1.20.3": 2}[version])
		}
	}
	b := bundle{title: title, first: []release{read("1.19.5")}, touched: []release{read("1.19.5")}, next: []release{read("1.20.3")}}
	touch(b.touched[0])
	return b
}

func touch(r release) { container(marker(r))["image"] = "registry.example.com/patched:1" }

// readRelease reads manifests as `penstock render` does, without Namespaces.
func readRelease(t *testing.T, name, dir string) release {
	t.Helper()
	sorted, err := directory.Render(context.Background(), os.DirFS(dir), directory.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := release{name: name}
	for _, p := range sorted {
		read := phase{name: p.Name}
		for _, o := range p.Objects {
			if o.Kind == "Namespace" {
				continue
			}
			if o.Namespace != "" && r.namespace == "" {
				r.namespace = o.Namespace
			}
			decoded := map[string]any{}
			if err := json.Unmarshal(o.JSON, &decoded); err != nil {
				t.Fatal(err)
			}
			// With this annotation, Helm would keep the object.
			unstructured.RemoveNestedField(decoded, "metadata", "annotations", "helm.sh/resource-policy")
			read.objects = append(read.objects, decoded)
		}
		if len(read.objects) > 0 {
			r.phases = append(r.phases, read)
		}
	}
	return r
}

// madeUp returns a release of a generated operator whose objects all change.
func madeUp(name string, objects, bytes, number int) release {
	o := operator.Operator{Name: name, Objects: objects, Bytes: bytes, AllChange: true}
	definitions, rest := phase{name: "crds"}, phase{name: "deploy"}
	for _, manifest := range o.Manifests(number) {
		decoded := map[string]any{}
		// The bundle was just encoded, so decoding cannot fail.
		_ = json.Unmarshal(encoded(manifest), &decoded)
		if decoded["kind"] == "CustomResourceDefinition" {
			definitions.objects = append(definitions.objects, decoded)
		} else {
			rest.objects = append(rest.objects, decoded)
		}
	}
	return release{name: name, namespace: name + "-system", phases: []phase{definitions, rest}}
}

func smallBundle(extensions, objects int) bundle {
	b := bundle{title: fmt.Sprintf("%d extensions of %d small objects", extensions, objects)}
	for i := range extensions {
		name := fmt.Sprintf("small-%04d", i)
		b.first = append(b.first, smallRelease(name, objects, "1", "1"))
		b.touched = append(b.touched, smallRelease(name, objects, "2", "1"))
		b.next = append(b.next, smallRelease(name, objects, "3", "3"))
	}
	return b
}

// smallRelease returns a Deployment with an image, and other objects with a value.
func smallRelease(name string, objects int, image, value string) release {
	const namespace = "small"
	all := []map[string]any{{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"namespace": namespace, "name": name},
		"spec": map[string]any{"selector": map[string]any{"matchLabels": map[string]any{"app": name}},
			"template": map[string]any{"metadata": map[string]any{"labels": map[string]any{"app": name}},
				"spec": map[string]any{"containers": []any{map[string]any{"name": "main", "image": "registry.example.com/" + name + ":" + image}}}}},
	}}
	for i := 1; i < objects; i++ {
		o := map[string]any{"apiVersion": "v1", "metadata": map[string]any{"namespace": namespace, "name": fmt.Sprintf("%s-%d", name, i),
			"labels": map[string]any{"value": value}}}
		switch i % 3 {
		case 0:
			o["kind"], o["spec"] = "Service", map[string]any{"clusterIP": "None", "selector": map[string]any{"app": name}}
		case 1:
			o["kind"], o["data"] = "ConfigMap", map[string]any{"value": strings.Repeat(value+" setting\n", 40)}
		default:
			o["kind"] = "ServiceAccount"
		}
		all = append(all, o)
	}
	slices.Reverse(all)
	return release{name: name, namespace: namespace, phases: []phase{{name: "all", objects: all}}}
}

func encoded(o map[string]any) []byte {
	raw, err := json.Marshal(o)
	if err != nil {
		panic(err) // impossible for decoded JSON
	}
	return raw
}
