package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	yamlutil "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// notByHost maps rows of the table that testdata cannot prove to the reason.
var notByHost = map[string]string{
	"io.k8s.api.core.v1.EphemeralContainer": "is added to a Pod that exists, and has the defaults of Container",
	"ServiceReference.port":                 "",
}

// TestDefaultsOfHost compares the table with the result of an API server for testdata/sent.yaml.
// Each field that the server set has a correct row. A test of test/engine/client keeps
// testdata/stored.yaml equal to a host's answer.
func TestDefaultsOfHost(t *testing.T) {
	w := walker{T: t, seen: map[string]bool{}}
	sent, stored := sentToHost(t), storedByHost(t)
	if len(sent) != len(stored) {
		t.Fatalf("%d objects were sent and %d stored", len(sent), len(stored))
	}
	types := newBuiltin(t)
	for i, object := range sent {
		kind := (&unstructured.Unstructured{Object: object}).GroupVersionKind()
		known, ok := types.TypeOf(kind).(*builtinType)
		if !ok {
			t.Errorf("%s has no type", kind)
			continue
		}
		w.walk(kind.Kind, known, object, stored[i])
	}
	for name, fields := range builtinDefaults() {
		for field := range fields {
			_, whole := notByHost[name]
			if _, one := notByHost[name+"."+field]; !whole && !one && !w.seen[name+"."+field] {
				t.Errorf("no object of testdata/sent.yaml leaves out %s.%s", name, field)
			}
		}
	}
}

type values map[string]any

func (v values) Value(field string) any { return v[field] }

type walker struct {
	*testing.T
	seen map[string]bool
}

func (w walker) walk(path string, t *builtinType, sent, stored any) {
	w.Helper()
	switch stored := stored.(type) {
	case map[string]any:
		before, _ := sent.(map[string]any)
		names := slices.Collect(maps.Keys(stored))
		for field := range t.defaults[t.name] {
			names = append(names, field)
		}
		for _, field := range names {
			w.field(path+"."+field, t, field, before, stored)
		}
	case []any:
		items, _ := sent.([]any)
		of, _ := t.Item().(*builtinType)
		if of == nil || len(items) != len(stored) {
			return
		}
		for i := range stored {
			w.walk(path, of, items[i], stored[i])
		}
	}
}

func (w walker) field(path string, t *builtinType, field string, sent, stored map[string]any) {
	w.Helper()
	value, is := stored[field]
	of, _ := t.Field(field).(*builtinType)
	if before, was := sent[field]; was {
		if of != nil {
			w.walk(path, of, before, value)
		}
		return
	}
	filled, has := t.Default(field, values(sent))
	w.seen[t.name+"."+field] = true
	switch {
	case !has && is:
		w.Errorf("the host fills in %s: %v, the table has nothing for %s.%s", path, value, t.name, field)
	case has && !is && !isZero(filled) && field != "enableServiceLinks" && !strings.Contains(path, ".jobTemplate."):
		// The host sets enableServiceLinks in Pods, but not in templates, and sets no fields in
		// templates of Jobs. In templates, absence has the same meaning.
		w.Errorf("the host leaves out %s, the table has %v for %s.%s", path, filled, t.name, field)
	case has && is && isZero(filled) && of != nil && isObject(value):
		w.walk(path, of, map[string]any{}, value)
	case has && is && !reflect.DeepEqual(filled, value):
		w.Errorf("the host fills in %s: %v, the table has %v for %s.%s", path, value, filled, t.name, field)
	}
}

func isObject(value any) bool { _, is := value.(map[string]any); return is }

// isZero reports whether JSON omits a value. Objects of defaults count as zero.
func isZero(value any) bool {
	object, is := value.(map[string]any)
	return is && len(object) == 0 || !is && reflect.ValueOf(value).IsZero() || value == "0"
}

func sentToHost(t *testing.T) (all []map[string]any) {
	t.Helper()
	documents := yamlutil.NewYAMLToJSONDecoder(bytes.NewReader(testdata(t, "sent.yaml")))
	for {
		var raw json.RawMessage
		if err := documents.Decode(&raw); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		var object unstructured.Unstructured
		if err := object.UnmarshalJSON(raw); err != nil {
			t.Fatal(err)
		}
		all = append(all, object.Object)
	}
}

func storedByHost(t *testing.T) (all []map[string]any) {
	t.Helper()
	encoded, err := yaml.YAMLToJSON(testdata(t, "stored.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var raw []json.RawMessage
	if err := json.Unmarshal(encoded, &raw); err != nil {
		t.Fatal(err)
	}
	for _, one := range raw {
		var object unstructured.Unstructured
		if err := object.UnmarshalJSON(one); err != nil {
			t.Fatal(err)
		}
		all = append(all, object.Object)
	}
	return all
}

func testdata(t *testing.T, name string) []byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return content
}
