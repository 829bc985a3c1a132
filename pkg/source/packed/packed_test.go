package packed

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/penstock-project/penstock/pkg/catalog/image"
)

func TestFormatOf(t *testing.T) {
	plain := fstest.MapFS{"a.yaml": {Data: []byte("kind: x")}}
	bundle := fstest.MapFS{annotations: {Data: []byte("a: b")}}
	for name, c := range map[string]struct {
		kind image.Kind
		in   fstest.MapFS
		want Format
		err  string
	}{
		"bundle":                  {kind: image.Bundle, in: bundle, want: Bundle},
		"chart":                   {kind: image.Chart, in: plain, want: Chart},
		"plain":                   {kind: image.Plain, in: plain, want: Manifests},
		"a bundle without labels": {kind: image.Plain, in: bundle, want: Bundle},
		"catalog":                 {kind: image.Catalog, in: plain, err: "it is a catalog"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := FormatOf(c.kind, c.in)
			if got != c.want || (err != nil) != (c.err != "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Errorf("found %q, %v", got, err)
			}
		})
	}
}
