package tree_test

import (
	"testing"

	"github.com/penstock-project/penstock/pkg/diff/tree"
	"github.com/penstock-project/penstock/pkg/manifest"
)

// TestStatus: status in a manifest of another kind is content, and its change is shown. Status of
// Kubernetes' own kinds is ignored. Both readers agree.
func TestStatus(t *testing.T) {
	comparer := tree.NewComparer(nil, nil, func() bool { return false })
	for name, tc := range map[string]struct {
		head string
		want bool
	}{
		"Custom":     {`{"apiVersion":"example.com/v1","kind":"Lamp","metadata":{"name":"l"},`, true},
		"Spelled":    {`{"kind":"Lamp","apiVersion":"example.com/v1", "metadata":{"name":"l"},`, true},
		"Kubernetes": {`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"l"},`, false},
	} {
		t.Run(name, func(t *testing.T) {
			parse := func(phase string) *tree.Node {
				object, err := manifest.Parse([]byte(tc.head + `"status":{"phase":"` + phase + `"}}`))
				if err != nil {
					t.Fatal(err)
				}
				// The JSON is used as spelled here, because parsing would make it canonical.
				object.JSON = []byte(tc.head + `"status":{"phase":"` + phase + `"}}`)
				n, err := comparer.Parse(&object)
				if err != nil {
					t.Fatal(err)
				}
				return n
			}
			if got := comparer.Compare(parse("on"), parse("off")).Op != tree.Same; got != tc.want {
				t.Errorf("a change of status is a difference: %v", got)
			}
		})
	}
}
