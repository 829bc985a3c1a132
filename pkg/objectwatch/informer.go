package objectwatch

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
)

// InformerOptions say what an informer keeps, and what happens when it fails.
type InformerOptions struct {
	// Keep returns what is kept of an object; nil keeps all.
	Keep cache.TransformFunc
	// Failed is called when a list or a watch fails. A nil Failed has client-go log it.
	Failed cache.WatchErrorHandlerWithContext
	// Indexers are for what is looked up by more than its key. They may be nil.
	Indexers cache.Indexers
}

// NewInformer returns an informer of all objects, for callers that need its
// store, or the object as it was before an event. Other callers use a Watch.
// It sends no request before it runs. Parameters are as in New.
func NewInformer[L runtime.Object](of any, client Client[L], example runtime.Object, o InformerOptions) cache.SharedIndexInformer {
	return newInformer(Source(of, client, ""), example, o)
}

func newInformer(from cache.ListerWatcher, example runtime.Object, o InformerOptions) cache.SharedIndexInformer {
	indexers := o.Indexers
	if indexers == nil {
		indexers = cache.Indexers{} // AddIndexers writes to it
	}
	informer := cache.NewSharedIndexInformer(from, example, 0, indexers)
	// An informer that has not run takes all of this. Nil is what it has anyway.
	_ = informer.SetTransform(o.Keep)
	_ = informer.SetWatchErrorHandlerWithContext(o.Failed)
	return informer
}

// NotServedYet is a Failed that says nothing: a kind is served some moments after its
// definition is there.
func NotServedYet(context.Context, *cache.Reflector, error) {}

// Follow runs informers until ctx ends, and calls synced when all of them know what there is.
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

// Find returns an object of an informer, the zero value when there is none. known is false while
// that is not known, as it is without an informer.
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

// All returns the objects of an informer, in no order. Without an informer there are none.
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

// Told returns the object that an informer tells a handler of. Of a deletion that the watch missed
// it is the last one that was known.
func Told[T any](event any) (object T, ok bool) {
	if last, missed := event.(cache.DeletedFinalStateUnknown); missed {
		event = last.Obj
	}
	object, ok = event.(T)
	return object, ok
}
