package imagetemplate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/penstock-project/penstock/pkg/extension"
	"github.com/penstock-project/penstock/pkg/extension/author"
	"github.com/penstock-project/penstock/pkg/imagetemplate"
	"github.com/penstock-project/penstock/pkg/imagetemplate/annotated"
	"github.com/penstock-project/penstock/pkg/imagetemplate/lookup"
)

type state string

const (
	stateResolved   state = "Resolved"
	stateUnresolved state = "Unresolved"
	// stateLeft is the state of a template that OLM's own controller handles.
	stateLeft state = "LeftToOLM"
)

// States counts objects by kind and state of their template.
func (c *Controller) States() map[struct{ Kind, State string }]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := map[struct{ Kind, State string }]int{}
	for k, s := range c.states {
		all[struct{ Kind, State string }{c.kinds[k.definition].Kind, string(s)}]++
	}
	return all
}

type scope struct {
	*Controller
	key    key
	kind   annotated.Kind
	object *unstructured.Unstructured
	// again is the delay before a pass without an event; 0 means never.
	again time.Duration
	// unknown is the reason why a value is unknown now, so that the object stays unchanged.
	unknown  error
	behind   []string
	author   user.Info
	verified bool
}

// reconcile reconciles one object. It returns the delay before the next pass; 0 waits for a change.
//
//  1. It forgets an object that is deleted or being deleted.
//  2. It skips an object that has not changed since the last pass.
//  3. It decides which annotation counts, and which controller handles it.
//  4. It resolves the template. While the result is unknown, the object stays unchanged.
//  5. It writes the image, then the status.
func (c *Controller) reconcile(ctx context.Context, k key) (time.Duration, error) {
	object, known := c.find(k)
	if !known {
		return retryFirst, nil
	}
	if object == nil || object.GetDeletionTimestamp() != nil {
		c.forget(k)
		return 0, nil
	}
	if c.isBehind(k, object) {
		return 0, nil // the watch will report the last write
	}
	v := &scope{Controller: c, key: k, kind: c.kinds[k.definition], object: object}
	mark := v.mark()
	if c.isSettled(k, mark) {
		return 0, nil
	}
	w := v.choose()
	if w.template == nil && !w.clears && len(w.refused) == 0 {
		c.forget(k)
		c.settle(k, mark, w)
		return 0, nil
	}
	var result imagetemplate.Result
	if w.template != nil {
		result = v.resolve(ctx, w.template)
		if errors.Is(v.unknown, errNoVersion) {
			return 0, nil // an event will report the object
		}
		if v.unknown != nil && annotated.HasAny(object, w.types) {
			return 0, v.unknown
		}
	} else {
		c.need(ctx, k, needs{})
	}
	if err := v.write(ctx, w, result); err != nil {
		return 0, err
	}
	w.result = result
	c.settle(k, v.mark(), w)
	return v.again, v.unknown
}

// isBehind reports whether the watched object is older than this controller's last write.
func (c *Controller) isBehind(k key, object *unstructured.Unstructured) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Contains(c.behind[k], object.GetResourceVersion())
}

func (s *scope) wrote(written *unstructured.Unstructured) {
	if written.GetResourceVersion() != s.object.GetResourceVersion() {
		s.behind = append(s.behind, s.object.GetResourceVersion())
	}
	s.object = written
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Controller.behind[s.key] = s.behind
}

// isSettled reports whether there is nothing to do: neither the object nor its needs have changed
// since the last pass.
func (c *Controller) isSettled(k key, mark string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	settled := !c.unsettled[k] && c.settled[k] == mark
	delete(c.unsettled, k)
	return settled
}

// settle records the state of an object after a pass.
func (c *Controller) settle(k key, mark string, w desired) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.settled[k] = mark
	switch {
	case w.template == nil && w.left:
		c.states[k] = stateLeft
	case w.template == nil:
		delete(c.states, k)
	case w.result.Image != "":
		c.states[k] = stateResolved
	default:
		c.states[k] = stateUnresolved
	}
}

// mark returns the parts of an object that decide the next action.
func (s *scope) mark() string {
	annotations := s.object.GetAnnotations()
	var own []any
	for _, types := range annotated.Annotations() {
		for _, one := range annotated.Conditions(s.object) {
			if condition, is := one.(map[string]any); is && (condition["type"] == types.Resolved || condition["type"] == types.Image) {
				own = append(own, fmt.Sprint(condition["type"], condition["status"], condition["reason"], condition["message"]))
			}
		}
	}
	content, err := json.Marshal([]any{
		s.object.GetUID(), annotations[annotated.OLMAnnotation], annotations[annotated.OwnAnnotation], annotations[extension.AuthorAnnotation],
		s.kind.Image(s.object), s.kind.Without(s.object), s.kind.LeftToOLM(s.object), len(own), fmt.Sprint(own...),
	})
	if err != nil {
		return "" // never settled
	}
	return string(content)
}

type desired struct {
	// template is the active template, or nil; annotation is its annotation, with these condition
	// types.
	template   *imagetemplate.Template
	annotation string
	types      imagetemplate.Types
	// left is true if OLM's own controller handles its annotation.
	left bool
	// refused is the template that is ignored because there are two.
	refused string
	// clears is true if there are conditions about removed annotations.
	clears bool
	result imagetemplate.Result
}

// choose decides which annotation counts. If both exist, OLM's annotation wins, so that two
// controllers do not fight about the image. If OLM's own controller handles that annotation,
// Penstock does not touch its fields.
func (s *scope) choose() desired {
	all := annotated.Annotations()
	olm, own := s.object.GetAnnotations()[annotated.OLMAnnotation], s.object.GetAnnotations()[annotated.OwnAnnotation]
	w := desired{left: s.kind.LeftToOLM(s.object)}
	switch {
	case olm != "" && !w.left:
		w.template, w.annotation = imagetemplate.Parse(olm), annotated.OLMAnnotation
	case olm == "" && own != "":
		w.template, w.annotation = imagetemplate.Parse(own), annotated.OwnAnnotation
	}
	if olm != "" && own != "" {
		w.refused = own
	}
	w.types = all[w.annotation]
	w.clears = len(s.outdated(w)) > 0
	return w
}

// outdated returns the types of conditions about removed annotations.
func (s *scope) outdated(w desired) []string {
	var types []string
	for name, one := range annotated.Annotations() {
		ours := name == annotated.OwnAnnotation || !w.left
		if s.object.GetAnnotations()[name] == "" && ours && annotated.HasAny(s.object, one) {
			types = append(types, one.Resolved, one.Image)
		}
	}
	return types
}

func (s *scope) resolve(ctx context.Context, template *imagetemplate.Template) imagetemplate.Result {
	n := needs{objects: map[imagetemplate.Object]lookup.Resource{}, missing: map[string]bool{}}
	for _, variable := range template.Variables() {
		if variable.Field == nil {
			n.version = true
			continue
		}
		if s.writtenBy() == nil {
			// Nothing is watched either: an action at each change would reveal that change.
			continue
		}
		resource, err := s.resourceOf(ctx, variable.Field.Object)
		missing, is := lookup.IsMissing(err)
		switch {
		case err == nil:
			n.objects[variable.Field.Object] = resource
		case is && missing.Kind:
			n.missing[variable.Field.Group] = true
		case !is:
			s.unknown = err
		}
	}
	// The watch starts first, so that later changes are seen.
	s.need(ctx, s.key, n)
	return template.Resolve(func(variable imagetemplate.Variable) string {
		if variable.Field == nil {
			values, known := s.version.values()
			if !known {
				s.unknown = errNoVersion
			}
			return values[variable.Kube]
		}
		return s.field(ctx, *variable.Field, n)
	})
}

// field returns the value of a field that the author of the template may read, else "". The author
// cannot distinguish a missing object, an empty field and a missing right.
func (s *scope) field(ctx context.Context, field imagetemplate.Field, n needs) string {
	resource, found := n.objects[field.Object]
	if !found {
		if n.missing[field.Group] {
			s.retryLater(field.Group)
		}
		return ""
	}
	allowed, err := s.Rights.May(ctx, s.writtenBy(), resource.Right(field.Object))
	if err != nil {
		s.unknown = err
		return ""
	}
	if !allowed {
		s.again = retryDenied
		return ""
	}
	value, err := s.Reader.Read(ctx, resource, field)
	if _, missing := lookup.IsMissing(err); err != nil && !missing {
		// The error of an aggregated API or a conversion webhook may quote the object.
		s.unknown = fmt.Errorf("reading %s: %w", field.Object, withheld(err))
	}
	if err != nil && s.isGone(ctx, field.Object) {
		s.retryLater(field.Group)
	}
	return value
}

// isGone reports whether a kind is no longer served. The object then waits for the kind.
func (s *scope) isGone(ctx context.Context, object imagetemplate.Object) bool {
	_, err := s.Reader.Find(ctx, object)
	missing, is := lookup.IsMissing(err)
	if !is || !missing.Kind {
		return false
	}
	s.mu.Lock()
	n := s.needs[s.key]
	s.mu.Unlock()
	// Other goroutines read the shared maps.
	n.objects, n.missing = maps.Clone(n.objects), maps.Clone(n.missing)
	delete(n.objects, object)
	n.missing[object.Group] = true
	s.need(ctx, s.key, n)
	return true
}

// retryLater schedules another attempt for a kind that the cluster does not serve.
func (s *scope) retryLater(group string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.again = retryDenied; s.Clock.Now().Before(s.announced[group]) {
		s.again = retryFirst
	}
}

// writtenBy returns the author of the templates, or nil if unknown; then an event reports that.
func (s *scope) writtenBy() user.Info {
	if s.verified {
		return s.author
	}
	s.verified = true
	stamp, err := s.kind.Subject().Verify(s.Key, s.object)
	if err != nil {
		object := s.object.GetName()
		if s.kind.Namespaced {
			object += " -n " + s.object.GetNamespace()
		}
		s.Events.Event(s.object, corev1.EventTypeWarning, "TemplateAuthorUnknown",
			fmt.Sprintf("the author of the template is not known, so the template reads no objects: %s; write it again, as it is: kubectl annotate --overwrite %s %s %s=%s", err, s.kind.Definition(), object, extension.AuthorAnnotation, author.Renew))
		return nil
	}
	s.author = stamp.Info()
	return s.author
}
