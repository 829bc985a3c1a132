package applycheck

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/penstock-project/penstock/pkg/manifest"
)

// operator returns an operator with 60 objects, half of them roles.
func operator(t testing.TB) []manifest.Object {
	var objects []manifest.Object
	add := func(text string) { objects = append(objects, *object(t, text)) }
	add(definitionOfX)
	add("apiVersion: example.com/v1\nkind: X\nmetadata: {name: a}\nspec: {names: [a, b], ports: [{port: 1}]}\n")
	for i := range 28 {
		add(fmt.Sprintf("apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: r%d}\nrules: [{apiGroups: [a, b], resources: [c, d], verbs: [get, list, watch]}, {apiGroups: [a], resources: [c], verbs: [get]}]\n", i))
		add(fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c%d, namespace: b}\ndata: {a: text, b: more}\n", i))
	}
	env := ""
	for i := range 40 {
		env += fmt.Sprintf("{name: V%d, value: x}, ", i)
	}
	add(pod("env: [" + env + "]\nports: [{containerPort: 80}]\nresources: {limits: {cpu: 1, memory: 1Gi}}"))
	add("apiVersion: v1\nkind: Service\nmetadata: {name: a, namespace: b}\nspec: {ports: [{port: 80, targetPort: http}], selector: {a: b}}\n")
	return objects
}

// BenchmarkCheck measures the check of one revision.
func BenchmarkCheck(b *testing.B) {
	types := builtin(b)
	sets := map[string][]manifest.Object{"Operator60": operator(b)}
	for name, pattern := range map[string]string{"CertManager": "manifests/cert-manager/1.20.3/*.yaml", "ArgoCD": "bundles/argocd-operator/0.16.0/manifests/*.yaml"} {
		if objects := shared(b, pattern); len(objects) > 0 {
			sets[name] = objects
		}
	}
	for name, objects := range sets {
		b.Run(fmt.Sprintf("%s/%d", name, len(objects)), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if found, err := Check(context.Background(), types, nil, objects); err != nil || len(found) > 0 {
					b.Fatalf("%v %v", found, err)
				}
			}
		})
	}
}

// shared returns manifests of real operators outside the repository, if they exist.
func shared(t testing.TB, pattern string) []manifest.Object {
	files, err := filepath.Glob(filepath.Join("../../../shared/data", pattern))
	if err != nil {
		t.Fatal(err)
	}
	var objects []manifest.Object
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, document := range strings.Split(string(content), "\n---") {
			data, err := yaml.YAMLToJSON([]byte(document))
			if err != nil || string(data) == "null" {
				continue
			}
			if parsed, err := manifest.Parse(data); err == nil {
				objects = append(objects, parsed)
			}
		}
	}
	return objects
}

// TestMemory: holders share the types of Kubernetes, so another holder costs little memory.
func TestMemory(t *testing.T) {
	first := builtin(t)
	heap := func() uint64 {
		var stats runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&stats)
		return stats.HeapAlloc
	}
	before := heap()
	held := make([]*BuiltinTypes, 10)
	for i := range held {
		held[i] = builtin(t)
	}
	grown := int64(heap()) - int64(before)
	t.Logf("10 holders take %d KiB", grown>>10)
	if grown > 10<<20 {
		t.Errorf("10 holders of the types take %d KiB", grown>>10)
	}
	runtime.KeepAlive(first)
	runtime.KeepAlive(held)
}
