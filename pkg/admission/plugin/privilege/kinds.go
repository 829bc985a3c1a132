package privilege

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"

	"github.com/penstock-project/penstock/pkg/authz"
	"github.com/penstock-project/penstock/pkg/manifest"
)

// anyResource is checked if the resource of a kind is unknown: only a right on all resources of the
// group certainly includes it.
const anyResource = "*"

// served is the resource of a kind and its scope.
type served struct {
	resource   string
	namespaced bool
}

// kinds caches the resources of kinds in the cluster, for one request.
type kinds struct {
	// asked are the group versions that were requested from the cluster.
	asked   map[schema.GroupVersion]bool
	cluster map[schema.GroupVersionKind]served
	// brought are the kinds that the revision itself defines.
	brought map[schema.GroupVersionKind]served
	// versions of the groups in the cluster; nil until they are needed.
	versions map[string][]schema.GroupVersion
	// others are the kinds of the cluster in any version; of several versions, the first by name.
	// Rights have no versions, and a stored object can have a version that is not served any more.
	others map[schema.GroupKind]schema.GroupVersionKind
}

func newKinds() *kinds {
	return &kinds{asked: map[schema.GroupVersion]bool{}, cluster: map[schema.GroupVersionKind]served{}, brought: map[schema.GroupVersionKind]served{},
		others: map[schema.GroupKind]schema.GroupVersionKind{}}
}

// unasked returns the group versions of objects that were not discovered yet.
func (k *kinds) unasked(objects []manifest.Ref) map[schema.GroupVersion]bool {
	versions := map[schema.GroupVersion]bool{}
	for _, object := range objects {
		if version := object.GroupVersionKind().GroupVersion(); !k.asked[version] {
			versions[version] = true
		}
	}
	return versions
}

// discover requests each group version of the objects once. If a group version is not served, it
// also requests the other versions of the group.
func (k *kinds) discover(ctx context.Context, cluster Kinds, objects []manifest.Ref) error {
	if err := k.fetch(ctx, cluster, k.unasked(objects)); err != nil {
		return err
	}
	other, err := k.otherVersions(ctx, cluster, objects)
	if err != nil {
		return err
	}
	return k.fetch(ctx, cluster, other)
}

// otherVersions returns the undiscovered versions of groups. It considers only objects whose own
// version is not served: another version of the group may serve their kind. Their number depends on
// the versions in the cluster, not on the objects.
func (k *kinds) otherVersions(ctx context.Context, cluster Kinds, objects []manifest.Ref) (map[schema.GroupVersion]bool, error) {
	other := map[schema.GroupVersion]bool{}
	for _, object := range objects {
		if _, known := k.find(object); known || object.Group == "" {
			continue
		}
		if k.versions == nil {
			list, err := cluster.ServerGroupsWithContext(ctx)
			if err != nil {
				return nil, fmt.Errorf("asking the cluster which API groups it has: %w", err)
			}
			k.versions = map[string][]schema.GroupVersion{}
			for _, group := range list.Groups {
				for _, version := range group.Versions {
					k.versions[group.Name] = append(k.versions[group.Name], schema.GroupVersion{Group: group.Name, Version: version.Version})
				}
			}
		}
		for _, version := range k.versions[object.Group] {
			if !k.asked[version] {
				other[version] = true
			}
		}
	}
	return other, nil
}

// fetch requests the kinds of group versions from the cluster.
func (k *kinds) fetch(ctx context.Context, cluster Kinds, versions map[schema.GroupVersion]bool) error {
	var mu sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(requestConcurrency)
	for version := range versions {
		k.asked[version] = true
		group.Go(func() error {
			list, err := cluster.ServerResourcesForGroupVersionWithContext(ctx, version.String())
			if apierrors.IsNotFound(err) {
				return nil
			}
			if err != nil {
				return fmt.Errorf("asking the cluster which kinds it has in %s: %w", version, err)
			}
			mu.Lock()
			defer mu.Unlock()
			k.add(version, list.APIResources)
			return nil
		})
	}
	return group.Wait()
}

func (k *kinds) add(version schema.GroupVersion, resources []metav1.APIResource) {
	for _, resource := range resources {
		// Subresources have kinds too, but are not objects.
		if strings.Contains(resource.Name, "/") {
			continue
		}
		kind := version.WithKind(resource.Kind)
		k.cluster[kind] = served{resource.Name, resource.Namespaced}
		if first, known := k.others[kind.GroupKind()]; !known || kind.Version < first.Version {
			k.others[kind.GroupKind()] = kind
		}
	}
}

// bring adds the kinds that a CustomResourceDefinition of the revision defines. find prefers the
// cluster's answer about a kind.
func (k *kinds) bring(definition manifest.Object) error {
	var read struct {
		Spec struct {
			Group string `json:"group"`
			Scope string `json:"scope"`
			Names struct {
				Kind   string `json:"kind"`
				Plural string `json:"plural"`
			} `json:"names"`
			Versions []struct {
				Name string `json:"name"`
			} `json:"versions"`
		} `json:"spec"`
	}
	if err := decode(definition, &read); err != nil {
		return err
	}
	for _, version := range read.Spec.Versions {
		kind := schema.GroupVersionKind{Group: read.Spec.Group, Version: version.Name, Kind: read.Spec.Names.Kind}
		// The cluster accepts a definition only under this name. So a right on the definition is a
		// right on this resource only.
		if definition.Name == read.Spec.Names.Plural+"."+read.Spec.Group {
			k.brought[kind] = served{read.Spec.Names.Plural, read.Spec.Scope == "Namespaced"}
		}
	}
	return nil
}

// find returns the resource of an object's kind. ok is false if neither the cluster nor the
// revision defines it.
func (k *kinds) find(object manifest.Ref) (found served, ok bool) {
	if found, ok = k.cluster[object.GroupVersionKind()]; ok {
		return found, true
	}
	if found, ok = k.brought[object.GroupVersionKind()]; ok {
		return found, true
	}
	found, ok = k.cluster[k.others[object.GroupKind()]]
	return found, ok
}

// right returns the right to use a verb on an object.
func (k *kinds) right(verb string, object manifest.Ref) authz.Right {
	needed := authz.Right{Verb: verb, Group: object.Group, Resource: anyResource, Namespace: object.Namespace, Name: object.Name}
	if found, ok := k.find(object); ok {
		needed.Resource = found.resource
		if !found.namespaced {
			needed.Namespace = ""
		}
	}
	return needed
}

// decode reads a manifest like API servers do: field names are case-sensitive. A decoder that takes
// "apigroups" for "apiGroups" would check other rules than the rules that take effect.
func decode(object manifest.Object, into any) error {
	if err := kjson.UnmarshalCaseSensitivePreserveInts(object.JSON, into); err != nil {
		return &unreadableError{object: object.ID, cause: err}
	}
	return nil
}

// unreadableError reports that a manifest does not match its kind. The cluster would refuse it too.
type unreadableError struct {
	object manifest.ID
	cause  error
}

func (e *unreadableError) Error() string { return fmt.Sprintf("reading %s: %s", e.object, e.cause) }

func (e *unreadableError) Unwrap() error { return e.cause }
