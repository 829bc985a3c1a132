package targetclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/penstock-project/penstock/pkg/manifest"
)

// absentVersion makes an apply create-only: no stored object has this version, so an existing
// object causes a conflict, and an absent object is not compared. This is undocumented behaviour of
// kube-apiserver's generic store (registry/generic/registry/store.go, Update), so SelfTest checks
// it.
const absentVersion = "1"

// ApplyOptions of one server-side apply.
type ApplyOptions struct {
	// FieldManager is the manager of the applied fields; required.
	FieldManager string
	// CreateOnly makes the request fail with a 409 when the object exists.
	CreateOnly bool
	// UID and ResourceVersion are the state for which the write was decided. The request fails with
	// a 409 (or 422) if the object has changed. Both are required unless CreateOnly is set.
	UID             types.UID
	ResourceVersion string
	// DryRun requests the result without storing it.
	DryRun bool
	// Unforced takes no field from another manager: instead, the request fails with a 409, whose
	// causes name the fields and their managers. It has no effect with CreateOnly, because an
	// absent object has no managers.
	Unforced bool
	// Anew requests a create by a POST, with CreateOnly and DryRun. The server then validates the
	// manifest even if an object of that name exists. AlreadyExists means that it would create the
	// object if it did not exist.
	Anew bool
	// Merge sends the body as a JSON merge patch, always with DryRun. It removes a field that is
	// null in the body, whichever manager has it.
	Merge bool
}

// Precondition is the state of an existing object for which a write was decided. Both fields are
// required.
type Precondition struct {
	UID             types.UID
	ResourceVersion string
}

// check refuses an incomplete precondition, which other objects could meet.
func (p Precondition) check() error {
	switch {
	case p.UID == "":
		return &UnguardedError{Missing: "uid"}
	case p.ResourceVersion == "":
		return &UnguardedError{Missing: "resourceVersion"}
	default:
		return nil
	}
}

// Apply sets the fields of body, a manifest in JSON, on the object. It takes them from other
// managers unless the options forbid that. It returns the new metadata, including managedFields.
//
// A conflict (apierrors.IsConflict) means that the object has changed. A kind that is not served
// causes a *KindUnknownError, a wrong namespace a *ScopeError, and a missing precondition an
// *UnguardedError. The last two errors are returned before a request.
func (c *Client) Apply(ctx context.Context, ref manifest.Ref, body []byte, options ApplyOptions) (*metav1.PartialObjectMetadata, error) {
	applied, err := c.apply(about(ctx, ref), ref, body, options)
	if err != nil {
		return nil, fmt.Errorf("applying %s: %w", ref.ID, c.redacted(ctx, ref, body, err))
	}
	return applied, nil
}

func (c *Client) apply(ctx context.Context, ref manifest.Ref, body []byte, options ApplyOptions) (*metav1.PartialObjectMetadata, error) {
	if options.FieldManager == "" {
		return nil, &UnguardedError{Missing: "the field manager"}
	}
	if options.CreateOnly {
		if c.postCreates.Load() || options.Anew {
			return c.post(ctx, ref, body, options)
		}
		applied, err := c.patch(ctx, ref, body, options, metadataPatch{"resourceVersion": absentVersion})
		if gone := (*VersionGoneError)(nil); errors.As(err, &gone) {
			// The object exists: an absent object has no managedFields that could cause this error.
			// The server merges before it compares the resourceVersion, so it returns this error
			// and not the conflict.
			return nil, apierrors.NewAlreadyExists(schema.GroupResource{Group: ref.Group, Resource: ref.Kind}, ref.Name)
		}
		return applied, err
	}
	if err := (Precondition{options.UID, options.ResourceVersion}).check(); err != nil {
		return nil, err
	}
	return c.patch(ctx, ref, body, options, metadataPatch{"uid": options.UID, "resourceVersion": options.ResourceVersion})
}

// patch sends a server-side apply with additional metadata.
func (c *Client) patch(ctx context.Context, ref manifest.Ref, body []byte, options ApplyOptions, guard metadataPatch) (*metav1.PartialObjectMetadata, error) {
	guarded, err := guard.onto(body)
	if err != nil {
		return nil, err
	}
	resource, err := c.resolve(ctx, ref)
	if err != nil {
		return nil, err
	}
	patchType, patchOptions := patchOf(options.FieldManager, options.Merge, !options.Unforced, options.DryRun)
	applied, err := c.metadata.Resource(resource).Namespace(ref.Namespace).Patch(ctx, ref.Name, patchType, guarded, patchOptions)
	if err != nil {
		return nil, c.judge(ref.GroupVersionKind(), err)
	}
	return named(ref, applied), nil
}

// patchOf returns the patch type and options of a server-side apply, or of the dry-run of a merge
// patch.
func patchOf(manager string, merge, force, dry bool) (types.PatchType, metav1.PatchOptions) {
	if merge {
		return types.MergePatchType, metav1.PatchOptions{FieldManager: manager, DryRun: dryRun(true)}
	}
	return types.ApplyPatchType, metav1.PatchOptions{FieldManager: manager, Force: ptr.To(force), DryRun: dryRun(dry)}
}

// Delete deletes an object in any served version, with background propagation. A missing object
// causes an apierrors NotFound, a changed object a conflict.
func (c *Client) Delete(ctx context.Context, ref manifest.Ref, precondition Precondition) error {
	if err := c.delete(about(ctx, ref), ref, precondition); err != nil {
		return fmt.Errorf("deleting %s: %w", ref.ID, c.redacted(ctx, ref, nil, err))
	}
	return nil
}

func (c *Client) delete(ctx context.Context, ref manifest.Ref, precondition Precondition) error {
	if err := precondition.check(); err != nil {
		return err
	}
	return c.reach(ctx, ref, func(resource schema.GroupVersionResource, _ manifest.Ref) error {
		return c.metadata.Resource(resource).Namespace(ref.Namespace).Delete(ctx, ref.Name, metav1.DeleteOptions{
			Preconditions:     &metav1.Preconditions{UID: &precondition.UID, ResourceVersion: &precondition.ResourceVersion},
			PropagationPolicy: ptr.To(metav1.DeletePropagationBackground),
		})
	})
}

// Marks are the marks of a chain on an object besides its manifest.
type Marks struct {
	// FieldManager is the manager of the manifest's fields.
	FieldManager string
	// Labels and Annotations by key.
	Labels, Annotations []string
	// NewOwner gets the fields; if nil, no manager has them.
	NewOwner *NewOwner
}

// Release removes marks from an object, with a read and a write, and keeps all other fields. The
// fields of the manifest then have the new owner or no manager, so that another writer's apply has
// no conflict. It returns the same errors as Delete.
func (c *Client) Release(ctx context.Context, ref manifest.Ref, precondition Precondition, marks Marks) error {
	err := c.unmark(about(ctx, ref), ref, precondition, marks, func(entries []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
		if marks.NewOwner != nil {
			return marks.NewOwner.passed(entries, marks.FieldManager)
		}
		return without(entries, marks.FieldManager)
	})
	if err != nil {
		return fmt.Errorf("releasing %s: %w", ref.ID, c.redacted(ctx, ref, nil, err))
	}
	return nil
}

// unmark removes marks from an object, and replaces its managedFields by the result of passed.
func (c *Client) unmark(ctx context.Context, ref manifest.Ref, precondition Precondition, marks Marks, passed func([]metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry) error {
	if err := precondition.check(); err != nil {
		return err
	}
	return c.reach(ctx, ref, func(resource schema.GroupVersionResource, used manifest.Ref) error {
		client := c.metadata.Resource(resource).Namespace(ref.Namespace)
		live, err := client.Get(ctx, ref.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if live.UID != precondition.UID || live.ResourceVersion != precondition.ResourceVersion {
			return apierrors.NewConflict(resource.GroupResource(), ref.Name, errors.New("it is not the object that was judged"))
		}
		fields, err := c.present(ctx, used, passed(live.ManagedFields))
		if err != nil {
			return err
		}
		// The server refuses a merge patch whose uid or resourceVersion differs from the object's.
		patch := metadataPatch{
			"uid":             precondition.UID,
			"resourceVersion": precondition.ResourceVersion,
			"labels":          nulls(marks.Labels),
			"annotations":     nulls(marks.Annotations),
			"managedFields":   fields,
		}
		if owner := marks.NewOwner; owner != nil && owner.Owner != nil {
			patch["ownerReferences"] = owner.owners(live.OwnerReferences)
		}
		body, err := patch.onto([]byte(`{}`))
		if err != nil {
			return err
		}
		_, err = client.Patch(ctx, ref.Name, types.MergePatchType, body, metav1.PatchOptions{})
		return err
	})
}

// without returns the entries of all other managers. If there are none, it returns one empty entry,
// because the server ignores an empty list.
func without(entries []metav1.ManagedFieldsEntry, manager string) []metav1.ManagedFieldsEntry {
	others := slices.DeleteFunc(slices.Clone(entries), func(e metav1.ManagedFieldsEntry) bool { return e.Manager == manager })
	if len(others) == 0 {
		return []metav1.ManagedFieldsEntry{{}}
	}
	return others
}

// nulls returns a merge patch that removes keys from a map.
func nulls(keys []string) map[string]any {
	patch := make(map[string]any, len(keys))
	for _, key := range keys {
		patch[key] = nil
	}
	return patch
}

type metadataPatch map[string]any

// onto returns a JSON object with the metadata set. All other content stays the same, except white
// space and the order of keys.
func (p metadataPatch) onto(body []byte) ([]byte, error) {
	var object, metadata map[string]json.RawMessage
	if err := json.Unmarshal(body, &object); err != nil {
		return nil, fmt.Errorf("reading the manifest: %w", err)
	}
	if raw, ok := object["metadata"]; ok {
		if err := json.Unmarshal(raw, &metadata); err != nil {
			return nil, fmt.Errorf("reading metadata of the manifest: %w", err)
		}
	}
	if metadata == nil {
		metadata = make(map[string]json.RawMessage, len(p))
	}
	if object == nil {
		object = make(map[string]json.RawMessage, 1)
	}
	for key, value := range p {
		raw, err := json.Marshal(value)
		if err != nil {
			return nil, fmt.Errorf("setting metadata.%s: %w", key, err)
		}
		metadata[key] = raw
	}
	raw, err := json.Marshal(metadata)
	if err != nil {
		return nil, fmt.Errorf("writing metadata of the manifest: %w", err)
	}
	object["metadata"] = raw
	if body, err = json.Marshal(object); err != nil {
		return nil, err
	}
	return manifest.ForApply(body), nil
}

func dryRun(on bool) []string {
	if on {
		return []string{metav1.DryRunAll}
	}
	return nil
}
