package targetclient

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/penstock-project/penstock/pkg/manifest"
)

// present moves managedFields entries of unserved versions to the version of the request. No
// manager gets or loses a field. While such an entry exists, the API server refuses every apply to
// a custom resource, and ignores managedFields in a patch (apimachinery,
// FieldManager.UpdateNoErrors).
func (c *Client) present(ctx context.Context, ref manifest.Ref, entries []metav1.ManagedFieldsEntry) ([]metav1.ManagedFieldsEntry, error) {
	moved := make([]metav1.ManagedFieldsEntry, 0, len(entries))
	for _, entry := range entries {
		version, err := schema.ParseGroupVersion(entry.APIVersion)
		if err == nil && version.Group == ref.Group && version.Version != "" && version.Version != ref.Version {
			// The cache is not used here, because a wrong entry would stay wrong.
			_, err := c.kinds.discover(ctx, version.WithKind(ref.Kind))
			switch {
			case meta.IsNoMatchError(err):
				entry.APIVersion = ref.APIVersion()
			case err != nil:
				return nil, fmt.Errorf("finding out whether %s is served, which managedFields name: %w", entry.APIVersion, err)
			}
		}
		if moved, err = join(moved, entry); err != nil {
			return nil, err
		}
	}
	return moved, nil
}

// join adds an entry. It merges entries of the same manager, operation, version and subresource,
// because the server would keep only the last one.
func join(entries []metav1.ManagedFieldsEntry, entry metav1.ManagedFieldsEntry) ([]metav1.ManagedFieldsEntry, error) {
	at := slices.IndexFunc(entries, func(e metav1.ManagedFieldsEntry) bool {
		return e.Manager == entry.Manager && e.Operation == entry.Operation && e.APIVersion == entry.APIVersion && e.Subresource == entry.Subresource
	})
	if at < 0 {
		return append(entries, entry), nil
	}
	both := &fieldpath.Set{}
	for _, one := range []*metav1.FieldsV1{entries[at].FieldsV1, entry.FieldsV1} {
		if one == nil {
			continue
		}
		set := &fieldpath.Set{}
		if err := set.FromJSON(one.GetRawReader()); err != nil {
			return nil, fmt.Errorf("reading the fields of %s in managedFields: %w", entry.Manager, err)
		}
		both = both.Union(set)
	}
	raw, err := both.ToJSON()
	if err != nil {
		return nil, fmt.Errorf("joining the fields of %s in managedFields: %w", entry.Manager, err)
	}
	joined := &entries[at]
	joined.FieldsV1 = metav1.NewFieldsV1(string(raw))
	if joined.Time == nil || entry.Time != nil && joined.Time.Before(entry.Time) {
		joined.Time = entry.Time
	}
	return entries, nil
}
