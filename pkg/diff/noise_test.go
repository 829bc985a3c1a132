package diff

import (
	"regexp"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	clientscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/penstock-project/penstock/pkg/diff/difftest"
	"github.com/penstock-project/penstock/pkg/diff/schema"
	"github.com/penstock-project/penstock/pkg/diff/tree"
	"github.com/penstock-project/penstock/pkg/manifest"
)

// checkNoise checks that every change has an effect: applied alone, it changes the old object, also
// in the Go types of Kubernetes. It returns the number of changes that were tried.
func checkNoise(t difftest.TB, types schema.Schema, old *manifest.Object, change Change) int {
	t.Helper()
	// Definitions are large and have many changes, so only some are tried, evenly distributed.
	const bytes = 512 << 10
	step := 1 + len(change.Fields)*len(old.JSON)/bytes
	tried := 0
	for i := 0; i < len(change.Fields); i += step {
		field := &change.Fields[i]
		if !standsAlone(field) {
			continue
		}
		tried++
		made := apply(t, old, change.Fields[i:i+1])
		if pair := nodes(t, types, old, made); tree.Equal(pair[0], pair[1]) {
			t.Errorf("%s: %s %s is noise: it changes nothing", change.ID, field.Op, field.Path)
		}
		before, after := goTypes(old), goTypes(made)
		if before != nil && after != nil && equality.Semantic.DeepEqual(before, after) {
			t.Errorf("%s: %s %s is noise: to Kubernetes it changes nothing", change.ID, field.Op, field.Path)
		}
	}
	return tried
}

// standsAlone reports whether a change can be applied without the other changes. Positions in a
// list and changes of its order cannot.
func standsAlone(field *FieldChange) bool {
	inList, _ := regexp.MatchString(`\[\d+\]`, field.Path)
	return field.Op != Reorder && !inList
}

// goTypes decodes a manifest to Go types. It returns nil if there is no Go type or decoding fails.
func goTypes(object *manifest.Object) runtime.Object {
	gvk := runtimeschema.GroupVersionKind{Group: object.Group, Version: object.Version, Kind: object.Kind}
	decoded, _, err := clientscheme.Codecs.UniversalDeserializer().Decode(object.JSON, &gvk, nil)
	if err != nil {
		return nil
	}
	return decoded
}
