package targetclient

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/penstock-project/penstock/pkg/manifest"
)

// An object is the same in every version of its API, and versions may change while objects stay. So
// requests other than an apply use the requested version if it is served, and otherwise any served
// version. An apply needs the version of its manifest.

// versions are the served versions of a group, the preferred version first, and the end of their
// caching.
type versions struct {
	names []string
	until time.Time
}

// Served returns a resource of a kind in a served version: this version, or another version of its
// group. If the cache says that the kind is not served, it asks the server. It returns a
// *KindUnknownError only after a successful answer about every version.
func (c *Client) Served(ctx context.Context, gvk schema.GroupVersionKind) (*meta.RESTMapping, error) {
	mapping, err := c.kinds.reach(ctx, gvk)
	if !meta.IsNoMatchError(err) {
		return mapping, err
	}
	if mapping, err = c.kinds.discover(ctx, gvk); !meta.IsNoMatchError(err) {
		return mapping, err
	}
	c.kinds.forgetGroup(gvk.Group)
	return c.kinds.reach(ctx, gvk)
}

// reach is mapping in any served version.
func (k *kinds) reach(ctx context.Context, gvk schema.GroupVersionKind) (*meta.RESTMapping, error) {
	mapping, unknown := k.mapping(ctx, gvk)
	if !meta.IsNoMatchError(unknown) {
		return mapping, unknown
	}
	names, err := k.versionsOf(ctx, gvk.Group)
	if err != nil {
		return nil, err
	}
	for _, version := range names {
		if version == gvk.Version {
			continue
		}
		if mapping, err := k.mapping(ctx, gvk.GroupKind().WithVersion(version)); !meta.IsNoMatchError(err) {
			return mapping, err
		}
	}
	return nil, unknown
}

// versionsOf returns the served versions of a group; none for a group that is not served.
func (k *kinds) versionsOf(ctx context.Context, group string) ([]string, error) {
	if group == "" {
		return nil, nil // the core group has one version
	}
	k.mu.RLock()
	known, asked := k.groups[group]
	k.mu.RUnlock()
	if asked && k.clock.Now().Before(known.until) {
		return known.names, nil
	}
	var found metav1.APIGroup
	err := k.discovery.RESTClient().Get().AbsPath("/apis", group).Timeout(discoveryTimeout).Do(ctx).Into(&found)
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, &DiscoveryError{Version: schema.GroupVersion{Group: group}, cause: err}
	}
	known = versions{until: k.clock.Now().Add(unknownFor)}
	if err == nil {
		known.names = []string{found.PreferredVersion.Version}
		for _, version := range found.Versions {
			if version.Version != found.PreferredVersion.Version {
				known.names = append(known.names, version.Version)
			}
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.groups[group] = known
	return known.names, nil
}

func (k *kinds) forgetGroup(group string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.groups, group)
}

// reach calls do with a resource that serves the object, in any served version. If that version
// turns out not to be served, it tries another version. The reference that do gets has the used
// version.
func (c *Client) reach(ctx context.Context, ref manifest.Ref, do func(schema.GroupVersionResource, manifest.Ref) error) error {
	tried := map[string]bool{}
	var last error
	for {
		mapping, err := c.kinds.reach(ctx, ref.GroupVersionKind())
		if err != nil {
			return err
		}
		used := ref
		used.Version = mapping.GroupVersionKind.Version
		if tried[used.Version] {
			return last
		}
		tried[used.Version] = true
		resource, err := c.resolve(ctx, used)
		if err != nil {
			return err
		}
		// A version that is not served is removed from the cache, so that the next iteration finds
		// another version.
		if last = c.judge(used.GroupVersionKind(), do(resource, used)); !meta.IsNoMatchError(last) {
			return last
		}
	}
}
