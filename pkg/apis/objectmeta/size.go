package objectmeta

import (
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Limits of metadata, beyond those that Kubernetes has for every kind: labels by name
// and value, annotations 256 KiB. In kube-apiserver the 1.5 MiB that etcd takes bound
// the rest. Our records are compressed, so we count ourselves.
const (
	// MaxBytes bounds metadata as a whole, in JSON.
	MaxBytes = 384 << 10
	// MaxManagedFieldsBytes bounds managedFields, in JSON. Field managers share it.
	MaxManagedFieldsBytes = 128 << 10
	// MaxLabels, MaxFinalizers and MaxOwners are how many of each there may be.
	MaxLabels     = 256
	MaxFinalizers = 64
	MaxOwners     = 64
	// The lengths of what an owner is named by, in bytes: those that names, group
	// versions and kinds can have, and more than any uid has.
	maxOwnerName       = 253
	maxOwnerKind       = 63
	maxOwnerAPIVersion = 253 + 1 + 63
	maxOwnerUID        = 128
)

// ValidateSize returns what is too much in metadata, times that cannot be stored included. Every other finding about
// it, such as of each finalizer, is looked for only when this
// finds nothing. Old is metadata as it is stored, nil for a new object: what is beyond
// a limit already may stay as it is, and shrink.
func ValidateSize(metadata, old *metav1.ObjectMeta, path *field.Path) field.ErrorList {
	if old == nil {
		old = &metav1.ObjectMeta{}
	}
	errs := validateTimes(metadata, path)
	errs = append(errs, validateCounts(metadata, old, path)...)
	errs = append(errs, validateOwners(metadata.OwnerReferences, old.OwnerReferences, path.Child("ownerReferences"))...)
	// Text takes at least its own bytes: what is far too large is not encoded to find out.
	if bytes := textBytes(metadata); len(errs) == 0 && bytes > MaxBytes && bytes > textBytes(old) {
		errs = append(errs, tooLong(path, "", bytes, MaxBytes))
	}
	if len(errs) > 0 {
		return errs
	}
	return validateBytes(metadata, old, path)
}

// Bytes is the size of metadata as it is stored, in JSON.
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

// validateOwners judges owners that are new.
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

// textBytes is at most what metadata has in JSON.
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
