package manifest

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// reservedPrefix is the prefix of the labels and annotations that Penstock writes on objects. With
// them, a manifest could pretend to belong to another chain, or to be applied already.
const reservedPrefix = "penstock.dev/"

// teardownAnnotation is the only annotation of Penstock that a manifest may have. It decides
// whether the object is deleted with its revision.
const teardownAnnotation = "penstock.dev/teardown-policy"

// refusedMetadata are the metadata fields that a manifest must not have, with the reason, in the
// order of reporting. Empty fields are dropped, because an empty value means the same as none.
var refusedMetadata = []struct{ field, reason string }{
	{"generateName", "an object of a revision has a fixed name: give metadata.name"},
	{"uid", "the server sets it: remove it (objects exported from a cluster have it)"},
	{"resourceVersion", "the server sets it: remove it (objects exported from a cluster have it)"},
	{"generation", "the server sets it: remove it (objects exported from a cluster have it)"},
	{"creationTimestamp", "the server sets it: remove it (objects exported from a cluster have it)"},
	{"deletionTimestamp", "the server sets it: remove it (objects exported from a cluster have it)"},
	{"deletionGracePeriodSeconds", "the server sets it: remove it (objects exported from a cluster have it)"},
	{"selfLink", "the server sets it: remove it (objects exported from a cluster have it)"},
	{"managedFields", "the server sets it: remove it (objects exported from a cluster have it)"},
	{"ownerReferences", "they name uids of one cluster, and garbage collection could delete the object while the revision still lists it: remove them"},
	{"finalizers", "the controller that acts on a finalizer adds it: one from a manifest would come back whenever it is removed, and the object could never be deleted"},
}

// Parse returns the identity and the canonical form of a JSON object, without a digest. It is for
// callers without the key of digests. It returns the same errors as Digester.FromJSON.
func Parse(data []byte) (Object, error) {
	object, err := decodeJSON(data)
	if err != nil {
		return Object{}, err
	}
	return Canonical(object)
}

// Canonical is Parse for a decoded object. It neither changes nor keeps the object.
//
// The canonical form omits empty fields that encoders of Go types write in metadata
// (creationTimestamp: null) and in status. It omits status for kinds of Kubernetes; for other
// kinds, status is content unless they have the subresource (see WithoutStatus). A null label or
// annotation becomes an empty string, as in API servers. All other fields stay as written,
// including stringData of a Secret.
func Canonical(object map[string]any) (Object, error) {
	var found findings
	ref := identify(object, &found)
	if err := found.err(); err != nil {
		return Object{}, err
	}
	canonical, err := appendCanonical(nil, normalised(object, ref.Group))
	if err != nil {
		return Object{}, fmt.Errorf("%s: %w", ref.ID, err)
	}
	return Object{Ref: ref, JSON: canonical}, nil
}

// identify returns the identity of the object, and adds all faults to found.
func identify(object map[string]any, found *findings) Ref {
	group, version := identifyGroupVersion(object, found)
	ref := Ref{ID: ID{Group: group, Kind: identifyKind(object, found)}, Version: version}

	metadata, ok := object["metadata"].(map[string]any)
	if !ok {
		if value, present := object["metadata"]; present && value != nil {
			found.add(field.ErrorTypeTypeInvalid, "is "+TypeName(value)+", want an object", "metadata")
		} else {
			found.add(field.ErrorTypeRequired, "is missing: every object needs a name", "metadata", "name")
		}
		return ref
	}
	ref.Name = identifyName(metadata, found)
	ref.Namespace = identifyNamespace(metadata, found)
	for _, refused := range refusedMetadata {
		if !isEmpty(metadata[refused.field]) {
			found.add(field.ErrorTypeForbidden, refused.reason, "metadata", refused.field)
		}
	}
	checkStrings(metadata, "labels", found)
	checkStrings(metadata, "annotations", found)
	return ref
}

func identifyGroupVersion(object map[string]any, found *findings) (group, version string) {
	apiVersion, ok := requiredString(object, found, "apiVersion", "apiVersion")
	if !ok {
		return "", ""
	}
	parsed, err := schema.ParseGroupVersion(apiVersion)
	malformed := err != nil ||
		parsed.String() != apiVersion ||
		len(validation.IsDNS1035Label(parsed.Version)) > 0 ||
		parsed.Group != "" && len(validation.IsDNS1123Subdomain(parsed.Group)) > 0
	if malformed {
		found.add(field.ErrorTypeInvalid, fmt.Sprintf("is %q, want <group>/<version>, or v1 for the core group", apiVersion), "apiVersion")
	}
	return parsed.Group, parsed.Version
}

func identifyKind(object map[string]any, found *findings) string {
	kind, ok := requiredString(object, found, "kind", "kind")
	if !ok {
		return ""
	}
	// CustomResourceDefinitions have the same rule for spec.names.kind.
	if len(validation.IsDNS1035Label(strings.ToLower(kind))) > 0 {
		found.add(field.ErrorTypeInvalid, fmt.Sprintf("is %q, want letters and digits, such as ConfigMap", kind), "kind")
	}
	if _, hasItems := object["items"]; hasItems && strings.HasSuffix(kind, "List") {
		found.add(field.ErrorTypeForbidden, fmt.Sprintf("a %s contains many objects: list each of them separately", kind), "items")
	}
	return kind
}

func identifyName(metadata map[string]any, found *findings) string {
	name, ok := requiredString(metadata, found, "name", "metadata", "name")
	if ok {
		checkPathSegment(name, found, "metadata", "name")
	}
	return name
}

func identifyNamespace(metadata map[string]any, found *findings) string {
	if isEmpty(metadata["namespace"]) {
		return ""
	}
	namespace, ok := requiredString(metadata, found, "namespace", "metadata", "namespace")
	if ok {
		checkPathSegment(namespace, found, "metadata", "namespace")
	}
	return namespace
}

// checkPathSegment refuses names that would change the path of a request. The API server checks the
// other rules of each kind.
func checkPathSegment(name string, found *findings, path ...string) {
	for _, problem := range content.IsPathSegmentName(name) {
		found.add(field.ErrorTypeInvalid, fmt.Sprintf("is %q: %s", name, problem), path...)
	}
}

// checkStrings reads the raw map, because unstructured.GetLabels and GetAnnotations return no
// entries if one value is not a string.
func checkStrings(metadata map[string]any, name string, found *findings) {
	value := metadata[name]
	if value == nil {
		return
	}
	entries, ok := value.(map[string]any)
	if !ok {
		found.add(field.ErrorTypeTypeInvalid, "is "+TypeName(value)+", want a map of strings", "metadata", name)
		return
	}
	for _, key := range slices.Sorted(maps.Keys(entries)) {
		if _, ok := entries[key].(string); !ok && entries[key] != nil {
			found.add(field.ErrorTypeTypeInvalid, notAString(entries[key]), "metadata", name, key)
		}
		if name == "annotations" && key == teardownAnnotation {
			if value := entries[key]; value != "Orphan" && value != "Delete" {
				found.add(field.ErrorTypeNotSupported, fmt.Sprintf("is %q, want Orphan or Delete", value), "metadata", name, key)
			}
			continue
		}
		if IsReserved(key) {
			found.add(field.ErrorTypeForbidden, reservedPrefix+" is reserved for what Penstock writes itself", "metadata", name, key)
		}
	}
}

// IsReserved reports whether only Penstock may write a label or annotation. Manifests must not have
// such keys.
func IsReserved(key string) bool { return strings.HasPrefix(key, reservedPrefix) }

func requiredString(object map[string]any, found *findings, key string, path ...string) (string, bool) {
	switch value := object[key].(type) {
	case string:
		if value != "" {
			return value, true
		}
		found.add(field.ErrorTypeRequired, "is empty", path...)
	case nil:
		found.add(field.ErrorTypeRequired, "is missing", path...)
	default:
		found.add(field.ErrorTypeTypeInvalid, notAString(value), path...)
	}
	return "", false
}

// normalised returns an object of a group without fields that a server sets. It shares all other
// fields with the original.
func normalised(object map[string]any, group string) map[string]any {
	out := maps.Clone(object)
	if isEmpty(object[statusField]) || IsOfKubernetes(group) {
		delete(out, statusField)
	}
	metadata := maps.Clone(object["metadata"].(map[string]any))
	for _, refused := range refusedMetadata {
		delete(metadata, refused.field)
	}
	for _, key := range []string{"namespace", "labels", "annotations"} {
		if value := metadata[key]; value == nil || value == "" {
			delete(metadata, key)
		}
	}
	for _, key := range []string{"labels", "annotations"} {
		metadata[key] = withoutNulls(metadata[key])
		if metadata[key] == nil {
			delete(metadata, key)
		}
	}
	out["metadata"] = metadata
	return out
}

// withoutNulls replaces null labels or annotations by empty strings.
func withoutNulls(value any) any {
	entries, ok := value.(map[string]any)
	if !ok {
		return value
	}
	cloned := false
	for key, one := range entries {
		if one != nil {
			continue
		}
		if !cloned {
			entries, cloned = maps.Clone(entries), true
		}
		entries[key] = ""
	}
	return entries
}

// isEmpty reports whether a value means the same as no value, for fields that encoders of Go types
// always write.
func isEmpty(value any) bool {
	switch v := value.(type) {
	case nil:
		return true
	case string:
		return v == ""
	case int64:
		return v == 0
	case []any:
		return len(v) == 0
	case map[string]any:
		return len(v) == 0
	default:
		return false
	}
}

// notAString returns advice about a value that is no string. Quotes help for values that YAML
// parses as another type: 1, true, no.
func notAString(value any) string {
	problem := "is " + TypeName(value) + ", want a string"
	switch value.(type) {
	case []any, map[string]any:
		return problem
	default:
		return problem + ": put it in quotes"
	}
}

// TypeName returns the JSON type of a decoded value.
func TypeName(value any) string {
	switch value.(type) {
	case nil:
		return "null"
	case bool:
		return "a boolean"
	case string:
		return "a string"
	case []any:
		return "a list"
	case map[string]any:
		return "an object"
	default:
		return "a number"
	}
}
