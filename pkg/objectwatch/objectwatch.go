// Package objectwatch watches one object by its name, or all objects of a resource. It returns the
// present objects, or the reason why they are unknown. A missing object and a missing answer are
// different results.
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

// ErrUnknown reports that the API server has not answered yet.
var ErrUnknown = errors.New("there is no answer yet")

// Client lists and watches a resource, in one namespace or in all. The typed, metadata and dynamic
// clients of client-go implement it.
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
	// Selector selects objects by their labels; empty watches all.
	Selector string
	// Keep returns the part of an object to keep; nil keeps all.
	Keep cache.TransformFunc
	// Changed is called on the first answer, and when the answer may have changed.
	Changed func()
	// Failed is called when a list or watch fails. Until the first answer, Get and List return that
	// error. If Failed is nil, client-go logs the error.
	Failed func()
}

// Watch holds the objects of a watch. While the cluster cannot be reached, it returns the last
// answer.
type Watch[T Object] struct {
	name     string
	informer cache.SharedIndexInformer
	changed  func()

	mu      sync.Mutex
	failure error
}

// New returns a watch that sends no request before Run. The parameter of is the clientset that
// contains client: a fake clientset declares its supported features. example is any object of the
// type.
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
	// AddEventHandler cannot fail before the informer runs.
	_, _ = w.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { w.changed() }, UpdateFunc: func(any, any) { w.changed() }, DeleteFunc: func(any) { w.changed() },
	})
	return w
}

// Source lists and watches through a client. See New for the parameters.
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
	// An empty list causes no event. WaitForCacheSync would poll every 100 ms.
	select {
	case <-w.informer.HasSyncedChecker().Done():
		w.changed()
	case <-ctx.Done():
	}
}

// List returns all objects, in no particular order. If it returns an error, the objects are
// unknown.
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

// Get returns the watched object, or nil if it does not exist. If it returns an error, the object
// is unknown.
func (w *Watch[T]) Get() (T, error) {
	var none T
	found, err := w.List()
	if err != nil || len(found) == 0 {
		return none, err
	}
	return found[0], nil
}
