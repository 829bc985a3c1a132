package targetadmission

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"
	"k8s.io/utils/clock"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/objectwatch"
)

const admissionGroup = "admissionregistration.k8s.io"

// served asks which groups a cluster serves, and which kinds of admission, each in one
// version.
func served(client discovery.DiscoveryInterface) (groups map[string]bool, resources []schema.GroupVersionResource, err error) {
	all, err := client.ServerGroups()
	if err != nil {
		return nil, nil, fmt.Errorf("asking which groups are served: %w", err)
	}
	groups, found := map[string]bool{}, map[string]bool{}
	for _, group := range all.Groups {
		groups[group.Name] = true
		if group.Name != admissionGroup {
			continue
		}
		for _, version := range group.Versions { // the best first
			list, err := client.ServerResourcesForGroupVersion(version.GroupVersion)
			if err != nil && !apierrors.IsNotFound(err) {
				return nil, nil, fmt.Errorf("asking which kinds of admission are served: %w", err)
			}
			if err != nil {
				continue
			}
			for _, one := range list.APIResources {
				if isAdmission(one) && !found[one.Name] {
					found[one.Name] = true
					resources = append(resources, schema.GroupVersionResource{Group: admissionGroup, Version: version.Version, Resource: one.Name})
				}
			}
		}
	}
	return groups, resources, nil
}

// isAdmission is true for a kind of admission; a subresource has the kind of its object.
func isAdmission(resource metav1.APIResource) bool {
	if strings.Contains(resource.Name, "/") {
		return false
	}
	switch resource.Kind {
	case "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration", "ValidatingAdmissionPolicy", "MutatingAdmissionPolicy":
		return true
	}
	return false
}

// news wakes whoever waits when a watch has something to say.
type news struct {
	mu   sync.Mutex
	next chan struct{}
}

func (n *news) heard() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.next != nil {
		close(n.next)
		n.next = nil
	}
}

func (n *news) wait() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.next == nil {
		n.next = make(chan struct{})
	}
	return n.next
}

// health is whether what a watch knows can be believed. It is that of the last request: while a
// stream is open nothing is asked, and when it ends another one is opened at once.
type health struct {
	begun time.Time
	// failed is set while the last request has failed, and ok once one has not.
	failed, ok atomic.Bool
}

func (h *health) note(err error) {
	h.failed.Store(err != nil)
	if err == nil {
		h.ok.Store(true)
	}
}

// noting is a client that tells how its requests went.
type noting[L runtime.Object] struct {
	objectwatch.Client[L]
	*health
}

func (n noting[L]) List(ctx context.Context, options metav1.ListOptions) (L, error) {
	list, err := n.Client.List(ctx, options)
	n.note(err)
	return list, err
}

func (n noting[L]) Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	changes, err := n.Client.Watch(ctx, options)
	n.note(err)
	return changes, err
}

// trusted is a watch, with what it is worth.
type trusted[T objectwatch.Object] struct {
	*health
	watch *objectwatch.Watch[T]
}

// wait returns nil as soon as the watch has answered, and an error when it fails or does not
// in time.
func (w trusted[T]) wait(ctx context.Context, clock clock.PassiveClock, news *news) error {
	for {
		// Before the question, so that no answer is missed.
		next := news.wait()
		_, err := w.watch.List()
		switch {
		case w.failed.Load():
			return errors.New("the watch has failed")
		case err == nil || clock.Since(w.begun) > answerWithin:
			return err
		}
		select {
		case <-next:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// following is what is known of one kind of admission.
type following struct {
	trusted[*unstructured.Unstructured]
	// stale is set when something has changed since constraints were made.
	stale atomic.Bool

	mu          sync.Mutex
	constraints []constraint
	user        string
}

func follow(a *Admission, resource schema.GroupVersionResource) *following {
	f := &following{}
	f.health = &health{begun: a.clock.Now()}
	f.stale.Store(true)
	client := noting[*unstructured.UnstructuredList]{a.dynamic.Resource(resource), f.health}
	f.watch = objectwatch.New(a.dynamic, client, &unstructured.Unstructured{}, objectwatch.Options{
		Keep: keep,
		Changed: func() {
			f.stale.Store(true)
			a.news.heard()
		},
		Failed: a.news.heard,
	})
	return f
}

// concerns is true when one of them may have a say in an update of an object by a user.
func (f *following) concerns(id manifest.ID, resource schema.GroupVersionResource, user string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.stale.Swap(false) || f.user != user {
		found, err := f.watch.List()
		if err != nil {
			f.stale.Store(true)
			return true
		}
		f.user, f.constraints = user, nil
		request := requestBy(user)
		for _, one := range found {
			f.constraints = append(f.constraints, constraintsOf(one, request)...)
		}
	}
	for _, c := range f.constraints {
		if c.concerns(id, resource) {
			return true
		}
	}
	return false
}

// quotas are the namespaces that have a ResourceQuota.
type quotas struct {
	trusted[*metav1.PartialObjectMetadata]
}

func newQuotas(a *Admission) *quotas {
	q := &quotas{}
	q.health = &health{begun: a.clock.Now()}
	client := noting[*metav1.PartialObjectMetadataList]{a.metadata.Resource(schema.GroupVersionResource{Version: "v1", Resource: "resourcequotas"}), q.health}
	q.watch = objectwatch.New(a.metadata, client, &metav1.PartialObjectMetadata{}, objectwatch.Options{
		Keep: func(delivered any) (any, error) {
			if quota, is := delivered.(*metav1.PartialObjectMetadata); is {
				return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: quota.Namespace, Name: quota.Name, ResourceVersion: quota.ResourceVersion}}, nil
			}
			return delivered, nil
		},
		Changed: a.news.heard, Failed: a.news.heard,
	})
	return q
}

// limits is true when a namespace has a quota, or it is not known.
func (q *quotas) limits(namespace string) bool {
	all, err := q.watch.List()
	for _, quota := range all {
		if quota.Namespace == namespace {
			return true
		}
	}
	return err != nil
}
