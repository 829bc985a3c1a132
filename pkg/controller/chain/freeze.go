package chain

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	v1 "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/controller/bychain"
	"github.com/penstock-project/penstock/pkg/rollout"
	"github.com/penstock-project/penstock/pkg/text"
)

// Freezes tells whether the cluster is frozen: then nothing is written to it, not even
// what tears down.
type Freezes interface {
	// Frozen returns why, nil for not frozen. errFreezeUnknown means that the answer
	// is on its way; any other error is why there is none.
	Frozen() (*rollout.Freeze, error)
	// Changed has an element when the answer is another one.
	Changed() <-chan event.TypedGenericEvent[string]
}

// errFreezeUnknown says that it cannot be told yet.
var errFreezeUnknown = errors.New("whether the cluster is frozen is not known yet")

// FreezeWatch watches the ConfigMap whose existence freezes the cluster. That nothing
// of it has been seen is no answer.
type FreezeWatch struct {
	name     string
	informer cache.SharedIndexInformer
	changed  chan event.TypedGenericEvent[string]

	mu sync.Mutex
	// trouble is why the ConfigMap cannot be watched.
	trouble error
}

var _ Freezes = &FreezeWatch{}

// NewFreezeWatch watches in the namespace of this process until the context ends.
func NewFreezeWatch(ctx context.Context, client kubernetes.Interface, namespace string) *FreezeWatch {
	one := func(options *metav1.ListOptions) {
		options.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, olmv1alpha1.FreezeConfigMap).String()
	}
	w := &FreezeWatch{
		name:     namespace + "/" + olmv1alpha1.FreezeConfigMap,
		informer: v1.NewFilteredConfigMapInformer(client, namespace, 0, cache.Indexers{}, one),
		changed:  make(chan event.TypedGenericEvent[string], 1),
	}
	notify := func(any) {
		select {
		case w.changed <- event.TypedGenericEvent[string]{}:
		default: // one that has not been taken yet stands for this one too
		}
	}
	// An informer that has not run takes any handler.
	_, _ = w.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: notify, UpdateFunc: func(_, now any) { notify(now) }, DeleteFunc: notify,
	})
	_ = w.informer.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.trouble = err
	})
	go w.informer.RunWithContext(ctx)
	return w
}

// Frozen implements Freezes. Once it was answered, the last answer holds while the
// host cannot be reached: nothing can be written then anyway.
func (w *FreezeWatch) Frozen() (*rollout.Freeze, error) {
	if !w.informer.HasSynced() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.trouble != nil {
			return nil, fmt.Errorf("looking whether ConfigMap %s freezes the cluster: %w", w.name, w.trouble)
		}
		return nil, errFreezeUnknown
	}
	for _, object := range w.informer.GetStore().List() {
		if found, ok := object.(*corev1.ConfigMap); ok && found.Name == olmv1alpha1.FreezeConfigMap {
			return &rollout.Freeze{
				Author: cmp.Or(line(found.Data["author"]), "somebody"),
				Reason: cmp.Or(line(found.Data["reason"]), "no reason is given"),
			}, nil
		}
	}
	return nil, nil
}

// Changed implements Freezes.
func (w *FreezeWatch) Changed() <-chan event.TypedGenericEvent[string] { return w.changed }

// line is text in one line of a bounded length.
func line(content string) string {
	const most = 200
	return text.Clip(strings.Join(strings.Fields(content), " "), most)
}

// everyChain asks for a pass over all chains.
func (r *reconciler) everyChain(ctx context.Context, _ string) []reconcile.Request {
	var all olmv1alpha1.ClusterExtensionRevisionList
	if err := r.Client.List(ctx, &all); err != nil {
		return nil // the client reads a cache, which has synced
	}
	known := map[string]bool{}
	var requests []reconcile.Request
	for i := range all.Items {
		for _, request := range bychain.Requests(ctx, &all.Items[i]) {
			if !known[request.Name] {
				known[request.Name] = true
				requests = append(requests, request)
			}
		}
	}
	return requests
}
