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

// state is the state of the template of an object.
type state string

const (
	stateResolved   state = "Resolved"
	stateUnresolved state = "Unresolved"
	// stateLeft is for a template that OLM's own controller follows.
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

// scope is the state of one pass over one object.
type scope struct {
	*Controller
	key    key
	kind   annotated.Kind
	object *unstructured.Unstructured
	// again is the wait before a pass without an event; 0 is never.
	again time.Duration
	// unknown is set when a value is not known now, and what is there holds.
	unknown error
	// behind are the resource versions that were written over.
	behind []string
	// author caches who is known to have written the templates.
	author   user.Info
	verified bool
}

// reconcile brings one object up to date, and says when to look again; 0 is when something
// changes.
//
//  1. An object that is gone, or going, needs nothing any more.
//  2. One that is as it was left is left.
//  3. Which of its annotations is followed, and by whom.
//  4. The image of its template; while that is not known, all stays as it is.
//  5. The image, then the status.
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
		return 0, nil // the watch is about to bring it as it was left
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
			return 0, nil // when it comes, it is told
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

// isBehind reports whether this controller has written an object since it was as the watch has it.
func (c *Controller) isBehind(k key, object *unstructured.Unstructured) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Contains(c.behind[k], object.GetResourceVersion())
}

// wrote notes what an object is after a write.
func (s *scope) wrote(written *unstructured.Unstructured) {
	if written.GetResourceVersion() != s.object.GetResourceVersion() {
		s.behind = append(s.behind, s.object.GetResourceVersion())
	}
	s.object = written
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Controller.behind[s.key] = s.behind
}

// isSettled reports whether there is nothing to do: an object is as it was left, and so is what it
// needs.
func (c *Controller) isSettled(k key, mark string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	settled := !c.unsettled[k] && c.settled[k] == mark
	delete(c.unsettled, k)
	return settled
}

// settle notes how an object was left.
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

// mark is all of an object that decides what is done with it.
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
		return "" // it is looked at each time
	}
	return string(content)
}

// desired is the action for an object.
type desired struct {
	// template is the template that is followed, nil for none, by the annotation with these types.
	template   *imagetemplate.Template
	annotation string
	types      imagetemplate.Types
	// left is true if OLM's own controller follows its annotation.
	left bool
	// refused is the template that is not followed because there are two.
	refused string
	// clears is true if there are conditions about annotations that are gone.
	clears bool
	result imagetemplate.Result
}

// choose finds out which annotation is followed. With both, it is OLM's, so that nobody fights
// about the image. Where OLM's controller follows that one, nothing about it is touched.
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

// outdated are the types of conditions about annotations that are gone.
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

// resolve finds out what a template leads to.
func (s *scope) resolve(ctx context.Context, template *imagetemplate.Template) imagetemplate.Result {
	n := needs{objects: map[imagetemplate.Object]lookup.Resource{}, missing: map[string]bool{}}
	for _, variable := range template.Variables() {
		if variable.Field == nil {
			n.version = true
			continue
		}
		if s.writtenBy() == nil {
			// Nothing is watched, either: what is done at a change would tell that there was one.
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
	// Later changes are seen.
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

// field is the value of a field for the author of the template, "" when there is none for them:
// it is the same whether the object is not there, is empty, or is not to be read.
func (s *scope) field(ctx context.Context, field imagetemplate.Field, n needs) string {
	resource, found := n.objects[field.Object]
	if !found {
		if n.missing[field.Group] {
			s.lookAgainSoon(field.Group)
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
		// An aggregated API or a webhook of conversion may quote the object.
		s.unknown = fmt.Errorf("reading %s: %w", field.Object, withheld(err))
	}
	if err != nil && s.isGone(ctx, field.Object) {
		s.lookAgainSoon(field.Group)
	}
	return value
}

// isGone finds out whether a kind is not served any more: then it is waited for.
func (s *scope) isGone(ctx context.Context, object imagetemplate.Object) bool {
	_, err := s.Reader.Find(ctx, object)
	missing, is := lookup.IsMissing(err)
	if !is || !missing.Kind {
		return false
	}
	s.mu.Lock()
	n := s.needs[s.key]
	s.mu.Unlock()
	// Others read the maps that were given away.
	n.objects, n.missing = maps.Clone(n.objects), maps.Clone(n.missing)
	delete(n.objects, object)
	n.missing[object.Group] = true
	s.need(ctx, s.key, n)
	return true
}

// lookAgainSoon schedules another attempt for a kind that the cluster does not serve.
func (s *scope) lookAgainSoon(group string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.again = retryDenied; s.Clock.Now().Before(s.announced[group]) {
		s.again = retryFirst
	}
}

// writtenBy returns the author of the templates, nil when unknown: an event says so.
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
