package inventory

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
)

// Version identifies one state of the catalogs, like a resourceVersion. Its high half is a time in
// seconds, so that it increases even after restarts. Its low half is a hash of the content, so that
// two processes with equal catalogs recognise each other's versions.
type Version uint64

func (v Version) String() string { return strconv.FormatUint(uint64(v), 10) }

// SameContent reports whether two versions have the same catalogs.
func (v Version) SameContent(other Version) bool { return uint32(v) == uint32(other) }

// epoch is 2026-01-01. 31 bits of seconds last until 2094.
const epoch = 1767225600

func (i *Inventory) nextVersion(last Version, catalogs []Catalog) Version {
	seconds := max(uint64(i.clock.Now().Unix()-epoch)&(1<<31-1), uint64(last)>>32+1)
	return Version(seconds<<32 | uint64(contentHash(catalogs)))
}

// contentHash hashes the facts that determine the packages. It excludes errors, because each
// process has its own.
func contentHash(catalogs []Catalog) uint32 {
	hash := sha256.New()
	write := json.NewEncoder(hash)
	for i := range catalogs {
		one := &catalogs[i]
		// Encoding cannot fail for these types, and a hash accepts all input.
		_ = write.Encode([]any{one.Name, one.Digest(), one.Priority, one.Unavailable})
		for _, key := range slices.Sorted(maps.Keys(one.Labels)) {
			_ = write.Encode([]string{key, one.Labels[key]})
		}
	}
	return binary.BigEndian.Uint32(hash.Sum(nil))
}
