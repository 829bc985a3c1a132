// Package objectwatch watches one object by its name, or all objects of a resource. It returns the
// present objects, or why they are unknown. "No such object" is an answer; a missing answer is
// none.
package objectwatch

import (
	"context"
	"errors"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// ErrUnknown reports that there is no answer yet.
var ErrUnknown = errors.New("there is no answer yet")

// Client lists and watches a resource, in a namespace or everywhere: the typed clients of
// client-go do, and its clients of metadata and of unstructured objects.
type Client[L runtime.Object] interface {
	List(ctx context.Context, options metav1.ListOptions) (L, error)
	Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error)
}

// Object is a watched object.
type Object interface {
	runtime.Object
	metav1.Object
	comparable
}

// Options configure a Watch. The callbacks must not block.
type Options struct {
	// Name is the name of the only object to watch; empty watches all.
	Name string
	// Selector is of the labels of the objects to watch. It is empty for all objects.
	Selector string
	// Keep returns the part of an object to keep; nil keeps all.
	Keep cache.TransformFunc
	// Changed is called when there is a first answer, and when there may be another one.
	Changed func()
	// Failed is called when a list or watch fails. Until the first answer, Get and List return that
	// error. With a nil Failed client-go logs it.
	Failed func()
}

// Watch holds the objects of a watch. While the cluster cannot be reached, it returns the last
// answer.
type Watch[T Object] struct {
	name     string
	informer cache.SharedIndexInformer
	changed  func()

	mu sync.Mutex
	// failure is the last one.
	failure error
}

// New returns a watch that sends no request before Run. of is the clientset of client, in which
// fakes declare their limits. example is any object of the type.
func New[T Object, L runtime.Object](of any, client Client[L], example T, o Options) *Watch[T] {
	w := &Watch[T]{name: o.Name, changed: func() {}}
	if o.Changed != nil {
		w.changed = o.Changed
	}
	w.informer = newInformer(source(of, client, o), example, InformerOptions{
		Keep: o.Keep,
		Failed: func(ctx context.Context, r *cache.Reflector, err error) {
			w.mu.Lock()
			w.failure = err
			w.mu.Unlock()
			if o.Failed == nil {
				cache.DefaultWatchErrorHandler(ctx, r, err)
				return
			}
			o.Failed()
		},
	})
	// An informer that has not run takes it.
	_, _ = w.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { w.changed() }, UpdateFunc: func(any, any) { w.changed() }, DeleteFunc: func(any) { w.changed() },
	})
	return w
}

// Source lists and watches through a client; parameters as in New.
func Source[L runtime.Object](of any, client Client[L], name string) cache.ListerWatcher {
	return source(of, client, Options{Name: name})
}

func source[L runtime.Object](of any, client Client[L], o Options) cache.ListerWatcher {
	only := func(options *metav1.ListOptions) {
		options.LabelSelector = o.Selector
		if o.Name != "" {
			options.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, o.Name).String()
		}
	}
	return cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			only(&options)
			return client.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			only(&options)
			return client.Watch(ctx, options)
		},
	}, of)
}

// Run watches until ctx ends.
func (w *Watch[T]) Run(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() { w.informer.RunWithContext(ctx) })
	// That there is nothing brings no event. WaitForCacheSync would look every 100 ms.
	select {
	case <-w.informer.HasSyncedChecker().Done():
		w.changed()
	case <-ctx.Done():
	}
}

// List returns all objects, in no order. After an error they are unknown.
func (w *Watch[T]) List() ([]T, error) {
	if !w.informer.HasSynced() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.failure != nil {
			return nil, w.failure
		}
		return nil, ErrUnknown
	}
	var found []T
	for _, kept := range w.informer.GetStore().List() {
		if object, ok := kept.(T); ok && (w.name == "" || object.GetName() == w.name) {
			found = append(found, object)
		}
	}
	return found, nil
}

// Get returns the watched object, nil if it does not exist. After an error it is unknown.
func (w *Watch[T]) Get() (T, error) {
	var none T
	found, err := w.List()
	if err != nil || len(found) == 0 {
		return none, err
	}
	return found[0], nil
}
