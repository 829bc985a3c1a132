package chain

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/store"
)

const (
	// MaxInventoryBytes bounds a stored inventory. It is below the 1.5 MiB limit of a request to
	// etcd. 4000 objects take about a third of it.
	MaxInventoryBytes = 1400 << 10
	// maxInventoryJSON bounds the JSON of an inventory, in bytes, and the memory to read it.
	maxInventoryJSON = 16 << 20
)

// Inventory lists the objects of a chain in the target cluster. Its zero value is empty.
type Inventory struct {
	// Entries are the written objects, and objects that are about to be written. Each identity
	// occurs once. Stored entries are sorted.
	Entries []Entry `json:"entries,omitempty"`
	// Reached is the number of stages that each revision has reached, by uid. It only grows while
	// the revision exists.
	Reached map[string]int `json:"reached,omitempty"`
	// Deletions are the recent charges of the deletion budget, oldest first.
	Deletions []Deletion `json:"deletions,omitempty"`
	// Repairs are the newest repairs of changes by other writers, newest last. The field was added
	// in format 6.
	Repairs []Repair `json:"repairs,omitempty"`
	// Levels holds the revisions, by uid, whose stages are counted by install level. The field was
	// added in format 2.
	Levels map[string]bool `json:"levels,omitempty"`
	// Cluster is the uid of namespace kube-system in the cluster of a chain that names its target.
	// It is empty for the default cluster (see CheckTarget). The field was added in format 3.
	Cluster string `json:"cluster,omitempty"`
}

// Deletion is a number of objects that were deleted together.
type Deletion struct {
	At      time.Time `json:"at"`
	Objects int       `json:"objects"`
}

// Repair is a repaired change by another writer, with the number of its repetitions.
type Repair struct {
	Group     string `json:"group,omitempty"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// Revision is the number of the revision whose content was restored.
	Revision int64 `json:"revision,omitempty"`
	// Manager is the manager of the change; empty if unknown.
	Manager string `json:"manager,omitempty"`
	// Lost lists the changed fields and their managers.
	Lost string `json:"lost"`
	// Count is the number of repairs. First and Last are the times of the first and the last
	// repair, in UTC, to the second.
	Count int       `json:"count"`
	First time.Time `json:"first"`
	Last  time.Time `json:"last"`
}

// Entry is one object of an inventory.
type Entry struct {
	Group     string `json:"group,omitempty"`
	Version   string `json:"version,omitempty"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// UID is the uid of the object. An entry without a uid is an intent, saved before the object is
	// created: only the cluster shows whether it was created.
	UID types.UID `json:"uid,omitempty"`
	// Revision is the number of the revision whose content the object has.
	Revision int64 `json:"revision,omitempty"`
	// Digest is the digest of the applied manifest. It is empty before the first apply.
	Digest manifest.Digest `json:"digest,omitempty"`
	// ManagedEntry is the digest of Penstock's entry in managedFields.
	ManagedEntry string `json:"managedEntry,omitempty"`
	// Generation and ResourceVersion are those of the object when it was last found correct.
	Generation      int64  `json:"generation,omitempty"`
	ResourceVersion string `json:"resourceVersion,omitempty"`
	// Rank orders teardown: highest rank first.
	Rank int `json:"rank,omitempty"`
	// Yielded are the fields that are left to other managers, sorted.
	Yielded []string `json:"yielded,omitempty"`
	// Doomed is true for an object whose deletion was charged to the budget or acknowledged by a
	// user.
	Doomed bool `json:"doomed,omitempty"`
	// Adopted is true for an object that existed before the chain, outside any installed extension.
	// The field was added in format 4.
	Adopted bool `json:"adopted,omitempty"`
	// Refused is the number of the newer revision whose update of the object the API server
	// refuses. It would accept the object as new. The field was added in format 5.
	Refused int64 `json:"refused,omitempty"`
	// Finished is the outcome of a Job that deletes itself after it finished. The field was added
	// in format 5.
	Finished string `json:"finished,omitempty"`
}

// ID identifies the object.
func (e Entry) ID() manifest.ID {
	return manifest.ID{Group: e.Group, Kind: e.Kind, Namespace: e.Namespace, Name: e.Name}
}

// Empty reports whether the inventory is empty.
func (i Inventory) Empty() bool {
	return len(i.Entries) == 0 && len(i.Reached) == 0 && len(i.Levels) == 0
}

// InventoryTooLargeError reports that a chain has more objects than an inventory can hold.
type InventoryTooLargeError struct {
	Chain           string
	Objects         int
	Bytes, MaxBytes int
}

func (e *InventoryTooLargeError) Error() string {
	return fmt.Sprintf("the inventory of extension %q is too large: its %d objects take %d bytes, %d are allowed",
		e.Chain, e.Objects, e.Bytes, e.MaxBytes)
}

func inventoryFormat() store.Format {
	return store.Format{Kind: "inventory", Magic: "PKI", Version: 6, Limit: maxInventoryJSON}
}

// formatOf returns the oldest format that can store an inventory. An older Penstock must refuse an
// inventory that it would misread: with objects in another cluster, or with objects that must stay.
func formatOf(inv Inventory) store.Format {
	format := inventoryFormat()
	switch {
	case len(inv.Repairs) > 0:
	case slices.ContainsFunc(inv.Entries, func(e Entry) bool { return e.Refused != 0 || e.Finished != "" }):
		format.Version = 5
	case slices.ContainsFunc(inv.Entries, func(e Entry) bool { return e.Adopted }):
		format.Version = 4
	case inv.Cluster != "":
		format.Version = 3
	default:
		format.Version = 2
	}
	return format
}

// encodeInventory returns the record of an inventory. The order of entries does not change the
// record.
func encodeInventory(chain string, inv Inventory) ([]byte, error) {
	normal, err := normalised(inv)
	if err != nil {
		return nil, err
	}
	data, err := json.Marshal(normal)
	if err != nil {
		return nil, err
	}
	record, err := formatOf(normal).Seal(data)
	var large *store.TooLargeError
	if errors.As(err, &large) {
		return nil, &InventoryTooLargeError{Chain: chain, Objects: len(inv.Entries), Bytes: large.Bytes, MaxBytes: large.Limit}
	}
	if err != nil {
		return nil, err
	}
	if len(record) > MaxInventoryBytes {
		return nil, &InventoryTooLargeError{Chain: chain, Objects: len(inv.Entries), Bytes: len(record), MaxBytes: MaxInventoryBytes}
	}
	return record, nil
}

// DecodeInventory decodes a record. encodeInventory accepts every inventory that DecodeInventory
// accepts.
func DecodeInventory(key string, record []byte) (Inventory, error) {
	data, err := inventoryFormat().Open(key, record)
	if err != nil {
		return Inventory{}, err
	}
	var inv Inventory
	if err := decodeJSON(data, &inv); err != nil {
		return Inventory{}, inventoryFormat().Damaged(key, err)
	}
	if inv, err = normalised(inv); err != nil {
		return Inventory{}, inventoryFormat().Damaged(key, err)
	}
	return inv, nil
}

// normalised returns the inventory sorted, without changing it. An object without kind or name, or
// a duplicate object, is an error.
func normalised(inv Inventory) (Inventory, error) {
	out := Inventory{Entries: slices.Clone(inv.Entries), Reached: maps.Clone(inv.Reached), Deletions: slices.Clone(inv.Deletions), Repairs: slices.Clone(inv.Repairs), Levels: maps.Clone(inv.Levels), Cluster: inv.Cluster}
	slices.SortFunc(out.Entries, func(a, b Entry) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Kind, b.Kind),
			cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	for i := range out.Entries {
		e := &out.Entries[i]
		if e.Kind == "" || e.Name == "" {
			return Inventory{}, fmt.Errorf("the inventory has an object without kind or name: %s", e.ID())
		}
		if i > 0 && out.Entries[i-1].ID() == e.ID() {
			return Inventory{}, fmt.Errorf("the inventory has %s twice", e.ID())
		}
		e.Yielded = slices.Clone(e.Yielded)
		slices.Sort(e.Yielded)
		e.Yielded = slices.Compact(e.Yielded)
	}
	return out, nil
}
