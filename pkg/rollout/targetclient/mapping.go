package targetclient

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/discovery"
	"k8s.io/utils/clock"
)

const (
	// unknownFor is the lifetime of the cached answer that a kind is not served.
	unknownFor = 10 * time.Second
	// discoveryTimeout limits a request that several callers may wait for, and that does not end
	// with their contexts.
	discoveryTimeout = 30 * time.Second
)

// kinds caches the served kinds by group and version. One request fills all kinds of a group
// version, and dropping one group version does not affect other ones.
type kinds struct {
	discovery discovery.DiscoveryInterfaceWithContext
	clock     clock.Clock
	flights   singleflight.Group

	mu sync.RWMutex
	// served mappings by group version and kind.
	served map[schema.GroupVersion]map[string]*meta.RESTMapping
	// withStatus are the kinds that have the status subresource.
	withStatus map[schema.GroupVersion]sets.Set[string]
	// unknown kinds, and the end of their caching.
	unknown map[schema.GroupVersionKind]time.Time
	// groups are the versions of groups (see reach).
	groups map[string]versions
}

func newKinds(client discovery.DiscoveryInterfaceWithContext, clk clock.Clock) *kinds {
	k := &kinds{discovery: client, clock: clk}
	k.invalidate()
	return k
}

func (k *kinds) invalidate() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.served = map[schema.GroupVersion]map[string]*meta.RESTMapping{}
	k.withStatus = map[schema.GroupVersion]sets.Set[string]{}
	k.unknown = map[schema.GroupVersionKind]time.Time{}
	k.groups = map[string]versions{}
}

// forget records that a kind is not served. It drops all kinds of the group version, because its
// server has changed.
func (k *kinds) forget(gvk schema.GroupVersionKind) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.served, gvk.GroupVersion())
	k.unknown[gvk] = k.clock.Now().Add(unknownFor)
}

func (k *kinds) mapping(ctx context.Context, gvk schema.GroupVersionKind) (*meta.RESTMapping, error) {
	k.mu.RLock()
	mapping := k.served[gvk.GroupVersion()][gvk.Kind]
	until, unknown := k.unknown[gvk]
	k.mu.RUnlock()
	switch {
	case mapping != nil:
		return mapping, nil
	case unknown && k.clock.Now().Before(until):
		return nil, &KindUnknownError{Kind: gvk}
	default:
		return k.discover(ctx, gvk)
	}
}

// discover asks the server. Concurrent calls for one group version share a request.
func (k *kinds) discover(ctx context.Context, gvk schema.GroupVersionKind) (*meta.RESTMapping, error) {
	flight := k.flights.DoChan(gvk.GroupVersion().String(), func() (any, error) {
		return k.fetch(gvk.GroupVersion())
	})
	var answer singleflight.Result
	select {
	case answer = <-flight:
	case <-ctx.Done():
		return nil, fmt.Errorf("discovering %s: %w", gvk.GroupVersion(), ctx.Err())
	}
	if answer.Err != nil {
		return nil, &DiscoveryError{Version: gvk.GroupVersion(), cause: answer.Err}
	}
	if mapping := answer.Val.(map[string]*meta.RESTMapping)[gvk.Kind]; mapping != nil {
		return mapping, nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.unknown[gvk] = k.clock.Now().Add(unknownFor)
	return nil, &KindUnknownError{Kind: gvk}
}

func (k *kinds) hasStatus(ctx context.Context, gvk schema.GroupVersionKind) (bool, error) {
	if _, err := k.discover(ctx, gvk); err != nil {
		return false, err
	}
	k.mu.RLock()
	defer k.mu.RUnlock()
	return k.withStatus[gvk.GroupVersion()].Has(gvk.Kind), nil
}

// fetch reads the kinds of a group version and caches them. A group version that is not served has
// no kinds.
func (k *kinds) fetch(gv schema.GroupVersion) (map[string]*meta.RESTMapping, error) {
	ctx, cancel := context.WithTimeout(context.Background(), discoveryTimeout)
	defer cancel()
	list, err := k.discovery.ServerResourcesForGroupVersionWithContext(ctx, gv.String())
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, err
	}
	mappings, withStatus := map[string]*meta.RESTMapping{}, sets.New[string]()
	if err == nil {
		mappings, withStatus = mappingsOf(gv, list.APIResources), kindsWithStatus(list.APIResources)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.served[gv], k.withStatus[gv] = mappings, withStatus
	for kind := range mappings {
		delete(k.unknown, gv.WithKind(kind))
	}
	return mappings, nil
}

// mappingsOf returns mappings for resources without subresources, whose kinds are not objects.
func mappingsOf(gv schema.GroupVersion, resources []metav1.APIResource) map[string]*meta.RESTMapping {
	mappings := make(map[string]*meta.RESTMapping, len(resources))
	for _, resource := range resources {
		if strings.Contains(resource.Name, "/") {
			continue
		}
		scope := meta.RESTScopeRoot
		if resource.Namespaced {
			scope = meta.RESTScopeNamespace
		}
		mappings[resource.Kind] = &meta.RESTMapping{
			Resource:         gv.WithResource(resource.Name),
			GroupVersionKind: gv.WithKind(resource.Kind),
			Scope:            scope,
		}
	}
	return mappings
}

func kindsWithStatus(resources []metav1.APIResource) sets.Set[string] {
	kinds, found := map[string]string{}, sets.New[string]()
	for _, resource := range resources {
		kinds[resource.Name] = resource.Kind
	}
	for _, resource := range resources {
		if of, isStatus := strings.CutSuffix(resource.Name, "/status"); isStatus {
			found.Insert(kinds[of])
		}
	}
	return found
}
