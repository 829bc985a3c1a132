package extension

import (
	"context"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/penstock-project/penstock/pkg/authz"
	"github.com/penstock-project/penstock/pkg/controller/maker"
	"github.com/penstock-project/penstock/pkg/extension"
	"github.com/penstock-project/penstock/pkg/extension/order"
	"github.com/penstock-project/penstock/pkg/extension/status"
)

// inOrder says why a version must not be installed now: the extension requires others, or others
// require what is installed. The version is empty while it is not known. Of other extensions it says
// what the author may get.
func (s *scope) inOrder(ctx context.Context, author user.Info, version string) *maker.Outcome {
	value, has := s.extension.Annotations[extension.RequiresAnnotation]
	if has {
		if _, err := extension.ParseRequires(value); err != nil {
			return stop(status.Invalid, fmt.Sprintf("annotation %s: %s", extension.RequiresAnnotation, err), "")
		}
	}
	var failed error
	shown := func(name string) bool {
		may, err := s.RecentRights.May(ctx, author, authz.On(extension.Resource, "get", "", name))
		if err != nil {
			failed = err
		}
		return err == nil && may
	}
	this := order.Of(s.object)
	why, result := order.Unmet(this, s.inOrderAs, shown), status.RequirementsUnmet
	if why == "" && version != "" && version != this.Version {
		why, result = s.breaks(this, version, shown), status.RequiredByOthers
	}
	switch {
	case why == "":
		return nil
	case failed != nil:
		return retry(status.Failed, fmt.Errorf("finding out which extensions %s may get: %w", author.GetName(), failed))
	}
	return stop(result, why, "")
}

// breaks says which installed extensions require another version.
func (s *scope) breaks(this order.Extension, version string, shown order.Shown) string {
	var all []order.Extension
	for _, object := range s.all() {
		if len(order.RequiredBy(object)) > 0 {
			all = append(all, order.Of(object))
		}
	}
	return order.Breaks(this, version, all, s.extension.Annotations[extension.AcknowledgeDependentsAnnotation], shown)
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
		for _, one := range order.RequiredBy(object) {
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
