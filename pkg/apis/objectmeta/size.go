package objectmeta

import (
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Limits of metadata, in addition to the limits that Kubernetes has for every kind: labels by name
// and value, and annotations by 256 KiB. In kube-apiserver, etcd's limit of 1.5 MiB bounds the
// rest. Our records are compressed, so that limit does not help.
const (
	// MaxBytes bounds the whole metadata, in JSON.
	MaxBytes = 384 << 10
	// MaxManagedFieldsBytes bounds managedFields, in JSON. All field managers share it.
	MaxManagedFieldsBytes = 128 << 10
	// MaxLabels, MaxFinalizers and MaxOwners bound the number of entries.
	MaxLabels     = 256
	MaxFinalizers = 64
	MaxOwners     = 64
	// Bounds of the fields of an owner reference, in bytes: the longest valid name, group version
	// and kind, and more than the longest uid.
	maxOwnerName       = 253
	maxOwnerKind       = 63
	maxOwnerAPIVersion = 253 + 1 + 63
	maxOwnerUID        = 128
)

// ValidateSize returns errors for metadata beyond the limits, and for times that cannot be stored.
// Callers make more detailed checks, such as of each finalizer, only if it returns no error. old is
// the stored metadata, and nil for a new object. Stored metadata that is already beyond a limit may
// stay, and may shrink.
func ValidateSize(metadata, old *metav1.ObjectMeta, path *field.Path) field.ErrorList {
	if old == nil {
		old = &metav1.ObjectMeta{}
	}
	errs := validateTimes(metadata, path)
	errs = append(errs, validateCounts(metadata, old, path)...)
	errs = append(errs, validateOwners(metadata.OwnerReferences, old.OwnerReferences, path.Child("ownerReferences"))...)
	// Text needs at least its own bytes in JSON. If these are too many already, metadata is not
	// encoded.
	if bytes := textBytes(metadata); len(errs) == 0 && bytes > MaxBytes && bytes > textBytes(old) {
		errs = append(errs, tooLong(path, "", bytes, MaxBytes))
	}
	if len(errs) > 0 {
		return errs
	}
	return validateBytes(metadata, old, path)
}

// Bytes returns the size of metadata in JSON, as it is stored.
func Bytes(metadata *metav1.ObjectMeta) (int, error) { return bytesOf(metadata) }

func validateCounts(metadata, old *metav1.ObjectMeta, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, count := range []struct {
		field             string
		found, was, limit int
	}{
		{"labels", len(metadata.Labels), len(old.Labels), MaxLabels},
		{"finalizers", len(metadata.Finalizers), len(old.Finalizers), MaxFinalizers},
		{"ownerReferences", len(metadata.OwnerReferences), len(old.OwnerReferences), MaxOwners},
	} {
		if count.found > count.limit && count.found > count.was {
			errs = append(errs, &field.Error{Type: field.ErrorTypeTooMany, Field: path.Child(count.field).String(), BadValue: count.found,
				Detail: fmt.Sprintf("must have at most %d items", count.limit)})
		}
	}
	return errs
}

func validateOwners(owners, old []metav1.OwnerReference, path *field.Path) field.ErrorList {
	known := make(map[metav1.OwnerReference]bool, len(old))
	for _, owner := range old {
		owner.Controller, owner.BlockOwnerDeletion = nil, nil
		known[owner] = true
	}
	var errs field.ErrorList
	for i, owner := range owners {
		owner.Controller, owner.BlockOwnerDeletion = nil, nil
		if known[owner] || len(errs) >= MaxOwners {
			continue
		}
		for _, text := range []struct {
			field        string
			bytes, limit int
		}{
			{"apiVersion", len(owner.APIVersion), maxOwnerAPIVersion},
			{"kind", len(owner.Kind), maxOwnerKind},
			{"name", len(owner.Name), maxOwnerName},
			{"uid", len(owner.UID), maxOwnerUID},
		} {
			if text.bytes > text.limit {
				errs = append(errs, tooLong(path.Index(i).Child(text.field), "", text.bytes, text.limit))
			}
		}
	}
	return errs
}

func validateBytes(metadata, old *metav1.ObjectMeta, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, part := range []struct {
		path       *field.Path
		found, was any
		limit      int
		hint       string
	}{
		{path.Child("managedFields"), metadata.ManagedFields, old.ManagedFields, MaxManagedFieldsBytes, ": too many field managers, or too many fields that they manage"},
		{path, metadata, old, MaxBytes, ""},
	} {
		bytes, err := bytesOf(part.found)
		if err != nil {
			return field.ErrorList{field.InternalError(part.path, fmt.Errorf("measuring it: %w", err))}
		}
		if bytes <= part.limit {
			continue
		}
		if was, err := bytesOf(part.was); err != nil || bytes > was {
			errs = append(errs, tooLong(part.path, part.hint, bytes, part.limit))
		}
	}
	return errs
}

func bytesOf(value any) (int, error) {
	encoded, err := json.Marshal(value)
	return len(encoded), err
}

// textBytes returns a lower bound of the size of metadata in JSON.
func textBytes(metadata *metav1.ObjectMeta) int {
	bytes := len(metadata.GenerateName) + len(metadata.GetSelfLink())
	for _, words := range []map[string]string{metadata.Labels, metadata.Annotations} {
		for name, value := range words {
			bytes += len(name) + len(value)
		}
	}
	for _, finalizer := range metadata.Finalizers {
		bytes += len(finalizer)
	}
	for i := range metadata.ManagedFields {
		if fields := metadata.ManagedFields[i].FieldsV1; fields != nil {
			bytes += len(fields.GetRawString())
		}
	}
	return bytes
}

func tooLong(path *field.Path, hint string, found, limit int) *field.Error {
	return &field.Error{Type: field.ErrorTypeTooLong, Field: path.String(), BadValue: field.OmitValueType{},
		Detail: fmt.Sprintf("has %d bytes, must have at most %d%s", found, limit, hint)}
}
