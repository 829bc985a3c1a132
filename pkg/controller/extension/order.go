package extension

import (
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/penstock-project/penstock/pkg/controller/maker"
	"github.com/penstock-project/penstock/pkg/extension"
	"github.com/penstock-project/penstock/pkg/extension/order"
	"github.com/penstock-project/penstock/pkg/extension/status"
)

// inOrder says why a version must not be installed now: the extension requires others, or others
// require what is installed. The version is empty while it is not known.
func (s *scope) inOrder(version string) *maker.Outcome {
	value, has := s.extension.Annotations[extension.RequiresAnnotation]
	if has {
		if _, err := extension.ParseRequires(value); err != nil {
			return stop(status.Invalid, fmt.Sprintf("annotation %s: %s", extension.RequiresAnnotation, err), "")
		}
	}
	this := order.Of(s.object)
	if why := order.Unmet(this, s.inOrderAs); why != "" {
		return stop(status.RequirementsUnmet, why, "")
	}
	if version == "" {
		return nil
	}
	var all []order.Extension
	for _, object := range s.all() {
		all = append(all, order.Of(object))
	}
	if why := order.Breaks(this, version, all, s.extension.Annotations[extension.AcknowledgeDependentsAnnotation]); why != "" {
		return stop(status.RequiredByOthers, why, "")
	}
	return nil
}

// inOrderAs finds another extension.
func (c *Controller) inOrderAs(name string) *order.Extension {
	object, _ := c.find(name)
	if object == nil {
		return nil
	}
	found := order.Of(object)
	return &found
}

// addRelated asks for a pass over the extensions that one requires, and over those that require it, when
// what they ask of it is another one. Nil is an extension that is not there.
func (c *Controller) addRelated(before, now *unstructured.Unstructured) {
	var was, is order.Extension
	if before != nil {
		was = order.Of(before)
	}
	if now != nil {
		is = order.Of(now)
	}
	if reflect.DeepEqual(was, is) {
		return
	}
	for _, one := range append(was.Requires, is.Requires...) {
		c.queue.Add(one.Name)
	}
	for _, object := range c.all() {
		for _, one := range order.Of(object).Requires {
			if one.Name == was.Name || one.Name == is.Name {
				c.queue.Add(object.GetName())
			}
		}
	}
}

// resolvedVersion is the version that a catalog has, empty when only the content says it.
func (s *scope) resolvedVersion() string {
	if s.resolved == nil {
		return ""
	}
	return s.resolved.Version
}
