package revisionrollback

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/diff/words"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/registry/olm/access"
	"github.com/penstock-project/penstock/pkg/registry/olm/clusterextensionrevision"
)

// keepsStoredVersions refuses a rollback to a CustomResourceDefinition that lacks a version in
// which custom resources are stored. Such resources would become unreadable. The cluster's API
// server would refuse it too, but in the middle of the rollout.
//
// The name of the definition reveals content of the target. So it is shown only to callers who may
// get the target's manifests.
func (r *REST) keepsStoredVersions(ctx context.Context, caller *access.Caller, wanted rollback) error {
	definitions := changedDefinitions(wanted.newest, wanted.target)
	if len(definitions) == 0 {
		return nil
	}
	objects, err := r.deps.Revisions.Contents(ctx, wanted.target)
	if err != nil {
		return err
	}
	for _, object := range objects {
		if !definitions[object.Digest] {
			continue
		}
		stored, err := r.deps.StoredVersions.StoredVersions(ctx, wanted.target.Target(), object.Name)
		if err != nil {
			return apierrors.NewInternalError(fmt.Errorf("reading in which versions objects of %s are stored: %w", object.Name, err))
		}
		defined, err := definedVersions(object)
		if err != nil {
			return apierrors.NewInternalError(fmt.Errorf("reading the versions of %s: %w", object.ID, err))
		}
		lost := slices.DeleteFunc(slices.Clone(stored), func(version string) bool { return slices.Contains(defined, version) })
		if len(lost) == 0 {
			continue
		}
		left := slices.DeleteFunc(slices.Clone(stored), func(version string) bool { return slices.Contains(lost, version) })
		switch err := caller.NeedSubresource(ctx, wanted.target.Name, "manifests"); {
		case apierrors.IsForbidden(err):
			return conflict(wanted.target.Name, fmt.Sprintf("a CustomResourceDefinition of %s lacks a version in which objects are stored; which one is shown only to users who may get the manifests of that revision", wanted.target.Name))
		case err != nil:
			return err
		default:
			return conflict(wanted.target.Name, fmt.Sprintf("CustomResourceDefinition %s has objects stored as %s, and %s defines only %s: %s",
				object.Name, strings.Join(lost, ", "), wanted.target.Name, strings.Join(defined, ", "), words.StoredAdvice(object.Name, left)))
		}
	}
	return nil
}

// changedDefinitions returns the CustomResourceDefinitions of to that are missing or different in
// from.
func changedDefinitions(from, to *olm.ClusterExtensionRevision) map[manifest.Digest]bool {
	same := map[manifest.Digest]bool{}
	for _, ref := range clusterextensionrevision.Refs(from) {
		same[ref.Digest] = true
	}
	changed := map[manifest.Digest]bool{}
	for _, ref := range clusterextensionrevision.Refs(to) {
		if ref.IsDefinition() && !same[ref.Digest] {
			changed[ref.Digest] = true
		}
	}
	return changed
}

func definedVersions(definition manifest.Object) ([]string, error) {
	var read struct {
		Spec struct {
			Versions []struct {
				Name string `json:"name"`
			} `json:"versions"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(definition.JSON, &read); err != nil {
		return nil, err
	}
	var names []string
	for _, version := range read.Spec.Versions {
		names = append(names, version.Name)
	}
	return names, nil
}
