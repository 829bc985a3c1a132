package objectwatch

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
)

// InformerOptions configure an informer.
type InformerOptions struct {
	// Keep returns the part of an object to keep; nil keeps all.
	Keep cache.TransformFunc
	// Failed is called when a list or a watch fails. If Failed is nil, client-go logs the error.
	Failed cache.WatchErrorHandlerWithContext
	// Indexers are additional indexes; they may be nil.
	Indexers cache.Indexers
}

// NewInformer returns an informer of all objects, for callers that need its store or the old object
// of an event. Other callers use a Watch. The informer sends no request before it runs. See New for
// the parameters.
func NewInformer[L runtime.Object](of any, client Client[L], example runtime.Object, o InformerOptions) cache.SharedIndexInformer {
	return newInformer(Source(of, client, ""), example, o)
}

func newInformer(from cache.ListerWatcher, example runtime.Object, o InformerOptions) cache.SharedIndexInformer {
	indexers := o.Indexers
	if indexers == nil {
		indexers = cache.Indexers{} // AddIndexers writes to this map
	}
	informer := cache.NewSharedIndexInformer(from, example, 0, indexers)
	// These calls cannot fail before the informer runs. Nil is the default of each setting.
	_ = informer.SetTransform(o.Keep)
	_ = informer.SetWatchErrorHandlerWithContext(o.Failed)
	return informer
}

// NotServedYet is a Failed function that logs nothing: the API server serves a kind only some time
// after its definition was created.
func NotServedYet(context.Context, *cache.Reflector, error) {}

// Follow runs informers until ctx ends, and calls synced when all have synced.
func Follow(ctx context.Context, synced func(), informers ...cache.SharedIndexInformer) {
	var running sync.WaitGroup
	defer running.Wait()
	known := make([]cache.InformerSynced, len(informers))
	for i, informer := range informers {
		known[i] = informer.HasSynced
		running.Go(func() { informer.RunWithContext(ctx) })
	}
	if cache.WaitForCacheSync(ctx.Done(), known...) {
		synced()
	}
}

// Find returns an object of an informer, or the zero value if it does not exist. known is false for
// a nil informer, and before the informer has synced.
func Find[T any](informer cache.SharedIndexInformer, key string) (object T, known bool) {
	if informer == nil || !informer.HasSynced() {
		return object, false
	}
	found, exists, err := informer.GetStore().GetByKey(key)
	if err != nil || !exists {
		return object, err == nil
	}
	object, known = found.(T)
	return object, known
}

// All returns the objects of an informer, in no particular order. For a nil informer it returns
// none.
func All[T any](informer cache.SharedIndexInformer) []T {
	if informer == nil {
		return nil
	}
	var all []T
	for _, kept := range informer.GetStore().List() {
		if object, ok := kept.(T); ok {
			all = append(all, object)
		}
	}
	return all
}

// Told returns the object of an informer's event. For a missed deletion it is the last known
// object.
func Told[T any](event any) (object T, ok bool) {
	if last, missed := event.(cache.DeletedFinalStateUnknown); missed {
		event = last.Obj
	}
	object, ok = event.(T)
	return object, ok
}
