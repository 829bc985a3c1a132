package extension

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apiserver/pkg/authentication/user"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/authz"
	"github.com/penstock-project/penstock/pkg/controller/maker"
	"github.com/penstock-project/penstock/pkg/extension"
	"github.com/penstock-project/penstock/pkg/extension/order"
	"github.com/penstock-project/penstock/pkg/extension/status"
	"github.com/penstock-project/penstock/pkg/source"
	"github.com/penstock-project/penstock/pkg/source/chart/template"
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
	shown, failed := s.shownTo(ctx, author)
	this := order.Of(s.object)
	why, result := order.Unmet(this, s.inOrderAs, s.requiredBy, shown), status.RequirementsUnmet
	if why == "" && version != "" && version != this.Version {
		why, result = s.breaks(this, version, shown), status.RequiredByOthers
	}
	switch {
	case why == "":
		return nil
	case *failed != nil:
		return retry(status.Failed, *failed)
	}
	return stop(result, why, "")
}

// shownTo reports whether somebody may get an extension. The error is the last one of finding that
// out.
func (s *scope) shownTo(ctx context.Context, who user.Info) (shown order.Shown, failed *error) {
	failed = new(error)
	return func(name string) bool {
		may, err := s.RecentRights.May(ctx, who, authz.On(extension.Resource, "get", "", name))
		if err != nil {
			*failed = fmt.Errorf("finding out which extensions %s may get: %w", who.GetName(), err)
		}
		return err == nil && may
	}, failed
}

// lacks says why content must not be installed before the packages and kinds that it requires are there. Another
// revision of the installed image requires nothing more.
func (m making) lacks(ctx context.Context, identity maker.Identity, made *content) *maker.Outcome {
	if installed := m.installed(); m.desired.Accept || len(made.Requires) == 0 || installed != nil && installed.Annotations[olmv1alpha1.ReferenceAnnotation] == made.reference {
		m.noteRequiring(m.Name, nil)
		return nil
	}
	// A change of an extension that has one of the packages brings another pass from here on.
	m.noteRequiring(m.Name, made.Requires)
	shown, failed := m.shownTo(ctx, identity.Author)
	serves, stopped := m.serves(ctx, identity)
	cluster := order.Cluster{Shown: shown, Providers: m.providersOf, Serves: serves}
	for _, object := range m.all() {
		cluster.All = append(cluster.All, order.Of(object))
	}
	lacks, kinds, err := cluster.Lacks(order.Of(m.object), made.Requires)
	switch err = cmp.Or(err, *failed); {
	case *stopped != nil:
		return *stopped
	case err != nil:
		return retry(status.Failed, fmt.Errorf("looking for what the bundle requires: %w", err))
	case lacks == "":
		m.noteRequiring(m.Name, nil)
		return nil
	}
	unmet := stop(status.RequirementsUnmet, "the bundle requires "+lacks, "when it is there by other means: "+accepting(m.Name))
	if kinds {
		return unmet.Later()
	}
	return unmet
}

// serves reports whether the cluster of the extension serves a kind. Stopped is why somebody cannot
// ask.
func (s *scope) serves(ctx context.Context, identity maker.Identity) (serves func(kind string) (bool, error), stopped **maker.Outcome) {
	var cluster *template.Capabilities
	stopped = new(*maker.Outcome)
	return func(kind string) (bool, error) {
		if cluster == nil {
			if *stopped = s.mayUse(ctx, identity.Who()); *stopped != nil {
				return false, errors.New((*stopped).Message)
			}
			var err error
			if cluster, err = s.Capabilities.Capabilities(ctx, s.extension.Annotations[extension.TargetAnnotation]); err != nil {
				return false, err
			}
		}
		return slices.Contains(cluster.APIVersions, kind), nil
	}, stopped
}

// providersOf names the packages of the catalogs that have what is required.
func (s *scope) providersOf(required source.Requirement) []string {
	return s.catalogs.ProviderNames(required.Package, required.Kind)
}

// breaks names the installed extensions that require another version.
func (s *scope) breaks(this order.Extension, version string, shown order.Shown) string {
	var all []order.Extension
	for _, object := range s.dependents(this.Name) {
		all = append(all, order.Of(object))
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

// requiredBy returns the requirements of another extension.
func (c *Controller) requiredBy(name string) []extension.Requirement {
	object, _ := c.find(name)
	if object == nil {
		return nil
	}
	return order.RequiredBy(object)
}

// byRequirement is the index of extensions by the names of those that they require.
const byRequirement = "requires"

func requiredNames(object any) ([]string, error) {
	of, is := object.(*unstructured.Unstructured)
	if !is {
		return nil, nil
	}
	var names []string
	for _, one := range order.RequiredBy(of) {
		names = append(names, one.Name)
	}
	return names, nil
}

// dependents are the extensions that require one.
func (c *Controller) dependents(name string) []*unstructured.Unstructured {
	informer := c.informer()
	if informer == nil {
		return nil
	}
	found, _ := informer.GetIndexer().ByIndex(byRequirement, name) // the informer has the index
	var all []*unstructured.Unstructured
	for _, one := range found {
		if object, is := one.(*unstructured.Unstructured); is {
			all = append(all, object)
		}
	}
	return all
}

// addRelated asks for a pass over the extensions that one requires, over those that require it, and over
// those whose bundle waits for its package, when what they ask of it is another one. Nil is an extension that is
// not there.
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
	for _, object := range c.dependents(cmp.Or(was.Name, is.Name)) {
		c.queue.Add(object.GetName())
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for name, packages := range c.requiring {
		if slices.Contains(packages, was.Package) || slices.Contains(packages, is.Package) {
			c.queue.Add(name)
		}
	}
}

// noteRequiring notes the packages that the bundle of an extension waits for; nil is nothing.
func (c *Controller) noteRequiring(name string, requires []source.Requirement) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.requiring, name)
	for _, one := range requires {
		if one.Package != "" {
			c.requiring[name] = append(c.requiring[name], one.Package)
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
