// Package store has the shared part of all records in Penstock's store: the etcd key of each kind,
// and the first bytes of a record, with its kind and version. The packages below it define the
// kinds.
package store

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// runsSuffix is the end of the keys of runs.
const runsSuffix = "/runs"

// Keys is the layout of the store below one etcd prefix. Only Keys builds keys of these records:
//
//	<prefix>/identity                       the identity of the store
//	<prefix>/target                         the cluster of the inventories
//	<prefix>/packs/<root>/pack              a whole pack, or the description of its parts
//	<prefix>/packs/<root>/chunks/<digest>   a part of a pack that is larger than one record
//	<prefix>/packs/<root>/candidate         the collector found no reference to the pack
//	<prefix>/packs/<root>/reserved/<lease>  a record that will refer to the pack is being written
//	<prefix>/collector                      written by each collector when it begins
//	<prefix>/chains/<name>/head             a chain's numbers and history
//	<prefix>/chains/<name>/inventory        a chain's objects in the target cluster
//	<prefix>/chains/<name>/standing         a chain's version, written with every change of its revisions
//	<prefix>/plans/<name>/runs              the runs of the plans with a name
//	<prefix>/claims/<key>                   the single holder of a key
//	<prefix>/notifications/<kind>/<name>    the outbox of notifications; kinds: log, told, receivers, begun
//	<prefix>/<group>/<resource>/<name>      objects of the API server; groups have a dot, the names above have none
//
// Names from users are escaped, so that no name can form the key of another record.
type Keys struct {
	prefix string
}

// NewKeys returns the layout below a prefix, such as "/penstock". It ignores slashes around the
// prefix.
func NewKeys(prefix string) Keys {
	return Keys{prefix: "/" + strings.Trim(prefix, "/")}
}

// All returns the prefix of every key of the store.
func (k Keys) All() string { return k.prefix + "/" }

// Identity returns the key of the store's identity.
func (k Keys) Identity() string { return k.prefix + "/identity" }

// Target returns the key of the record that names the target cluster.
func (k Keys) Target() string { return k.prefix + "/target" }

// Packs returns the prefix of the keys of all packs.
func (k Keys) Packs() string { return k.prefix + "/packs/" }

// Pack returns the key of a pack. A pack exists if this key exists.
func (k Keys) Pack(root string) string {
	return k.Packs() + url.PathEscape(root) + "/pack"
}

// Chunk returns the key of a part of a pack. digest is the digest of its bytes.
func (k Keys) Chunk(root, digest string) string {
	return k.Packs() + url.PathEscape(root) + "/chunks/" + digest
}

// PackRecords returns the prefix of all keys of a pack.
func (k Keys) PackRecords(root string) string {
	return k.Packs() + url.PathEscape(root) + "/"
}

// Candidate returns the key that marks a pack as unreferenced at the time of a collection. While
// the key exists, no new record may refer to the pack (see Referable).
func (k Keys) Candidate(root string) string {
	return k.PackRecords(root) + "candidate"
}

// Reservation returns the key that keeps a pack while a record that refers to it is being written.
// The key has an etcd lease.
func (k Keys) Reservation(root string, lease int64) string {
	return k.PackRecords(root) + "reserved/" + strconv.FormatInt(lease, 16)
}

// Collector returns the key that each collector writes when it begins.
func (k Keys) Collector() string { return k.prefix + "/collector" }

// PackPart is the parsed key of a part of a pack.
type PackPart struct {
	// Root is the root of the pack.
	Root string
	// Name is "pack" for the pack itself, "chunks", "candidate" or "reserved".
	Name string
	// Of is the digest of a chunk, or the lease of a reservation.
	Of string
}

// PackPartOf parses a key of a pack. It returns false for any other key.
func (k Keys) PackPartOf(key string) (PackPart, bool) {
	rest, ok := strings.CutPrefix(key, k.Packs())
	parts := strings.Split(rest, "/")
	if !ok || len(parts) < 2 || len(parts) > 3 {
		return PackPart{}, false
	}
	root, err := url.PathUnescape(parts[0])
	if err != nil {
		return PackPart{}, false
	}
	part := PackPart{Root: root, Name: parts[1]}
	if len(parts) == 3 {
		part.Of = parts[2]
	}
	nested := part.Name == "chunks" || part.Name == "reserved"
	return part, nested == (len(parts) == 3) && (nested || part.Name == "pack" || part.Name == "candidate")
}

// PackRoot returns the root of the pack that is stored under a key. It returns false for a key of
// another kind.
func (k Keys) PackRoot(key string) (string, bool) {
	return nameIn(key, k.Packs(), "/pack")
}

// Head returns the key of a chain's head.
func (k Keys) Head(chain string) string {
	return k.Chains() + url.PathEscape(chain) + "/head"
}

// Chains returns the prefix of the keys of all chains' records.
func (k Keys) Chains() string { return k.prefix + "/chains/" }

// Inventory returns the key of a chain's inventory.
func (k Keys) Inventory(chain string) string {
	return k.Chains() + url.PathEscape(chain) + "/inventory"
}

// ChainVersion returns the key that is written with every change of a chain's revisions.
func (k Keys) ChainVersion(chain string) string {
	return k.Chains() + url.PathEscape(chain) + "/standing"
}

// HeadOf returns the chain of a head's key, or false for another key.
func (k Keys) HeadOf(key string) (string, bool) {
	return nameIn(key, k.Chains(), "/head")
}

// InventoryOf returns the chain of an inventory's key, or false for another key.
func (k Keys) InventoryOf(key string) (string, bool) {
	return nameIn(key, k.Chains(), "/inventory")
}

// nameIn returns the escaped name between two parts of a key. It returns false for a key of another
// kind.
func nameIn(key, prefix, suffix string) (string, bool) {
	escaped, ok := strings.CutPrefix(key, prefix)
	if !ok {
		return "", false
	}
	if escaped, ok = strings.CutSuffix(escaped, suffix); !ok || strings.Contains(escaped, "/") {
		return "", false
	}
	name, err := url.PathUnescape(escaped)
	return name, err == nil
}

// RecordKinds returns the kinds that KindOf returns, except "other".
func RecordKinds() []string {
	return []string{"clusterextensionrevisions", "configurationplans", "head", "inventory", "runs", "claim", "notification"}
}

// KindOf returns the kind of a record by its key: the resource of an API object, or head,
// inventory, runs, claim or notification. For any other key it returns "other".
func (k Keys) KindOf(key string) string {
	parts := strings.Split(strings.TrimPrefix(key, k.All()), "/")
	kind := ""
	switch {
	case len(parts) == 2 && parts[0] == "claims":
		kind = "claim"
	case len(parts) == 3 && parts[0] == "notifications":
		kind = "notification"
	case len(parts) == 3 && (parts[0] == "chains" || parts[0] == "plans"):
		kind = parts[2]
	case len(parts) == 3:
		kind = parts[1]
	}
	if slices.Contains(RecordKinds(), kind) {
		return kind
	}
	return "other"
}

// Claims returns the prefix of the keys of all claims.
func (k Keys) Claims() string { return k.prefix + "/claims/" }

// Runs returns the key of the runs of plans with a name.
func (k Keys) Runs(name string) string {
	return k.Plans() + url.PathEscape(name) + runsSuffix
}

// Plans returns the prefix of the keys of all runs.
func (k Keys) Plans() string { return k.prefix + "/plans/" }

// RunsOf returns the name in a key of Runs; found is false for any other key.
func (k Keys) RunsOf(key string) (name string, found bool) {
	rest, below := strings.CutPrefix(key, k.Plans())
	escaped, runs := strings.CutSuffix(rest, runsSuffix)
	name, err := url.PathUnescape(escaped)
	return name, below && runs && err == nil
}

// Notifications returns the prefix of the keys of all records of notifications.
func (k Keys) Notifications() string { return k.prefix + "/notifications/" }

// Notification returns the key of a record of notifications.
func (k Keys) Notification(kind, name string) string {
	return k.Notifications() + kind + "/" + url.PathEscape(name)
}

// NotificationOf returns the kind and name of a key of Notification; found is false for any
// other key.
func (k Keys) NotificationOf(key string) (kind, name string, found bool) {
	rest, below := strings.CutPrefix(key, k.Notifications())
	kind, escaped, two := strings.Cut(rest, "/")
	name, err := url.PathUnescape(escaped)
	return kind, name, below && two && err == nil
}

// Claim returns the key of a claim.
func (k Keys) Claim(key string) string {
	return k.Claims() + url.PathEscape(key)
}
