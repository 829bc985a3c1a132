package main

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/utils/ptr"

	"github.com/penstock-project/penstock/test/bench/rollout/order"
)

// loop is the minimum: one server-side apply per object, with encoded bodies and known kinds. It
// does not wait, and keeps no state.
type loop struct {
	client dynamic.Interface
	mapper meta.RESTMapper
}

func newLoop(config *rest.Config) (*loop, error) {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	served, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	groups, err := restmapper.GetAPIGroupResources(served)
	if err != nil {
		return nil, fmt.Errorf("asking which kinds are served: %w", err)
	}
	return &loop{client: client, mapper: restmapper.NewDiscoveryRESTMapper(groups)}, nil
}

type item struct {
	client dynamic.ResourceInterface
	name   string
	body   []byte
}

func (l *loop) prepare(o order.Order) (func(context.Context) error, error) {
	var items []item
	for _, release := range o.Releases {
		objects, err := read(release)
		if err != nil {
			return nil, err
		}
		for _, object := range objects {
			it, err := l.item(object)
			if err != nil {
				return nil, err
			}
			items = append(items, it)
		}
	}
	send := apply
	if o.Verb == order.Remove {
		send = remove
	}
	return func(ctx context.Context) error { return each(ctx, o.Workers, items, send) }, nil
}

func (l *loop) item(raw json.RawMessage) (item, error) {
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(raw); err != nil {
		return item{}, fmt.Errorf("reading an object: %w", err)
	}
	gvk := object.GroupVersionKind()
	mapping, err := l.mapper.RESTMapping(schema.GroupKind{Group: gvk.Group, Kind: gvk.Kind}, gvk.Version)
	if err != nil {
		return item{}, fmt.Errorf("finding the resource of %s: %w", object.GetName(), err)
	}
	var client dynamic.ResourceInterface = l.client.Resource(mapping.Resource)
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		client = l.client.Resource(mapping.Resource).Namespace(object.GetNamespace())
	}
	return item{client: client, name: object.GetName(), body: raw}, nil
}

func apply(ctx context.Context, it item) error {
	_, err := it.client.Patch(ctx, it.name, types.ApplyPatchType, it.body, metav1.PatchOptions{FieldManager: "loop", Force: ptr.To(true)})
	return err
}

func remove(ctx context.Context, it item) error {
	err := it.client.Delete(ctx, it.name, metav1.DeleteOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
