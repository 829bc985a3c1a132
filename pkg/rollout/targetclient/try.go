package targetclient

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/penstock-project/penstock/pkg/manifest"
)

// TryOptions of one dry-run.
type TryOptions struct {
	// FieldManager that the fields would belong to; required.
	FieldManager string
	// Precondition is the object as it was judged; the request fails with a 409
	// when it is another one by now. The zero value is for an object that does
	// not exist: nothing is stored, so there is nothing to guard against.
	Precondition
	// Anew asks for a create, as that of ApplyOptions does.
	Anew bool
	// Merge sends a JSON merge patch, as that of ApplyOptions does.
	Merge bool
}

// Try asks the server what an apply would make of an object, and stores nothing.
// It returns the whole object as it would be. Fields of other managers are taken
// as Apply takes them: who had them is told by managedFields before and after.
//
// Errors are those of Apply. The server asks for the rights to patch and, where
// the object does not exist, to create it, as if it were no dry-run.
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
