package helmapplier

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	rspb "helm.sh/helm/v4/pkg/release/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/utils/clock"

	"github.com/penstock-project/penstock/pkg/source/helm/chunked"
)

type store struct {
	secrets   corev1client.SecretInterface
	namespace string
	owner     *metav1.OwnerReference
	clock     clock.PassiveClock
}

// list returns the revisions of a release, newest first. It includes unreadable revisions: an index
// without its chunks does not count as absent. A failed request is an error.
func (s store) list(ctx context.Context, name string) ([]stored, error) {
	list, err := s.secrets.List(ctx, metav1.ListOptions{LabelSelector: chunked.Selector(name)})
	if err != nil {
		return nil, fmt.Errorf("reading Helm release %s: %w", name, err)
	}
	var found []stored
	for i := range list.Items {
		one, err := s.read(ctx, &list.Items[i])
		if errors.Is(err, chunked.ErrNoIndex) {
			continue
		}
		if err != nil {
			return nil, err
		}
		found = append(found, one)
	}
	slices.SortFunc(found, func(a, b stored) int { return cmp.Compare(b.Version, a.Version) })
	return found, nil
}

func (s store) read(ctx context.Context, index *corev1.Secret) (stored, error) {
	if index.Type != chunked.IndexType {
		return stored{}, chunked.ErrNoIndex
	}
	var unanswered error
	one := decode(index, func(name string) (*corev1.Secret, error) {
		chunk, err := s.secrets.Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		if err != nil {
			unanswered = fmt.Errorf("reading Secret %s/%s of a Helm release: %w", s.namespace, name, err)
		}
		return chunk, err
	})
	return one, unanswered
}

// create stores a new revision. The revision exists as soon as its index is written; a crash before
// the last chunk leaves it unreadable.
func (s store) create(ctx context.Context, release *rspb.Release) error {
	index, chunks, err := s.encode(release)
	if err != nil {
		return err
	}
	created, err := s.secrets.Create(ctx, index, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("storing revision %d of Helm release %s: %w", release.Version, release.Name, err)
	}
	return s.createChunks(ctx, created, chunks)
}

// update stores new content of a revision. Readers always get the old or the new content: chunks
// are named by their content, are created before the index names them, and are deleted after the
// index no longer names them.
func (s store) update(ctx context.Context, release *rspb.Release) error {
	index, chunks, err := s.encode(release)
	if err != nil {
		return err
	}
	before, err := s.secrets.Get(ctx, index.Name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("reading Secret %s/%s of a Helm release: %w", s.namespace, index.Name, err)
	}
	if err := s.createChunks(ctx, before, chunks); err != nil {
		return err
	}
	// A merge patch, because a user who rolls out objects may have no right to update.
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{
			"uid": before.UID, "resourceVersion": before.ResourceVersion,
			"labels": map[string]string{chunked.LabelStatus: release.Info.Status.String(), chunked.LabelModifiedAt: strconv.FormatInt(s.clock.Now().Unix(), 10)},
		},
		"data": index.Data,
	})
	if err != nil {
		return err
	}
	if _, err := s.secrets.Patch(ctx, index.Name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("storing revision %d of Helm release %s: %w", release.Version, release.Name, err)
	}
	keep, err := chunked.Names(index)
	if err != nil {
		return err
	}
	return s.deleteChunks(ctx, index.Name, keep)
}

// delete deletes a revision. It deletes the index first, so that no index names the remaining
// chunks.
func (s store) delete(ctx context.Context, key string) error {
	err := s.secrets.Delete(ctx, key, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("deleting Secret %s/%s of a Helm release: %w", s.namespace, key, err)
	}
	return s.deleteChunks(ctx, key, nil)
}

func (s store) encode(release *rspb.Release) (*corev1.Secret, []*corev1.Secret, error) {
	content, err := encode(release)
	if err != nil {
		return nil, nil, err
	}
	options := chunked.Options{
		Namespace: s.namespace, Name: release.Name, Version: release.Version, Status: release.Info.Status.String(), CreatedAt: s.clock.Now(),
	}
	if s.owner != nil {
		options.Owners = []metav1.OwnerReference{*s.owner}
	}
	return chunked.Encode(content, options)
}

func (s store) createChunks(ctx context.Context, index *corev1.Secret, chunks []*corev1.Secret) error {
	for _, chunk := range chunks {
		chunked.OwnedBy(chunk, index.Name, index.UID)
		_, err := s.secrets.Create(ctx, chunk, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("storing a part of Secret %s/%s: %w", s.namespace, index.Name, err)
		}
	}
	return nil
}

func (s store) deleteChunks(ctx context.Context, key string, keep []string) error {
	list, err := s.secrets.List(ctx, metav1.ListOptions{LabelSelector: chunked.ChunkSelector(key)})
	if err != nil {
		return fmt.Errorf("reading the parts of Secret %s/%s: %w", s.namespace, key, err)
	}
	for i := range list.Items {
		if slices.Contains(keep, list.Items[i].Name) {
			continue
		}
		if err := s.secrets.Delete(ctx, list.Items[i].Name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("deleting a part of Secret %s/%s: %w", s.namespace, key, err)
		}
	}
	return nil
}
