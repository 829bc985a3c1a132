// Package annotated describes the kinds whose image follows a template in an annotation:
// CatalogSources of OLM v0, and ClusterCatalogs. It is pure.
package annotated

import (
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/penstock-project/penstock/pkg/extension"
	"github.com/penstock-project/penstock/pkg/extension/author"
	"github.com/penstock-project/penstock/pkg/imagetemplate"
)

const (
	// OLMAnnotation is the annotation of OLM's design. OLM's own controller reads it, too, but
	// supports only the well-known variables.
	OLMAnnotation = "olm.catalogImageTemplate"
	// OwnAnnotation is Penstock's annotation, for clusters where OLM's controller reads
	// OLMAnnotation.
	OwnAnnotation = extension.AnnotationPrefix + "catalog-image-template"
)

// Annotations returns both annotations, each with its condition types.
func Annotations() map[string]imagetemplate.Types {
	return map[string]imagetemplate.Types{
		OLMAnnotation: {Resolved: "TemplatesHaveResolved", Image: "ResolvedImage"},
		OwnAnnotation: {Resolved: extension.AnnotationPrefix + "TemplatesHaveResolved", Image: extension.AnnotationPrefix + "ResolvedImage"},
	}
}

// Kind is a kind with such annotations.
type Kind struct {
	schema.GroupVersionKind
	Resource schema.GroupVersionResource
	// Namespaced is true if the kind is namespaced.
	Namespaced bool
	// image is the path of the image field. source is the path of the field that must equal
	// withImage.
	image, source []string
	withImage     string
}

// Kinds returns all kinds.
func Kinds() []Kind { return []Kind{CatalogSources(), ClusterCatalogs()} }

// CatalogSources returns the kind CatalogSource of OLM v0.
func CatalogSources() Kind {
	version := schema.GroupVersion{Group: "operators.coreos.com", Version: "v1alpha1"}
	return Kind{
		GroupVersionKind: version.WithKind("CatalogSource"), Resource: version.WithResource("catalogsources"), Namespaced: true,
		image: []string{"spec", "image"}, source: []string{"spec", "sourceType"}, withImage: "grpc",
	}
}

// ClusterCatalogs returns the kind ClusterCatalog of OLM v1.
func ClusterCatalogs() Kind {
	version := schema.GroupVersion{Group: "olm.operatorframework.io", Version: "v1"}
	return Kind{
		GroupVersionKind: version.WithKind("ClusterCatalog"), Resource: version.WithResource("clustercatalogs"),
		image: []string{"spec", "source", "image", "ref"}, source: []string{"spec", "source", "type"}, withImage: "Image",
	}
}

// Definition returns the name of the kind's CustomResourceDefinition.
func (k Kind) Definition() string { return k.Resource.GroupResource().String() }

// Subject returns the part of an object that its author signs: the templates.
func (k Kind) Subject() author.Subject {
	return author.Subject{Kind: k.GroupVersionKind, Annotation: func(key string) bool { return key == OLMAnnotation || key == OwnAnnotation }}
}

// Image returns the image of an object; empty if it has none.
func (k Kind) Image(object *unstructured.Unstructured) string {
	image, _, _ := unstructured.NestedString(object.Object, k.image...)
	return image
}

// Without returns the reason why an object has no image; empty for an object with an image.
func (k Kind) Without(object *unstructured.Unstructured) string {
	found, _, _ := unstructured.NestedString(object.Object, k.source...)
	if found == k.withImage {
		return ""
	}
	return fmt.Sprintf("%s is %q, and only %s has an image", strings.Join(k.source, "."), found, k.withImage)
}

// WithImage returns the object to apply to set an image. The apply fails if the object has changed
// since it was read.
func (k Kind) WithImage(object *unstructured.Unstructured, image string) *unstructured.Unstructured {
	applied := &unstructured.Unstructured{Object: map[string]any{}}
	applied.SetGroupVersionKind(k.GroupVersionKind)
	applied.SetName(object.GetName())
	applied.SetNamespace(object.GetNamespace())
	applied.SetUID(object.GetUID())
	applied.SetResourceVersion(object.GetResourceVersion())
	fields := applied.Object
	for _, name := range k.image[:len(k.image)-1] {
		inner := map[string]any{}
		fields[name] = inner
		fields = inner
	}
	fields[k.image[len(k.image)-1]] = image
	return applied
}

// Conditions returns the conditions in an object's status, unparsed.
func Conditions(object *unstructured.Unstructured) []any {
	all, _, _ := unstructured.NestedFieldNoCopy(object.Object, "status", "conditions")
	list, _ := all.([]any)
	return list
}

// HasAny reports whether an object has a condition of one of the types.
func HasAny(object *unstructured.Unstructured, types imagetemplate.Types) bool {
	_, found := imagetemplate.Without(Conditions(object), types.Resolved, types.Image)
	return found
}

// olmManager is the field manager of OLM's template controller: the name of its program.
const olmManager = "catalog"

// LeftToOLM reports whether OLM's controller follows OLMAnnotation on an object: it has written the
// image or one of the conditions.
func (k Kind) LeftToOLM(object *unstructured.Unstructured) bool {
	types := Annotations()[OLMAnnotation]
	for _, entry := range object.GetManagedFields() {
		if entry.Manager != olmManager || entry.FieldsV1 == nil {
			continue
		}
		var fields map[string]any
		if err := json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields); err != nil {
			continue
		}
		image := make([]string, len(k.image))
		for i, name := range k.image {
			image[i] = "f:" + name
		}
		for _, path := range [][]string{image, {"f:status", "f:conditions", condition(types.Resolved)}, {"f:status", "f:conditions", condition(types.Image)}} {
			if _, found, _ := unstructured.NestedFieldNoCopy(fields, path...); found {
				return true
			}
		}
	}
	return false
}

// condition returns the key of a condition in managedFields.
func condition(conditionType string) string { return `k:{"type":"` + conditionType + `"}` }
