package managedfields

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/penstock-project/penstock/pkg/manifest"
)

// injected returns the fields that a controller injects because an annotation of the manifest asks
// for it. The manifest has only initial values for them.
func injected(wanted map[string]any) []manifest.FieldPath {
	if !manifest.IsInjected(wanted) {
		return nil
	}
	field := func(name string) manifest.FieldStep { return manifest.FieldStep{Field: name} }
	return []manifest.FieldPath{
		{field("webhooks"), {}, field("clientConfig"), field("caBundle")},
		{field("spec"), field("conversion"), field("webhook"), field("clientConfig"), field("caBundle")},
		{field("spec"), field("caBundle")},
	}
}

// requestedStorage is the field of a PersistentVolumeClaim that can only grow.
const requestedStorage = "spec.resources.requests.storage"

// OnlyGrows reports whether an object has a field that can only grow. The values of such an object
// decide which fields are left to other managers (see LeftTo).
func OnlyGrows(id manifest.ID) bool { return id.Group == "" && id.Kind == "PersistentVolumeClaim" }

// LeftTo returns the fields of a manifest that are left to other managers: the newly yielded
// fields, and these together with recorded fields that other managers still have. live must be the
// complete object. A PersistentVolumeClaim cannot shrink, so the size of a larger claim stays. A
// smaller claim is enlarged, whoever set its size.
func LeftTo(wanted map[string]any, live *unstructured.Unstructured, manager string, policy []manifest.FieldPath, recorded []string) (Yields, []string) {
	entries := live.GetManagedFields()
	left := YieldingTo(wanted, live.Object, entries, manager, policy)
	still := StillYielded(recorded, entries, manager)
	if wanted["apiVersion"] == "v1" && wanted["kind"] == "PersistentVolumeClaim" {
		delete(left, requestedStorage)
		still = slices.DeleteFunc(slices.Clone(still), func(path string) bool { return path == requestedStorage })
		if isLarger(live.Object, wanted) {
			left[requestedStorage] = holderOf(entries, manager, requestedStorage)
		}
	}
	return left, left.And(still)
}

// isLarger reports whether the live claim requests more storage than the wanted claim.
func isLarger(live, wanted map[string]any) bool {
	size := func(claim map[string]any) (resource.Quantity, bool) {
		value, found, _ := unstructured.NestedFieldNoCopy(claim, "spec", "resources", "requests", "storage")
		if !found {
			return resource.Quantity{}, false
		}
		quantity, err := resource.ParseQuantity(text(value))
		return quantity, err == nil
	}
	have, known := size(live)
	want, asked := size(wanted)
	return known && asked && have.Cmp(want) > 0
}

// holderOf returns a manager, other than manager, that has the field.
func holderOf(entries []metav1.ManagedFieldsEntry, manager, field string) string {
	if entry, found := fieldsOfOthers(entries, manager)[field]; found {
		return entry.Manager
	}
	return "the manager that made it larger"
}
