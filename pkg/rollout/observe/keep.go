package observe

import (
	"fmt"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/penstock-project/penstock/pkg/rollout/probe"
)

// keeper reduces the objects of a watch to the kept parts.
type keeper struct {
	names Names
	kind  schema.GroupKind
	reads probe.Reads
	// managed is true if managedFields are kept too.
	managed bool
}

// keep is idempotent, as a reflector requires of a transformation.
func (k keeper) keep(delivered any) (*Observation, error) {
	switch live := delivered.(type) {
	case *Observation:
		return live, nil
	case *metav1.PartialObjectMetadata:
		return k.observe(live), nil
	case *unstructured.Unstructured:
		kept := k.observe(live)
		kept.Object, kept.Kept = trim(k.kind, k.reads, live), &k.reads
		return kept, nil
	default:
		return nil, fmt.Errorf("watching %s: got %T instead of an object", k.kind, delivered)
	}
}

// observe keeps the needed metadata of an object.
func (k keeper) observe(live metav1.Object) *Observation {
	kept := k.names.observe(k.kind, live)
	if k.managed {
		kept.Managed = append([]metav1.ManagedFieldsEntry{}, live.GetManagedFields()...)
	}
	return kept
}

// trim returns a new object with metadata and the fields that are read. It shares values with the
// live object, which it does not change.
func trim(kind schema.GroupKind, reads probe.Reads, live *unstructured.Unstructured) *unstructured.Unstructured {
	kept := make(map[string]any, len(live.Object))
	for key, value := range reads.Trim(live).Object {
		if !secretContent(kind, key) {
			kept[key] = value
		}
	}
	kept["metadata"] = trimMetadata(kept["metadata"])
	return &unstructured.Unstructured{Object: kept}
}

// secretContent reports fields that are never kept: the engine does not need them, and a heap dump
// must not contain the credentials of a cluster.
func secretContent(kind schema.GroupKind, field string) bool {
	return kind == schema.GroupKind{Kind: "Secret"} && (field == "data" || field == "stringData")
}

// trimMetadata omits large metadata: managedFields, which Entries summarises, and kubectl's
// annotation with the manifest, which repeats the content of a Secret.
func trimMetadata(metadata any) any {
	fields, ok := metadata.(map[string]any)
	if !ok {
		return metadata
	}
	kept := make(map[string]any, len(fields))
	for key, value := range fields {
		switch key {
		case "managedFields":
		case "annotations":
			kept[key] = without(value, corev1.LastAppliedConfigAnnotation)
		default:
			kept[key] = value
		}
	}
	return kept
}

func without(annotations any, unwanted string) any {
	all, ok := annotations.(map[string]any)
	if !ok || all[unwanted] == nil {
		return annotations
	}
	kept := make(map[string]any, len(all))
	for key, value := range all {
		if key != unwanted {
			kept[key] = value
		}
	}
	return kept
}

// metadataOnly reports whether the probes of a kind read only metadata, or may read nothing else.
func metadataOnly(kind schema.GroupKind, reads probe.Reads) bool {
	if reads.Whole || reads.Status {
		return false
	}
	for _, path := range reads.Fields {
		if len(path) > 0 && !secretContent(kind, path[0]) {
			return false
		}
	}
	return true
}

// covers reports whether the parts in a include all parts in b.
func covers(a, b probe.Reads) bool {
	if a.Whole || !b.Whole && !b.Status && len(b.Fields) == 0 {
		return true
	}
	return reflect.DeepEqual(a.Union(b), a.Union(probe.Reads{}))
}

// Shows reports whether the observation has all fields that a probe reads. It may have fewer fields
// while the watch for more fields is starting.
func (o *Observation) Shows(reads probe.Reads) bool {
	return o.Object != nil && (o.Kept == nil || covers(*o.Kept, reads))
}

// same reports whether no owner needs to be notified of a change between two observations. A new
// resourceVersion alone does not matter if the object has a generation and the fields that are read
// are unchanged.
func same(a, b *Observation) bool {
	if a == nil || b == nil {
		return a == b
	}
	if a.Generation == 0 && a.ResourceVersion != b.ResourceVersion {
		return false
	}
	x, y := *a, *b
	x.ResourceVersion, y.ResourceVersion = "", ""
	x.Object, y.Object = nil, nil
	// managedFields matter only for the adoption of an object.
	x.Managed, y.Managed = nil, nil
	return reflect.DeepEqual(x, y) && sameContent(a.Object, b.Object)
}

// sameContent compares kept objects without their resourceVersion.
func sameContent(a, b *unstructured.Unstructured) bool {
	if a == nil || b == nil {
		return a == b
	}
	return sameBut("metadata", a.Object, b.Object, func(a, b any) bool {
		x, isMap := a.(map[string]any)
		y, alsoMap := b.(map[string]any)
		if !isMap || !alsoMap {
			return reflect.DeepEqual(a, b)
		}
		return sameBut("resourceVersion", x, y, func(a, b any) bool { return true })
	})
}

// sameBut compares maps; it compares the values at one key with a function.
func sameBut(special string, a, b map[string]any, compare func(a, b any) bool) bool {
	if len(a) != len(b) {
		return false
	}
	for key, x := range a {
		y, found := b[key]
		if !found || key == special && !compare(x, y) || key != special && !reflect.DeepEqual(x, y) {
			return false
		}
	}
	return true
}
