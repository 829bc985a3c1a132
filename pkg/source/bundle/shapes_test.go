package bundle

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

// TestShapes: a bundle with fields of unexpected types is rendered or refused, and never causes a
// panic.
func TestShapes(t *testing.T) {
	full := strings.Replace(beam, "  - {type: OwnNamespace, supported: true}\n  - {type: SingleNamespace, supported: true}\n", "", 1) + webhooks + conversion + "    targetPort: 9443\n"
	configured := []byte(`{"deploymentConfig": {"nodeSelector": {"a": "b"}, "tolerations": [{"key": "a"}], "resources": {}, "env": [{"name": "A", "value": "2"}], "envFrom": [{"prefix": "a"}],
		"volumes": [{"name": "data"}], "volumeMounts": [{"name": "data", "mountPath": "/x"}], "affinity": {"nodeAffinity": {}, "podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": []}}, "annotations": {"a": "b"}}}`)
	if _, err := render(t, with(bundle(t), csvFile, full), Options{Config: configured, Certificates: CertManager}); err != nil {
		t.Fatal(err)
	}
	odd := []any{nil, map[string]any{"a": map[string]any{}}}
	for _, file := range []struct{ name, text string }{{csvFile, full}, {crdFile, lamps}, {annotationsFile, annotations}} {
		var plain map[string]any
		if err := yaml.Unmarshal([]byte(file.text), &plain); err != nil {
			t.Fatal(err)
		}
		for _, path := range pathsOf(plain) {
			for _, value := range odd {
				encoded, err := json.Marshal(replaced(plain, path, value))
				if err != nil {
					t.Fatal(err)
				}
				files := fstest.MapFS{csvFile: {Data: []byte(full)}, crdFile: {Data: []byte(lamps)}, annotationsFile: {Data: []byte(annotations)}}
				files[file.name] = &fstest.MapFile{Data: encoded}
				func() {
					defer func() {
						if found := recover(); found != nil {
							t.Errorf("%s: %s = %v: %v", file.name, fieldName(path), value, found)
						}
					}()
					options := Options{Certificates: CertManager, AcceptRequirements: true}
					if slices.Contains(path, any("deployments")) {
						options.Config = configured // compiling its schema takes most of the time
					}
					_, _ = render(t, files, options)
				}()
			}
		}
	}
}

// pathsOf returns the paths of all values in an object.
func pathsOf(of any) [][]any {
	var out [][]any
	add := func(step, value any) {
		out = append(out, []any{step})
		for _, below := range pathsOf(value) {
			out = append(out, append([]any{step}, below...))
		}
	}
	switch of := of.(type) {
	case map[string]any:
		for key, value := range of {
			add(key, value)
		}
	case []any:
		for i, value := range of {
			add(i, value)
		}
	}
	slices.SortFunc(out, func(a, b []any) int { return slices.Compare(texts(a), texts(b)) })
	return out
}

func texts(path []any) []string {
	out := make([]string, len(path))
	for i := range path {
		out[i] = fmt.Sprint(path[i])
	}
	return out
}

// replaced returns a copy with another value at a path.
func replaced(of map[string]any, path []any, value any) map[string]any {
	var root any = runtime.DeepCopyJSON(of)
	at := root
	for i, step := range path {
		last := i == len(path)-1
		switch step := step.(type) {
		case string:
			if last {
				at.(map[string]any)[step] = value
			} else {
				at = at.(map[string]any)[step]
			}
		case int:
			if last {
				at.([]any)[step] = value
			} else {
				at = at.([]any)[step]
			}
		}
	}
	return root.(map[string]any)
}
