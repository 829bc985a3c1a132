package observe

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/penstock-project/penstock/pkg/manifest"
)

// Options of a cache. All fields but Clock are required.
type Options struct {
	// Config of the target cluster. Its rate limits and timeout are ignored.
	Config *rest.Config
	// Mapping returns the resource of a kind. It should ask the server and not a cache
	// (targetclient.Client.Discover): the Cache has its own back-off, and must notice when a kind
	// appears.
	Mapping func(context.Context, schema.GroupVersionKind) (*meta.RESTMapping, error)
	// Names are the marks of our objects.
	Names Names
	// Notify is called after an event that an owner is interested in. It must return at once; it
	// may be called many times in a row for the same owner.
	Notify func(owner string)
	// Clock for back-off; the default is the real clock.
	Clock clock.WithDelayedExecution
}

// Cache holds the observed state of the objects that its owners want. It is safe for concurrent
// use.
//
// An owner is a user of the cache, with the name of its chain. Cache reports an event to the chain
// in the object's label, and to all owners that want the object.
type Cache struct {
	options Options
	api     api

	mu sync.RWMutex
	sources
	claims
	// starting are streams without a goroutine. wake notifies Run of them.
	starting []*stream
	wake     chan struct{}
	running  bool
	// cancels of the streams that have a goroutine.
	cancels map[*stream]context.CancelFunc
}

// New returns a cache. It sends no request before Run.
func New(o Options) (*Cache, error) {
	if o.Config == nil {
		return nil, errors.New("creating a cache: Config is required")
	}
	api, err := newClients(o.Config)
	if err != nil {
		return nil, fmt.Errorf("creating a cache: %w", err)
	}
	return newCache(o, api)
}

func newCache(o Options, api api) (*Cache, error) {
	switch {
	case o.Mapping == nil:
		return nil, errors.New("creating a cache: Mapping is required")
	case o.Notify == nil:
		return nil, errors.New("creating a cache: Notify is required")
	case o.Names.AppliedAnnotation == "" || o.Names.ManagerPrefix == "":
		return nil, errors.New("creating a cache: Names are required")
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	return &Cache{
		options: o,
		api:     api,
		sources: newSources(),
		claims:  newClaims(),
		wake:    make(chan struct{}, 1),
		cancels: map[*stream]context.CancelFunc{},
	}, nil
}

// Run runs the wanted watches until ctx ends, and returns nil when all have stopped. It can be
// called once.
func (c *Cache) Run(ctx context.Context) error {
	c.mu.Lock()
	if c.running {
		c.mu.Unlock()
		return errors.New("running a cache: it was run before")
	}
	c.running = true
	c.mu.Unlock()

	var streams sync.WaitGroup
	defer streams.Wait()
	for {
		c.launch(ctx, &streams)
		select {
		case <-ctx.Done():
			return nil
		case <-c.wake:
		}
	}
}

func (c *Cache) launch(ctx context.Context, streams *sync.WaitGroup) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.starting {
		running, cancel := context.WithCancel(ctx)
		c.cancels[s] = cancel
		streams.Go(func() {
			defer cancel()
			s.run(running)
		})
	}
	c.starting = nil
}

// Get returns the known state of an object. For an absent object, ResourceVersion is the version at
// which it is known to be absent. Without a healthy watch the presence is Unknown.
func (c *Cache) Get(id manifest.ID) (Observation, Presence) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	key := types.NamespacedName{Namespace: id.Namespace, Name: id.Name}
	showing, deciding := c.sources.of(id)
	var fresh, stale *Observation
	for _, src := range showing {
		switch a := src.current.see(key); {
		case a.object == nil:
		case a.healthy:
			fresh = newer(fresh, a.object)
		default:
			stale = newer(stale, a.object)
		}
	}
	if fresh != nil {
		return *fresh, Present
	}
	for _, src := range deciding {
		if a := src.current.see(key); a.healthy && a.object == nil {
			return Observation{ID: id, ResourceVersion: a.version, End: a.end}, Absent
		}
	}
	if stale != nil {
		// The object existed, and no watch has reported its deletion.
		last := *stale
		last.Stale = true
		return last, Present
	}
	return Observation{ID: id}, Unknown
}

// newer returns the observation with the higher resourceVersion, or the first if they are equal.
func newer(a, b *Observation) *Observation {
	if a == nil {
		return b
	}
	if order, err := resourceversion.CompareResourceVersion(a.ResourceVersion, b.ResourceVersion); err == nil && order < 0 {
		return b
	}
	return a
}

// Trouble returns the reason why an object is Unknown: its watch is refused, its kind is not
// served, or the server does not answer. It is nil while the first answer is pending.
func (c *Cache) Trouble(id manifest.ID) error {
	c.mu.RLock()
	defer c.mu.RUnlock()
	_, deciding := c.sources.of(id)
	var first error
	for _, src := range deciding {
		a := src.newest().see(types.NamespacedName{})
		if a.healthy {
			return nil
		}
		if first == nil && a.trouble != nil {
			first = fmt.Errorf("watching %s: %w", src.target, a.trouble)
		}
	}
	return first
}

// Refresh makes all watches in trouble retry within a second. The cache does so itself when a
// watched CustomResourceDefinition or APIService changes.
func (c *Cache) Refresh() {
	c.mu.RLock()
	defer c.mu.RUnlock()
	for _, src := range c.all {
		src.current.hurry()
		if src.next != nil {
			src.next.hurry()
		}
	}
}

// Stats are sizes, for metrics.
type Stats struct {
	// Watches is the number of wanted watches; Unhealthy is the number of outdated watches.
	Watches, Unhealthy int
	// Objects is the number of kept objects. An object that is watched by label and by name counts
	// twice.
	Objects int
}

// Stats returns the present sizes.
func (c *Cache) Stats() Stats {
	c.mu.RLock()
	defer c.mu.RUnlock()
	var stats Stats
	for _, src := range c.all {
		stats.Watches++
		stats.Objects += src.current.size()
		if !src.current.see(types.NamespacedName{}).healthy {
			stats.Unhealthy++
		}
	}
	return stats
}
