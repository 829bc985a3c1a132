package operator

import (
	"bytes"
	"testing"

	"github.com/penstock-project/penstock/pkg/manifest"
)

// TestManifests: the generated objects have the stated numbers of objects, bytes and changes.
func TestManifests(t *testing.T) {
	cases := map[string]struct {
		reason      string
		operator    Operator
		least, most int // changed objects
	}{
		"Mean":        {"one object in three does not change", Operator{Name: "mean", Objects: MeanObjects, Bytes: MeanBytes}, 7, 10},
		"CertManager": {"every object says its version", Operator{Name: "certs", Objects: 46, Bytes: 400_000, AllChange: true}, 46, 46},
		"Thousand":    {"every object says its version", Operator{Name: "many", Objects: 1000, Bytes: 2_400_000, AllChange: true}, 1000, 1000},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			first, second := canonical(t, tc.operator, 1), canonical(t, tc.operator, 2)
			if len(first) != tc.operator.Objects {
				t.Errorf("got %d objects, want %d", len(first), tc.operator.Objects)
			}
			size, changed := 0, 0
			for id, object := range second {
				size += len(object.JSON)
				if !bytes.Equal(first[id].JSON, object.JSON) {
					changed++
				}
			}
			if size < tc.operator.Bytes*9/10 || size > tc.operator.Bytes*11/10 {
				t.Errorf("a release has %d bytes, want about %d", size, tc.operator.Bytes)
			}
			if changed < tc.least || changed > tc.most {
				t.Errorf("%s: %d objects change, want %d to %d", tc.reason, changed, tc.least, tc.most)
			}
		})
	}
}

func canonical(t *testing.T, o Operator, number int) map[manifest.ID]manifest.Object {
	t.Helper()
	objects := map[manifest.ID]manifest.Object{}
	for _, m := range o.Manifests(number) {
		object, err := manifest.Canonical(m)
		if err != nil {
			t.Fatal(err)
		}
		objects[object.ID] = object
	}
	return objects
}
