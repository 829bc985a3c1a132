package clusterextensionrevision

import (
	"context"
	"fmt"
	"slices"

	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
)

// Local gives revisions to the controllers of this process as clients see them, without encoding
// and without managedFields.
//
// Its lists and watches are for the controllers' cache. Returned objects share most memory with the
// server's watch cache, so that each revision is in memory once. Callers must not change them.
// Their phases have no objects, because the watch cache packs them. Read and ReadAll return whole
// revisions.
type Local struct{ revisions *REST }

// Local returns the revisions for controllers of this process.
func (r *REST) Local() Local { return Local{r} }

// An informer takes the form without a context, and uses the form with a context if it exists.
var (
	_ cache.ListerWatcher            = Local{}
	_ cache.ListerWatcherWithContext = Local{}
)

// List implements cache.Lister.
func (l Local) List(options metav1.ListOptions) (runtime.Object, error) {
	return l.ListWithContext(context.Background(), options)
}

// ListWithContext implements cache.ListerWithContext.
func (l Local) ListWithContext(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	internal, err := internalOptions(options)
	if err != nil {
		return nil, err
	}
	object, err := l.revisions.List(ctx, internal)
	if err != nil {
		return nil, err
	}
	list, ok := object.(*olm.ClusterExtensionRevisionList)
	if !ok {
		return nil, fmt.Errorf("listing revisions gave %T", object)
	}
	seen := &v1alpha1.ClusterExtensionRevisionList{ListMeta: list.ListMeta, Items: make([]v1alpha1.ClusterExtensionRevision, len(list.Items))}
	for i := range list.Items {
		if err := seenAs(unlisted(&list.Items[i]), &seen.Items[i]); err != nil {
			return nil, err
		}
	}
	return seen, nil
}

// Watch implements cache.Watcher.
func (l Local) Watch(options metav1.ListOptions) (watch.Interface, error) {
	return l.WatchWithContext(context.Background(), options)
}

// WatchWithContext implements cache.WatcherWithContext.
func (l Local) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	internal, err := internalOptions(options)
	if err != nil {
		return nil, err
	}
	events, err := l.revisions.Watch(ctx, internal)
	if err != nil {
		return nil, err
	}
	return watch.Filter(events, func(event watch.Event) (watch.Event, bool) {
		// If several clients watch, events contain a wrapper that is encoded once.
		if caching, ok := event.Object.(runtime.CacheableObject); ok {
			event.Object = caching.GetObject()
		}
		// An error is a Status, which stays unchanged.
		revision, ok := event.Object.(*olm.ClusterExtensionRevision)
		if !ok {
			return event, true
		}
		seen := &v1alpha1.ClusterExtensionRevision{}
		if err := seenAs(unlisted(l.cached(ctx, event.Type, revision)), seen); err != nil {
			return watch.Event{Type: watch.Error, Object: &metav1.Status{Status: metav1.StatusFailure, Message: err.Error()}}, true
		}
		event.Object = seen
		return event, true
	}), nil
}

// Read reads a revision from the watch cache into memory of the caller. The watch cache already has
// the revision of every sent event.
func (l Local) Read(ctx context.Context, name string, into *v1alpha1.ClusterExtensionRevision) error {
	object, err := l.revisions.Get(packed(ctx), name, &metav1.GetOptions{ResourceVersion: "0"})
	if err != nil {
		return err
	}
	revision, ok := object.(*olm.ClusterExtensionRevision)
	if !ok {
		return fmt.Errorf("reading revision %s gave %T", name, object)
	}
	return seenAs(revision.DeepCopy(), into)
}

// ReadAll reads the revisions that match a label selector from the watch cache, into memory of the
// caller.
func (l Local) ReadAll(ctx context.Context, selector labels.Selector, into *v1alpha1.ClusterExtensionRevisionList) error {
	object, err := l.revisions.List(ctx, &metainternalversion.ListOptions{LabelSelector: selector, ResourceVersion: "0"})
	if err != nil {
		return err
	}
	list, ok := object.(*olm.ClusterExtensionRevisionList)
	if !ok {
		return fmt.Errorf("listing revisions gave %T", object)
	}
	into.ListMeta = list.ListMeta
	into.Items = make([]v1alpha1.ClusterExtensionRevision, len(list.Items))
	for i := range list.Items {
		if err := seenAs(list.Items[i].DeepCopy(), &into.Items[i]); err != nil {
			return err
		}
	}
	return nil
}

// unlisted returns a revision whose phases have no objects.
func unlisted(revision *olm.ClusterExtensionRevision) *olm.ClusterExtensionRevision {
	without := *revision
	without.Spec.Phases = slices.Clone(revision.Spec.Phases)
	for i := range without.Spec.Phases {
		without.Spec.Phases[i].Objects, without.Spec.Phases[i].Packed = nil, nil
	}
	return &without
}

// cached returns the watch cache's revision in place of an event's own copy, to save memory. If the
// revision has changed since the event, it returns the copy.
func (l Local) cached(ctx context.Context, kind watch.EventType, revision *olm.ClusterExtensionRevision) *olm.ClusterExtensionRevision {
	if kind != watch.Added && kind != watch.Modified {
		return revision
	}
	// The cached object, not a copy.
	object, err := l.revisions.Get(packed(ctx), revision.Name, &metav1.GetOptions{ResourceVersion: "0"})
	held, ok := object.(*olm.ClusterExtensionRevision)
	if err != nil || !ok || held.ResourceVersion != revision.ResourceVersion || held.UID != revision.UID {
		return revision
	}
	return held
}

// internalOptions converts options as the server's handlers do for a store.
func internalOptions(options metav1.ListOptions) (*metainternalversion.ListOptions, error) {
	internal := &metainternalversion.ListOptions{}
	if err := metainternalversion.Convert_v1_ListOptions_To_internalversion_ListOptions(&options, internal, nil); err != nil {
		return nil, fmt.Errorf("options of a list: %w", err)
	}
	return internal, nil
}

// seenAs converts a revision to the form that clients see. Both share memory.
func seenAs(revision *olm.ClusterExtensionRevision, seen *v1alpha1.ClusterExtensionRevision) error {
	if err := v1alpha1.Convert_olm_ClusterExtensionRevision_To_v1alpha1_ClusterExtensionRevision(revision, seen, nil); err != nil {
		return fmt.Errorf("converting %s: %w", revision.Name, err)
	}
	seen.ManagedFields = nil
	return nil
}
