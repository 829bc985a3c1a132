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

// inOrder returns the reason why a version must not be installed now, or nil: the extension
// requires other extensions, or other extensions require the installed version. version is empty
// while unknown. The reason names only extensions that the author may get.
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

// shownTo returns a function that reports whether a user may get an extension. failed is its last
// error.
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

// lacks returns the reason why content must not be installed before the packages and kinds that it
// requires, or nil. A new revision of the installed image has no further requirements.
func (m making) lacks(ctx context.Context, identity maker.Identity, made *content) *maker.Outcome {
	if installed := m.installed(); m.desired.Accept || len(made.Requires) == 0 || installed != nil && installed.Annotations[olmv1alpha1.ReferenceAnnotation] == made.reference {
		m.noteRequiring(m.Name, nil)
		return nil
	}
	// From here on, a change of an extension with one of the packages causes another pass.
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

// serves returns a function that reports whether the cluster of the extension serves a kind.
// stopped is the reason why the user cannot ask.
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

// providersOf names the packages of the catalogs that provide a requirement.
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

func (c *Controller) inOrderAs(name string) *order.Extension {
	object, _ := c.find(name)
	if object == nil {
		return nil
	}
	found := order.Of(object)
	return &found
}

func (c *Controller) requiredBy(name string) []extension.Requirement {
	object, _ := c.find(name)
	if object == nil {
		return nil
	}
	return order.RequiredBy(object)
}

// byRequirement is the index of extensions by the names of their required extensions.
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

func (c *Controller) dependents(name string) []*unstructured.Unstructured {
	informer := c.informer()
	if informer == nil {
		return nil
	}
	found, _ := informer.GetIndexer().ByIndex(byRequirement, name) // the informer has this index
	var all []*unstructured.Unstructured
	for _, one := range found {
		if object, is := one.(*unstructured.Unstructured); is {
			all = append(all, object)
		}
	}
	return all
}

// addRelated enqueues the extensions that a changed extension concerns. It requires them, they
// require it, or their bundle waits for its package. It does so only if a relevant field changed.
// Nil means that the extension does not exist.
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

// noteRequiring records the missing packages that the bundle of an extension requires; nil for
// none.
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

// resolvedVersion returns the version from the catalog; empty if only the content has it.
func (s *scope) resolvedVersion() string {
	if s.resolved == nil {
		return ""
	}
	return s.resolved.Version
}
