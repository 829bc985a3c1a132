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

// An object is the same in every version of its API, and versions come and go while
// objects stay. So a request that is about an object as such (to read it, to delete it,
// to say whose its fields are) uses the version that it is asked for in while that is
// served, and any other served one of the kind afterwards. Only an apply needs the
// version of its manifest.

// versions are those that a group is served in, the preferred one first, and until when
// that is believed without asking.
type versions struct {
	names []string
	until time.Time
}

// Served returns the resource by which objects of a kind are reached now: in this version, or in
// another version of its group. It asks the server again about a kind that was recently not served.
// A kind without a served version is a *KindUnknownError, which requires a successful answer about
// every version.
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

// reach is mapping in any version.
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

// versionsOf returns the versions that a group is served in; a group that is not served
// has none.
func (k *kinds) versionsOf(ctx context.Context, group string) ([]string, error) {
	if group == "" {
		return nil, nil // the core group has one
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

// reach does something with an object under the resource that serves it now, in any
// version, and again in another one when that turns out to be gone. The reference that
// it gives has the version that is used.
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
		// A version that turns out to be gone is forgotten, so that another one is found.
		if last = c.judge(used.GroupVersionKind(), do(resource, used)); !meta.IsNoMatchError(last) {
			return last
		}
	}
}
