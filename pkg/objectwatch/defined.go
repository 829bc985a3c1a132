package objectwatch

import (
	"context"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
)

// Definitions is the resource of CustomResourceDefinitions.
var Definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// WhileDefined runs do for as long as a cluster has a CustomResourceDefinition of a name:
// without one, a watch of its objects would be tried for ever. Its context ends when the
// definition goes, or when it is another one: that has other objects, if it has any. Changed
// is told whether there is a definition, once that is known and whenever there is another one
// or none any more, before do is run.
func WhileDefined(ctx context.Context, client metadata.Interface, name string, changed func(defined bool), do func(context.Context)) {
	var running sync.WaitGroup
	defer running.Wait()
	var mu sync.Mutex
	var stop context.CancelFunc
	var of string
	known := false
	var watching *Watch[*metav1.PartialObjectMetadata]
	look := func() {
		mu.Lock()
		defer mu.Unlock()
		found, err := watching.Get()
		if err != nil || ctx.Err() != nil {
			return
		}
		uid := ""
		if found != nil {
			uid = string(found.UID)
		}
		if known && uid == of {
			return
		}
		known = true
		if of = uid; stop != nil {
			stop()
			stop = nil
		}
		changed(uid != "")
		if uid != "" {
			var while context.Context
			while, stop = context.WithCancel(ctx)
			running.Go(func() { do(while) })
		}
	}
	watching = New(client, client.Resource(Definitions), &metav1.PartialObjectMetadata{}, Options{Name: name, Changed: look})
	watching.Run(ctx)
	mu.Lock()
	defer mu.Unlock()
	if stop != nil {
		stop()
	}
}
