package leadership

import (
	"context"
	"sync/atomic"

	"k8s.io/client-go/rest"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
)

// newTermCache makes the cache of a term that ends when its context does. Until all of
// the cache is there, a manager's Start waits, without a look at its context but for
// spinning on it (controller-runtime v0.25, pkg/manager/runnable_group.go, Start). So a
// term that ended while etcd did not answer would never end.
func newTermCache(term context.Context) ctrlcache.NewCacheFunc {
	return func(config *rest.Config, options ctrlcache.Options) (ctrlcache.Cache, error) {
		inner, err := ctrlcache.New(config, options)
		if err != nil {
			return nil, err
		}
		return &termCache{Cache: inner, ended: term.Done()}, nil
	}
}

// termCache tells its manager that it is there also when the term has ended, so that the
// manager gets to see that. The manager is the first who asks. Whoever asks later, such
// as the sources of controllers, is told the truth.
type termCache struct {
	ctrlcache.Cache
	ended <-chan struct{}
	asked atomic.Bool
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
