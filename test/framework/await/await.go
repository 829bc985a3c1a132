// Package await waits for objects by watching them.
package await

import (
	"context"
	"encoding/json"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"github.com/penstock-project/penstock/test/framework/poll"
)

// Selected watches the objects that a field selector selects, and returns when done is true for an
// object. done(nil) is called when no object exists, also after a deletion. Selected waits for
// poll.Patience at most.
func Selected(ctx context.Context, objects dynamic.ResourceInterface, selector fields.Selector, done func(*unstructured.Unstructured) (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, poll.Patience)
	defer cancel()
	source := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.FieldSelector = selector.String()
			return objects.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.FieldSelector = selector.String()
			return objects.Watch(ctx, options)
		},
	}
	none := func(store cache.Store) (bool, error) {
		if len(store.List()) > 0 {
			return false, nil
		}
		return done(nil)
	}
	_, err := watchtools.UntilWithSync(ctx, source, &unstructured.Unstructured{}, none, func(event watch.Event) (bool, error) {
		found, ok := event.Object.(*unstructured.Unstructured)
		if !ok || event.Type == watch.Deleted {
			found = nil
		}
		return done(found)
	})
	return err
}

// Object waits until done is true for an object, and returns the object. done(nil) is called for a
// missing object; then Object returns nil. After a timeout it ends the test and prints the last
// state.
func Object(t testing.TB, objects dynamic.ResourceInterface, name, what string, done func(*unstructured.Unstructured) (bool, error)) *unstructured.Unstructured {
	t.Helper()
	var last *unstructured.Unstructured
	err := Selected(t.Context(), objects, fields.OneTermEqualSelector(metav1.ObjectNameField, name), func(found *unstructured.Unstructured) (bool, error) {
		last = found
		return done(found)
	})
	if err != nil {
		t.Fatalf("%s: %s: %v; the last state is %s", name, what, err, Shown(last))
	}
	return last
}

// Shown returns an object as text for a message of a test, without managedFields.
func Shown(object *unstructured.Unstructured) string {
	if object == nil {
		return "not there"
	}
	object.SetManagedFields(nil)
	content, _ := json.MarshalIndent(object, "", " ") // the object was decoded from JSON
	return string(content)
}
