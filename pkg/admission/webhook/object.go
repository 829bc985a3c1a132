package webhook

import (
	"bytes"
	"encoding/json"
	"fmt"
)

const (
	// maxMap bounds labels and annotations, in bytes of JSON. The host allows 256 KiB of
	// annotations. Escaped, they may be six times as long.
	maxMap = 2 << 20
	// maxEntries bounds the entries of managedFields and ownerReferences, because a few bytes in
	// JSON need many in memory.
	maxEntries = 5000
)

// Object is the part of an object that a Judge sees: its metadata.
type Object struct {
	Metadata Metadata `json:"metadata"`
}

// Metadata is the metadata of an object, as sent.
type Metadata struct {
	Labels Labels `json:"labels"`
	// Annotations are raw, so that a value that is not a string does not count as absent.
	Annotations       Annotations `json:"annotations"`
	DeletionTimestamp *string     `json:"deletionTimestamp"`
	ManagedFields     Managers    `json:"managedFields"`
	OwnerReferences   Owners      `json:"ownerReferences"`
}

// Labels of an object.
type Labels map[string]string

// UnmarshalJSON implements json.Unmarshaler.
func (l *Labels) UnmarshalJSON(data []byte) error {
	if len(data) > maxMap {
		return fmt.Errorf("labels of %d bytes, at most %d are read", len(data), maxMap)
	}
	return json.Unmarshal(data, (*map[string]string)(l))
}

// Annotations of an object.
type Annotations map[string]json.RawMessage

// UnmarshalJSON implements json.Unmarshaler.
func (a *Annotations) UnmarshalJSON(data []byte) error {
	if len(data) > maxMap {
		return fmt.Errorf("annotations of %d bytes, at most %d are read", len(data), maxMap)
	}
	return json.Unmarshal(data, (*map[string]json.RawMessage)(a))
}

// Manager is one entry of managedFields.
type Manager struct {
	Manager   string `json:"manager"`
	Operation string `json:"operation"`
}

// Managers are the field managers of an object.
type Managers []Manager

// UnmarshalJSON implements json.Unmarshaler.
func (m *Managers) UnmarshalJSON(data []byte) (err error) {
	*m, err = list[Manager](data, "managedFields")
	return err
}

// Owner is an owner reference of an object.
type Owner struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Name       string `json:"name"`
	UID        string `json:"uid"`
}

// Owners of an object.
type Owners []Owner

// UnmarshalJSON implements json.Unmarshaler.
func (o *Owners) UnmarshalJSON(data []byte) (err error) {
	*o, err = list[Owner](data, "ownerReferences")
	return err
}

// list decodes a list of at most maxEntries entries.
func list[T any](data []byte, name string) ([]T, error) {
	if string(data) == "null" {
		return nil, nil
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	start, err := decoder.Token()
	if err != nil {
		return nil, err
	}
	if start != json.Delim('[') {
		return nil, fmt.Errorf("%s begin with %v, want a list", name, start)
	}
	var entries []T
	for decoder.More() {
		if len(entries) == maxEntries {
			return nil, fmt.Errorf("more than %d %s", maxEntries, name)
		}
		var one T
		if err := decoder.Decode(&one); err != nil {
			return nil, err
		}
		entries = append(entries, one)
	}
	return entries, nil
}
