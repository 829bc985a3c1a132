package observe

import (
	"testing"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/rollout/probe"
)

// TestInterestEqual: interests are compared by value, so that a pass with the same interests costs
// nothing.
func TestInterestEqual(t *testing.T) {
	x := Interest{ID: manifest.ID{Name: "x"}, Version: "v1"}
	cases := map[string]struct {
		change func(*Interest)
		want   bool
	}{
		"same":    {func(*Interest) {}, true},
		"object":  {func(i *Interest) { i.ID.Name = "y" }, false},
		"version": {func(i *Interest) { i.Version = "v2" }, false},
		"by name": {func(i *Interest) { i.ByName = true }, false},
		"status":  {func(i *Interest) { i.Reads.Status = true }, false},
		"whole":   {func(i *Interest) { i.Reads.Whole = true }, false},
		"fields":  {func(i *Interest) { i.Reads = probe.Reads{Fields: [][]string{{"spec"}}} }, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			y := x
			tc.change(&y)
			if got := x.equal(y); got != tc.want {
				t.Errorf("equal: %t, want %t", got, tc.want)
			}
		})
	}
}
