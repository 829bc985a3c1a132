package chain

import (
	"fmt"
	"strings"

	"github.com/penstock-project/penstock/pkg/rollout"
	"github.com/penstock-project/penstock/pkg/text"
)

// share describes the objects for which a layer is responsible: it has reached them, and no newer
// layer has.
type share struct {
	objects, available, superseded, pending, phases int
	// complete is true if all these objects are rolled out and pass their probes. newer lists the
	// revisions that have the superseded objects.
	complete bool
	newer    []string
}

func shareOf(layer *rollout.LayerReport, newer []string) share {
	s := share{phases: len(layer.Phases), newer: newer}
	for _, phase := range layer.Phases {
		s.objects += phase.Objects
		s.available += phase.Available
		s.superseded += phase.Superseded
		s.pending += phase.Pending
	}
	s.complete = layer.Complete || s.pending > 0 && s.available == s.own()
	return s
}

// own returns the number of objects for which the layer is responsible.
func (s share) own() int { return s.objects - s.superseded - s.pending }

// none reports whether the layer is responsible for none of its objects.
func (s share) none() bool { return s.objects > 0 && s.own() == 0 }

// whole reports whether the layer is responsible for all of its objects.
func (s share) whole() bool { return s.own() == s.objects }

// String describes how many objects are rolled out, and the state of the rest.
func (s share) String() string {
	if s.whole() {
		return fmt.Sprintf("%s in %s %s as rolled out", text.Count(s.objects, "object"), text.Count(s.phases, "phase"), verb(s.objects))
	}
	parts := []string{fmt.Sprintf("%d of %s %s as rolled out", s.available, text.Count(s.objects, "object"), verb(s.available))}
	if s.superseded > 0 {
		belong := "belong"
		if s.superseded == 1 {
			belong = "belongs"
		}
		parts = append(parts, fmt.Sprintf("%d %s to %s", s.superseded, belong, s.others()))
	}
	if s.pending > 0 {
		parts = append(parts, fmt.Sprintf("%d %s not reached", s.pending, were(s.pending)))
	}
	return strings.Join(parts, "; ")
}

func (s share) others() string {
	switch len(s.newer) {
	case 0:
		return "a newer revision"
	case 1:
		return s.newer[0]
	default:
		return strings.Join(s.newer[:len(s.newer)-1], ", ") + " and " + s.newer[len(s.newer)-1]
	}
}

func were(n int) string {
	if n == 1 {
		return "was"
	}
	return "were"
}
