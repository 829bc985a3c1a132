package targetclient

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// List lists objects of a resource that every cluster serves, with one request and without
// discovery. The options limit their number. An empty namespace means all namespaces.
func (c *Client) List(ctx context.Context, resource schema.GroupVersionResource, namespace string, options metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	found, err := c.dynamic.Resource(resource).Namespace(namespace).List(ctx, options)
	if err != nil {
		return nil, fmt.Errorf("listing %s: %w", resource.GroupResource(), err)
	}
	return found, nil
}

// List is Client.List.
func (a Accounted) List(ctx context.Context, resource schema.GroupVersionResource, namespace string, options metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	return a.Client.List(Because(ctx, Explain), resource, namespace, options)
}
