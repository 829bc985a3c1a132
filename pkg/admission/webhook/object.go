package webhook

import (
	"bytes"
	"encoding/json"
	"fmt"
)

const (
	// maxMap bounds labels and annotations, in bytes of JSON. The host takes 256 KiB
	// of annotations; escaped they may be six times as long.
	maxMap = 2 << 20
	// maxManagers bounds the entries of managedFields: a few bytes in JSON are many
	// in memory.
	maxManagers = 5000
)

// Object is what judges look at: metadata only.
type Object struct {
	Metadata Metadata `json:"metadata"`
}

// Metadata of an object, as it came.
type Metadata struct {
	Labels Labels `json:"labels"`
	// Annotations are raw: a value that is no string must not pass for none.
	Annotations       Annotations `json:"annotations"`
	DeletionTimestamp *string     `json:"deletionTimestamp"`
	ManagedFields     Managers    `json:"managedFields"`
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

// Managers are who has written an object.
type Managers []Manager

// UnmarshalJSON implements json.Unmarshaler.
func (m *Managers) UnmarshalJSON(data []byte) error {
	*m = nil
	if string(data) == "null" {
		return nil
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	start, err := decoder.Token()
	if err != nil {
		return err
	}
	if start != json.Delim('[') {
		return fmt.Errorf("managedFields begin with %v, want a list", start)
	}
	for decoder.More() {
		if len(*m) == maxManagers {
			return fmt.Errorf("more than %d managedFields", maxManagers)
		}
		var one Manager
		if err := decoder.Decode(&one); err != nil {
			return err
		}
		*m = append(*m, one)
	}
	return nil
}
