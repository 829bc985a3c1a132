// Package freeze reports whether the cluster is frozen: while the freeze ConfigMap exists, Penstock
// writes and deletes nothing in the cluster.
package freeze

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/event"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/objectwatch"
	"github.com/penstock-project/penstock/pkg/rollout"
	"github.com/penstock-project/penstock/pkg/text"
)

// ErrUnknown reports that the watch has no answer yet.
var ErrUnknown = errors.New("it is not known yet whether the cluster is frozen")

// Watch watches the ConfigMap whose existence freezes the cluster. Before the first answer, the
// state is unknown.
type Watch struct {
	name     string
	watching *objectwatch.Watch[*corev1.ConfigMap]
	changed  chan event.TypedGenericEvent[string]

	mu   sync.Mutex
	said rollout.Freeze
}

// New watches in the namespace of this process until ctx ends.
func New(ctx context.Context, client kubernetes.Interface, namespace string) *Watch {
	w := &Watch{name: namespace + "/" + olmv1alpha1.FreezeConfigMap, changed: make(chan event.TypedGenericEvent[string], 1)}
	w.watching = objectwatch.New(client, client.CoreV1().ConfigMaps(namespace), &corev1.ConfigMap{}, objectwatch.Options{
		Name: olmv1alpha1.FreezeConfigMap, Changed: w.look,
		Failed: func() {}, // the status of every revision shows the failure
	})
	go w.watching.Run(ctx)
	return w
}

func (w *Watch) look() {
	w.mu.Lock()
	defer w.mu.Unlock()
	found, err := w.Frozen()
	now := ptr.Deref(found, rollout.Freeze{})
	if err != nil || now == w.said {
		return
	}
	w.said = now
	select {
	case w.changed <- event.TypedGenericEvent[string]{}:
	default: // one pending element is enough
	}
}

// Frozen returns the reason of the freeze, or nil if there is none. ErrUnknown means that the
// answer is pending. Any other error explains why the answer is unknown. While the host cannot be
// reached, the last answer holds: nothing can be written then.
func (w *Watch) Frozen() (*rollout.Freeze, error) {
	found, err := w.watching.Get()
	switch {
	case errors.Is(err, objectwatch.ErrUnknown):
		return nil, ErrUnknown
	case err != nil:
		return nil, fmt.Errorf("finding out whether ConfigMap %s freezes the cluster: %w", w.name, err)
	case found == nil:
		return nil, nil
	}
	return &rollout.Freeze{
		Author: cmp.Or(line(found.Data["author"]), "somebody"),
		Reason: cmp.Or(line(found.Data["reason"]), "no reason is given"),
	}, nil
}

// Changed receives an element when the answer changes.
func (w *Watch) Changed() <-chan event.TypedGenericEvent[string] { return w.changed }

// Follow calls tell when the answer changes, until ctx ends. It consumes the elements of Changed.
func (w *Watch) Follow(ctx context.Context, tell func()) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.changed:
			tell()
		}
	}
}

// line returns text as one line of a bounded length.
func line(content string) string {
	const most = 200
	return text.Clip(strings.Join(strings.Fields(content), " "), most)
}
