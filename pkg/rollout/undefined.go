package rollout

import (
	"context"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/penstock-project/penstock/pkg/manifest"
)

// maxKinds bounds a list of definitions; a cluster has hundreds.
const maxKinds = 10000

// undefined reports whether nothing in the cluster defines a kind: no CustomResourceDefinition, and
// no APIService of another server. Then the kind's objects do not exist any more, because the API
// server deletes them before their definition. Kinds that kube-apiserver serves itself have no
// definition and are never undefined.
func (s *setting) undefined(ctx context.Context, kind schema.GroupKind) (bool, error) {
	if !strings.Contains(kind.Group, ".") || strings.HasSuffix(kind.Group, ".k8s.io") {
		return false, nil
	}
	definition := manifest.Ref{ID: manifest.ID{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}, Version: "v1"}
	defined, err := s.anyOf(ctx, definition, kind.Group, func(live *unstructured.Unstructured) bool {
		name, _, _ := unstructured.NestedString(live.Object, "spec", "names", "kind")
		return name == kind.Kind
	})
	if err != nil || defined {
		return false, err
	}
	service := manifest.Ref{ID: manifest.ID{Group: "apiregistration.k8s.io", Kind: "APIService"}, Version: "v1"}
	served, err := s.anyOf(ctx, service, kind.Group, func(live *unstructured.Unstructured) bool {
		_, elsewhere, _ := unstructured.NestedMap(live.Object, "spec", "service")
		return elsewhere
	})
	return err == nil && !served, err
}

// anyOf reports whether an object whose name ends in the API group satisfies is.
func (s *setting) anyOf(ctx context.Context, kind manifest.Ref, group string, is func(*unstructured.Unstructured) bool) (bool, error) {
	found, err := s.engine.Reader.Instances(ctx, kind, maxKinds)
	if err != nil {
		return false, err
	}
	for _, one := range found {
		if !strings.HasSuffix(one.Name, "."+group) {
			continue
		}
		ref := kind
		ref.Name = one.Name
		live, err := s.engine.Reader.Read(ctx, ref)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return false, err
		}
		if is(live) {
			return true, nil
		}
	}
	return len(found) >= maxKinds, nil
}
