// Package targetclient is the client of a target cluster. The rollout sends all its requests about
// objects through it. It adds preconditions, and limits and counts requests.
package targetclient

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/redact"
)

// defaultLimit is the number of concurrent requests. Measurements show that eight workers of one
// chain hide a round trip of 5 ms; twice as many leave room for a second chain.
const defaultLimit = 16

// Options of a client.
type Options struct {
	// Config is the configuration of the target cluster; required. Its rate limits are ignored: if
	// the server is busy, all requests to that API group wait.
	Config *rest.Config
	// Limit is the number of concurrent requests; the default is 16.
	Limit int
	// Clock for pauses and for the cache of missing kinds; the default is the real clock.
	Clock clock.Clock
	// Counter counts the requests. Clients may share a counter; the default is a new counter.
	Counter *Counter
	// Redactor hides confidential values in errors and logs; the default hides the content of
	// Secrets.
	Redactor *redact.Redactor
}

// Client is the client of a target cluster. Several goroutines may use it.
type Client struct {
	kinds    *kinds
	metadata metadata.Interface
	dynamic  dynamic.Interface
	counter  *Counter
	limiter  *limiter
	redactor *redact.Redactor
	// postCreates is set if the server does not honour the precondition of a create-only apply.
	postCreates atomic.Bool
}

// New returns a client. It sends no request.
func New(o Options) (*Client, error) {
	if o.Config == nil {
		return nil, errors.New("opening a client of the target: Config is required")
	}
	if o.Limit <= 0 {
		o.Limit = defaultLimit
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Counter == nil {
		o.Counter = &Counter{}
	}
	c := &Client{counter: o.Counter, limiter: newLimiter(o.Limit, o.Clock), redactor: o.Redactor}

	config := rest.CopyConfig(o.Config)
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("opening a client of the target: %w", err)
	}
	c.limiter.root = strings.TrimSuffix(base.Path, "/")
	// A negative QPS disables client-go's own limiter, which would delay requests that the server
	// can serve.
	config.QPS, config.RateLimiter = -1, nil
	config.WarningHandler, config.WarningHandlerWithContext = nil, warnings{o.Redactor}
	// The counter is the innermost transport, so that it also counts retries.
	config.Wrap(c.counter.Wrap)
	config.Wrap(c.limiter.wrap)
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("opening a client of the target: %w", err)
	}
	if c.metadata, err = metadata.NewForConfigAndClient(config, client); err != nil {
		return nil, fmt.Errorf("opening a client of the target: %w", err)
	}
	if c.dynamic, err = dynamic.NewForConfigAndClient(config, client); err != nil {
		return nil, fmt.Errorf("opening a client of the target: %w", err)
	}
	served, err := discovery.NewDiscoveryClientForConfigAndClient(config, client)
	if err != nil {
		return nil, fmt.Errorf("opening a client of the target: %w", err)
	}
	c.kinds = newKinds(served, o.Clock)
	return c, nil
}

// Requests returns the number of sent requests, including retries and discovery.
func (c *Client) Requests() int64 { return c.counter.Total() }

// RequestsByMethod returns the number of sent requests by HTTP method.
func (c *Client) RequestsByMethod() map[string]int64 { return c.counter.ByMethod() }

// Mapping returns the resource and the scope of a kind, from the cache if possible. A kind that is
// not served causes a *KindUnknownError, which is cached for ten seconds, or until Discover or
// Invalidate.
func (c *Client) Mapping(ctx context.Context, gvk schema.GroupVersionKind) (*meta.RESTMapping, error) {
	return c.kinds.mapping(ctx, gvk)
}

// Discover is Mapping without the cache; it sends one request. It is for callers that have their
// own back-off.
func (c *Client) Discover(ctx context.Context, gvk schema.GroupVersionKind) (*meta.RESTMapping, error) {
	return c.kinds.discover(ctx, gvk)
}

// HasStatus reports whether a kind has the status subresource. It always asks the server, with one
// request: a definition may add or remove the subresource while it is served.
func (c *Client) HasStatus(ctx context.Context, gvk schema.GroupVersionKind) (bool, error) {
	return c.kinds.hasStatus(ctx, gvk)
}

// Invalidate empties the cache of Mapping. Call it when the served kinds may have changed.
func (c *Client) Invalidate() { c.kinds.invalidate() }

// resolve returns the resource of an object in the version of the reference. It checks that the
// object has a namespace exactly if its kind is namespaced.
func (c *Client) resolve(ctx context.Context, ref manifest.Ref) (schema.GroupVersionResource, error) {
	mapping, err := c.kinds.mapping(ctx, ref.GroupVersionKind())
	if err != nil {
		return schema.GroupVersionResource{}, err
	}
	if namespaced(mapping) == (ref.Namespace != "") {
		return mapping.Resource, nil
	}
	// A definition may have been recreated with another scope, so a cached scope must not cause a
	// refusal.
	if mapping, err = c.kinds.discover(ctx, ref.GroupVersionKind()); err != nil {
		return schema.GroupVersionResource{}, err
	}
	if namespaced(mapping) != (ref.Namespace != "") {
		return schema.GroupVersionResource{}, &ScopeError{ID: ref.ID, Namespaced: namespaced(mapping)}
	}
	return mapping.Resource, nil
}

func namespaced(mapping *meta.RESTMapping) bool {
	return mapping.Scope.Name() == meta.RESTScopeNameNamespace
}

// judge converts the answer "no such path" to a *KindUnknownError and removes the kind from the
// cache. It also recognises a *VersionGoneError. All other errors are returned unchanged.
func (c *Client) judge(gvk schema.GroupVersionKind, err error) error {
	if gone := versionGone(gvk.Group, err); gone != nil {
		return gone
	}
	if !isPathMissing(err) {
		return err
	}
	c.kinds.forget(gvk)
	return &KindUnknownError{Kind: gvk, cause: err}
}
