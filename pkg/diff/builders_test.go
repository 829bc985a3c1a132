package diff

import (
	"math"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/penstock-project/penstock/pkg/diff/difftest"
	"github.com/penstock-project/penstock/pkg/diff/schema"
	"github.com/penstock-project/penstock/pkg/diff/tree"
	"github.com/penstock-project/penstock/pkg/manifest"
)

// live returns an object as a server returns it: with status and without a digest.
func live(t testing.TB, text string) *manifest.Object {
	t.Helper()
	data, err := yaml.YAMLToJSONStrict([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var header struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Metadata   struct{ Name, Namespace string }
	}
	if err := yaml.Unmarshal(data, &header); err != nil {
		t.Fatal(err)
	}
	identity := difftest.Object(t, "apiVersion: "+header.APIVersion+"\nkind: "+header.Kind+"\nmetadata: {name: "+header.Metadata.Name+"}")
	identity.Namespace, identity.Digest, identity.JSON = header.Metadata.Namespace, "", data
	return identity
}

func unlimited() Limits {
	const all = math.MaxInt32
	return Limits{
		Fields: all, TotalFields: all, ValueBytes: all, TotalValueBytes: all, UnifiedBytes: all,
		TotalUnifiedBytes: all, LineBytes: all, Notes: all, TotalNotes: all,
	}
}

func compare(t testing.TB, old, new *manifest.Object) Change {
	t.Helper()
	return Compare(t.Context(), old, new, Options{Schema: difftest.Builtin(t), Limits: unlimited()})
}

// nodes returns the nodes of objects, as Compare builds them.
func nodes(t difftest.TB, types schema.Schema, objects ...*manifest.Object) []*tree.Node {
	t.Helper()
	comparer := tree.NewComparer(types, nil, func() bool { return false })
	var made []*tree.Node
	for _, o := range objects {
		n, err := comparer.Parse(o)
		if err != nil {
			t.Fatal(err)
		}
		made = append(made, n)
	}
	return made
}
