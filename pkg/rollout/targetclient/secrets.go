package targetclient

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Secrets lists metadata of the Secrets of a namespace that a label selector selects, with one
// request. It does not read their content.
func (c *Client) Secrets(ctx context.Context, namespace, selector string) ([]metav1.PartialObjectMetadata, error) {
	found, err := c.metadata.Resource(schema.GroupVersionResource{Version: "v1", Resource: "secrets"}).Namespace(namespace).
		List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return nil, fmt.Errorf("listing secrets: %w", err)
	}
	return found.Items, nil
}

// Secrets is Client.Secrets.
func (a Accounted) Secrets(ctx context.Context, namespace, selector string) ([]metav1.PartialObjectMetadata, error) {
	return a.Client.Secrets(Because(ctx, Judge), namespace, selector)
}
