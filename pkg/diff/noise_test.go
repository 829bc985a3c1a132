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

// checkNoise holds every change to mean something by itself: made alone, it makes
// another object of the old one, also as the Go types of Kubernetes see it. It
// returns how many changes were tried.
func checkNoise(t difftest.TB, types schema.Schema, old *manifest.Object, change Change) int {
	t.Helper()
	// Definitions are large and change in many places: of those some are tried,
	// spread over all.
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

// standsAlone tells whether a change can be made without the others: places in a
// list move with them, and so does the order of one.
func standsAlone(field *FieldChange) bool {
	inList, _ := regexp.MatchString(`\[\d+\]`, field.Path)
	return field.Op != Reorder && !inList
}

// goTypes is a manifest as Go types, nil where there is none or it does not fit.
func goTypes(object *manifest.Object) runtime.Object {
	gvk := runtimeschema.GroupVersionKind{Group: object.Group, Version: object.Version, Kind: object.Kind}
	decoded, _, err := clientscheme.Codecs.UniversalDeserializer().Decode(object.JSON, &gvk, nil)
	if err != nil {
		return nil
	}
	return decoded
}
