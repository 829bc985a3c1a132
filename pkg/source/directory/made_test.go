package directory

import (
	"context"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/penstock-project/penstock/pkg/manifest"
)

// TestCheckMade: an error in a generated object names the line of its source in the file.
func TestCheckMade(t *testing.T) {
	files := fstest.MapFS{"README": {Data: []byte("kind: Plan\napiVersion: example.com/v1\nmetadata:\n  name: p\nspec:\n  deployments:\n  - name: a\n    spec:\n      replicas: many\n")}}
	read, err := Read(context.Background(), files, Options{AnyName: true, Unchecked: true})
	if err != nil {
		t.Fatal(err)
	}
	if got := read[0].LineAt("spec", "deployments", 0, "spec", "replicas", "more"); got != 9 {
		t.Errorf("the field is on line %d, want 9", got)
	}
	if got := read[0].LineAt("spec", "deployments", 7); got != 6 {
		t.Errorf("an item that is not there is on line %d, want that of the list, 6", got)
	}
	object, err := manifest.Parse([]byte(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"a"},"spec":{"replicas":"many"}}`))
	if err != nil {
		t.Fatal(err)
	}
	_, err = Check([]Located{read[0].Made(object, "spec", "spec", "deployments", 0, "spec")}, Options{})
	if err == nil || !strings.HasPrefix(err.Error(), "README:9: Deployment.apps a: spec.replicas") {
		t.Errorf("got %v, want line 9", err)
	}
}
