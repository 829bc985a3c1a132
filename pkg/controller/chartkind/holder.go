package chartkind

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/penstock-project/penstock/pkg/chartkind"
	"github.com/penstock-project/penstock/pkg/objectwatch"
)

// holderOf returns another ChartKind that has the same kind, because a kind can have only one
// chart. An accepted ChartKind wins, which its finalizer shows, and then the older one. Names
// decide if both were created in one second.
func (c *Controller) holderOf(object *unstructured.Unstructured, kind *chartkind.ChartKind) string {
	rank := func(one *unstructured.Unstructured) []string {
		accepted := "1"
		if slices.Contains(one.GetFinalizers(), chartkind.Finalizer) {
			accepted = "0"
		}
		return []string{accepted, one.GetCreationTimestamp().UTC().Format(time.RFC3339), one.GetName()}
	}
	for _, other := range c.kindsOf(kind.Spec.Resource.GVR().GroupResource().String()) {
		if other.GetName() != kind.Name && (slices.Compare(rank(other), rank(object)) < 0 || c.servedBy(other.GetName()) != nil) {
			return other.GetName()
		}
	}
	return ""
}

// kindsOf returns the ChartKinds of a resource, as plural.group, in any version.
func (c *Controller) kindsOf(resource string) []*unstructured.Unstructured {
	var all []*unstructured.Unstructured
	for _, object := range objectwatch.All[*unstructured.Unstructured](c.informer()) {
		if resourceOf(object) == resource {
			all = append(all, object)
		}
	}
	return all
}

// resourceOf returns the resource of a ChartKind, as plural.group; empty if it cannot be read.
func resourceOf(object *unstructured.Unstructured) string {
	kind, err := chartkind.From(object)
	if err != nil {
		return ""
	}
	return kind.Spec.Resource.GVR().GroupResource().String()
}
