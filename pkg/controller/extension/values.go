package extension

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/penstock-project/penstock/pkg/authz"
	"github.com/penstock-project/penstock/pkg/controller/maker"
	"github.com/penstock-project/penstock/pkg/extension"
	"github.com/penstock-project/penstock/pkg/extension/author"
	"github.com/penstock-project/penstock/pkg/extension/status"
	"github.com/penstock-project/penstock/pkg/extension/values"
)

// collectEdits is how long edits of Secrets and ConfigMaps are collected, so that several edits
// make one revision.
const collectEdits = 10 * time.Second

// ValueObjects reads Secrets and ConfigMaps of the host, without impersonation.
type ValueObjects interface {
	// Data returns the data of an object and its resourceVersion, which is empty if the object does
	// not exist.
	Data(ctx context.Context, resource schema.GroupVersionResource, namespace, name string) (data map[string][]byte, version string, err error)
	// Follow calls a function with the resourceVersion of an object when it may have changed, until
	// ctx ends. It keeps no data.
	Follow(ctx context.Context, resource schema.GroupVersionResource, namespace, name string, changed func(version string))
}

type valueObject struct {
	resource        schema.GroupVersionResource
	namespace, name string
}

func valueObjectOf(namespace string, source values.Source) valueObject {
	resource := "configmaps"
	if source.Kind == values.Secret {
		resource = "secrets"
	}
	return valueObject{corev1.SchemeGroupVersion.WithResource(resource), namespace, source.Name}
}

// followed is a watched object. read and seen are its resourceVersions in the last pass and in the
// watch; nil before that.
type followed struct {
	stop       context.CancelFunc
	by         map[string]bool
	read, seen *string
}

// readValues reads the values that an extension takes from Secrets and ConfigMaps. If a step fails,
// the installed content stays:
//
//  1. It watches the objects before it reads them.
//  2. It collects edits for some seconds.
//  3. It checks that the author of the extension may get each object now.
//  4. It reads and merges the values.
func (s *scope) readValues(ctx context.Context, desired *desired) *maker.Outcome {
	text := s.extension.Annotations[extension.ValuesFromAnnotation]
	if text == "" {
		s.unfollow(s.Name, nil)
		return nil
	}
	invalid := func(err error) *maker.Outcome {
		return stop(status.InvalidConfiguration, fmt.Sprintf("annotation %s: %s", extension.ValuesFromAnnotation, err), "")
	}
	sources, err := values.Parse(text)
	if err != nil {
		return invalid(err)
	}
	s.follow(ctx, s.Name, desired.Namespace, sources)
	if s.collects(s.Name) {
		return awaited()
	}
	stamp, err := author.ClusterExtensions().Verify(s.Key, s.object)
	if err != nil {
		return unknownAuthor(s.Name, err)
	}
	read := map[valueObject]map[string][]byte{}
	contents := make([][]byte, len(sources))
	for i, source := range sources {
		object := valueObjectOf(desired.Namespace, source)
		data, known := read[object]
		if !known {
			asked := authz.On(object.resource, "get", object.namespace, object.name)
			may, err := s.Rights.May(ctx, stamp.Info(), asked)
			if err != nil {
				return retry(status.Failed, fmt.Errorf("finding out whether %s may %s: %w", stamp.User, asked, err))
			}
			if !may {
				return denied("%s wrote the extension and cannot %s, which annotation %s names", stamp.User, asked, extension.ValuesFromAnnotation)
			}
			var version string
			if data, version, err = s.Values.Data(ctx, object.resource, object.namespace, object.name); err != nil {
				return retry(status.Failed, fmt.Errorf("reading %s %s/%s: %w", source.Kind, object.namespace, object.name, err))
			}
			s.noteVersion(object, func(f *followed) { f.read = &version })
			if version == "" {
				return invalid(fmt.Errorf("%s %s/%s does not exist", source.Kind, object.namespace, object.name))
			}
			read[object] = data
		}
		if contents[i], known = data[source.Key]; !known {
			return invalid(fmt.Errorf("%s %s/%s has no key %s", source.Kind, object.namespace, object.name, source.Key))
		}
	}
	if desired.Values, err = values.Merge(sources, contents, desired.Config); err != nil {
		return invalid(err)
	}
	if desired.ValuesDigest, err = s.digestOf(desired.Values); err != nil {
		return retry(status.Failed, err)
	}
	return nil
}

// digestOf returns a digest of values that is keyed with the store's key, so that users cannot
// verify guessed values.
func (s *scope) digestOf(of *values.Values) (string, error) {
	ref, err := s.Digester.Ref(map[string]any{
		"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "values", "namespace": s.extension.Spec.Namespace},
		"data": map[string]any{values.DefaultKey: base64.StdEncoding.EncodeToString(of.JSON)},
	})
	if err != nil {
		return "", fmt.Errorf("making a digest of the values: %w", err)
	}
	return string(ref.Digest), nil
}

func (d *desired) masked(outcome *maker.Outcome) *maker.Outcome {
	if !d.Values.HasSecrets() {
		return outcome
	}
	hidden := *outcome
	hidden.Message, hidden.Why = d.Values.Mask(outcome.Message), d.Values.Mask(outcome.Why)
	if outcome.Err != nil {
		hidden.Err = errors.New(d.Values.Mask(outcome.Err.Error()))
	}
	return &hidden
}

// follow enqueues an extension when one of its value sources changes.
func (c *Controller) follow(ctx context.Context, name, namespace string, sources []values.Source) {
	var objects []valueObject
	for _, source := range sources {
		objects = append(objects, valueObjectOf(namespace, source))
	}
	c.unfollow(name, objects)
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, object := range objects {
		one := c.followed[object]
		if one == nil {
			watching, stop := context.WithCancel(ctx)
			one = &followed{stop: stop, by: map[string]bool{}}
			c.followed[object] = one
			c.following.Go(func() {
				c.Values.Follow(watching, object.resource, object.namespace, object.name, func(version string) {
					c.noteVersion(object, func(f *followed) { f.seen = &version })
				})
			})
		}
		one.by[name] = true
	}
}

// unfollow ends the watches of an extension's sources, except those to keep.
func (c *Controller) unfollow(name string, keep []valueObject) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for object, one := range c.followed {
		if !one.by[name] || slices.Contains(keep, object) {
			continue
		}
		delete(one.by, name)
		if len(one.by) == 0 {
			one.stop()
			delete(c.followed, object)
		}
	}
	if len(keep) == 0 {
		delete(c.edited, name)
	}
}

// noteVersion records a version of an object. If it differs from the version that passes have read,
// it enqueues their extensions.
func (c *Controller) noteVersion(object valueObject, note func(*followed)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	one := c.followed[object]
	if one == nil {
		return
	}
	note(one)
	if one.read == nil || one.seen == nil || *one.read == *one.seen {
		return
	}
	for name := range one.by {
		if c.edited[name].IsZero() {
			c.edited[name] = c.Clock.Now()
			c.queue.AddAfter(name, collectEdits)
		}
	}
}

// collects reports whether edits of an extension's sources are still collected. Another pass
// follows afterwards.
func (c *Controller) collects(name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	first := c.edited[name]
	if left := collectEdits - c.Clock.Since(first); !first.IsZero() && left > 0 {
		// The queue has dropped an earlier retry of the extension.
		c.queue.AddAfter(name, left)
		return true
	}
	delete(c.edited, name)
	return false
}
