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

// WhileDefined runs do while the cluster has the named CustomResourceDefinition. Without the
// definition, a watch of its objects would be retried forever. The context of do ends when the
// definition is deleted or replaced, because a new definition has other objects. WhileDefined calls
// changed with the first result before it calls do, and after each change.
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
