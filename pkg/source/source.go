// Package source converts the sources of revisions. Each folder below it reads one kind of input (a
// directory of manifests, a bundle, a chart, …) and returns phased objects. This package defines
// the order of phases, which all sources share. It uses no client and no scheme.
package source

import "github.com/penstock-project/penstock/pkg/manifest"

// Phase is a named step of a rollout, with manifests.
type Phase struct {
	Name    string
	Objects []manifest.Object
}

// Count returns the number of objects in all phases.
func Count(phases []Phase) int {
	n := 0
	for _, phase := range phases {
		n += len(phase.Objects)
	}
	return n
}
