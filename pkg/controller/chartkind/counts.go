package chartkind

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/penstock-project/penstock/pkg/chartkind/report"
)

// Counts are numbers of a ChartKind that is served.
type Counts struct {
	// Name is that of the ChartKind.
	Name string
	// States are how many of its custom resources have which reason of Progressing, empty for
	// none.
	States map[string]int
	// Renders is how often its chart was rendered.
	Renders int
}

// Counts returns the numbers of all ChartKinds that are served, from caches.
func (c *Controller) Counts() []Counts {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []Counts
	for name, s := range c.running {
		one := Counts{Name: name, States: map[string]int{}, Renders: c.renders[name]}
		for _, kept := range s.resources.GetStore().List() {
			if object, ok := kept.(*unstructured.Unstructured); ok {
				one.States[report.ProgressOf(object)]++
			}
		}
		all = append(all, one)
	}
	return all
}

// countRender notes that a chart is rendered.
func (s *served) countRender() {
	s.Controller.mu.Lock()
	defer s.Controller.mu.Unlock()
	s.Controller.renders[s.name]++
}
