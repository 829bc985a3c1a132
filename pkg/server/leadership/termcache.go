package leadership

import (
	"context"
	"errors"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
)

// Revisions reads the revisions within this process. Lists and watches omit the objects of phases;
// Read and ReadAll return whole revisions.
type Revisions interface {
	toolscache.ListerWatcher
	// Read reads a revision by name. ReadAll reads the revisions that a selector matches. The
	// caller owns the results, which are at least as new as the delivered events.
	Read(ctx context.Context, name string, into *v1alpha1.ClusterExtensionRevision) error
	ReadAll(ctx context.Context, selector labels.Selector, into *v1alpha1.ClusterExtensionRevisionList) error
}

// newTermCache returns the constructor of a cache that ends with the context of its term. A
// manager's Start waits until the whole cache has synced. It spins when its context ends, and keeps
// waiting (controller-runtime v0.25, pkg/manager/runnable_group.go, Start). So without this cache,
// a term that ended while etcd did not answer would never end.
func newTermCache(term context.Context, revisions Revisions) ctrlcache.NewCacheFunc {
	return func(config *rest.Config, options ctrlcache.Options) (ctrlcache.Cache, error) {
		inner, err := ctrlcache.New(config, options)
		if err != nil {
			return nil, err
		}
		return &termCache{Cache: inner, revisions: revisions, ended: term.Done()}, nil
	}
}

// termCache reports to its manager, which asks first, that it has synced even after the term has
// ended. The manager then sees the end of the term itself. Later callers, such as the sources of
// controllers, get the true answer.
type termCache struct {
	ctrlcache.Cache
	revisions Revisions
	ended     <-chan struct{}
	asked     atomic.Bool
}

// Get implements client.Reader.
func (c *termCache) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	if revision, ok := object.(*v1alpha1.ClusterExtensionRevision); ok {
		return c.revisions.Read(ctx, key.Name, revision)
	}
	return c.Cache.Get(ctx, key, object, options...)
}

// List implements client.Reader. With UnsafeDisableDeepCopy, it returns the informer's revisions,
// which have no objects in their phases.
func (c *termCache) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	revisions, ok := list.(*v1alpha1.ClusterExtensionRevisionList)
	asked := (&client.ListOptions{}).ApplyOptions(options)
	if !ok || ptr.Deref(asked.UnsafeDisableDeepCopy, false) {
		return c.Cache.List(ctx, list, options...)
	}
	if asked.FieldSelector != nil || asked.Limit != 0 || asked.Continue != "" {
		return errors.New("listing revisions: only a selector of labels is supported")
	}
	return c.revisions.ReadAll(ctx, asked.LabelSelector, revisions)
}

// WaitForCacheSync implements cache.Informers.
func (c *termCache) WaitForCacheSync(ctx context.Context) bool {
	if c.asked.Swap(true) {
		return c.Cache.WaitForCacheSync(ctx)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-c.ended:
			cancel()
		case <-ctx.Done():
		}
	}()
	if c.Cache.WaitForCacheSync(ctx) {
		return true
	}
	select {
	case <-c.ended:
		return true
	default:
		return false
	}
}
