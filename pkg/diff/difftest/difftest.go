// Package difftest has what the tests of pkg/diff and of the packages below it
// have in common.
package difftest

import (
	"sync"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/penstock-project/penstock/pkg/diff/schema"
	"github.com/penstock-project/penstock/pkg/manifest"
)

// builtin keeps the tests fast: the types take a while to read and do not change.
var builtin = sync.OnceValues(schema.NewBuiltin)

// Builtin returns the types of Kubernetes.
func Builtin(t testing.TB) schema.Schema {
	t.Helper()
	types, err := builtin()
	if err != nil {
		t.Fatal(err)
	}
	return types
}

// Digester makes digests with a key of the tests.
func Digester() manifest.Digester {
	return manifest.Digester{SecretKey: []byte("the key of a test")}
}

// Object is a manifest written as YAML.
func Object(t testing.TB, text string) *manifest.Object {
	t.Helper()
	data, err := yaml.YAMLToJSONStrict([]byte(text))
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	parsed, err := Digester().FromJSON(data)
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return &parsed
}
