package targetclient

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/penstock-project/penstock/pkg/manifest"
)

// TryOptions of one dry-run.
type TryOptions struct {
	// FieldManager is the manager of the applied fields; required.
	FieldManager string
	// Precondition is the state for which the write was decided. The request fails with a 409 if
	// the object has changed. The zero value is for an object that does not exist, because a
	// dry-run stores nothing.
	Precondition
	// Anew requests a create, like ApplyOptions.Anew.
	Anew bool
	// Merge sends a JSON merge patch, like ApplyOptions.Merge.
	Merge bool
}

// Try sends an apply as a dry-run, and returns the complete resulting object. Like Apply, it takes
// fields from other managers. A comparison of managedFields before and after the dry-run shows
// their previous managers.
//
// It returns the same errors as Apply. The server requires the same rights as for a write: patch,
// and create if the object does not exist.
func (c *Client) Try(ctx context.Context, ref manifest.Ref, body []byte, options TryOptions) (*unstructured.Unstructured, error) {
	tried, err := c.try(ctx, ref, body, options)
	if err != nil {
		return nil, fmt.Errorf("trying to apply %s: %w", ref.ID, c.redacted(ctx, ref, body, err))
	}
	return tried, nil
}

func (c *Client) try(ctx context.Context, ref manifest.Ref, body []byte, options TryOptions) (*unstructured.Unstructured, error) {
	if options.FieldManager == "" {
		return nil, &UnguardedError{Missing: "the field manager"}
	}
	if options.Anew {
		_, err := c.post(ctx, ref, body, ApplyOptions{FieldManager: options.FieldManager, DryRun: true})
		return nil, err
	}
	guard := metadataPatch{}
	if options.Precondition != (Precondition{}) {
		if err := options.check(); err != nil {
			return nil, err
		}
		guard = metadataPatch{"uid": options.UID, "resourceVersion": options.ResourceVersion}
	}
	guarded, err := guard.onto(body)
	if err != nil {
		return nil, err
	}
	resource, err := c.resolve(ctx, ref)
	if err != nil {
		return nil, err
	}
	patchType, patchOptions := patchOf(options.FieldManager, options.Merge, true, true)
	tried, err := c.dynamic.Resource(resource).Namespace(ref.Namespace).Patch(about(ctx, ref), ref.Name, patchType, guarded, patchOptions)
	if err != nil {
		return nil, c.judge(ref.GroupVersionKind(), err)
	}
	return tried, nil
}
