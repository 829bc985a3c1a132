// Package inventory holds the current catalogs of this process. Writers update it, and a reader
// takes an immutable snapshot.
//
// A snapshot need not be released. An index stays readable while a reader has it, even after it was
// replaced and collected; then the runtime closes its file.
package inventory

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/penstock-project/penstock/pkg/catalog/index"
)

// Catalog is one catalog. Readers must not change it.
type Catalog struct {
	Name string
	// Labels are the labels of the ClusterCatalog.
	Labels   map[string]string
	Priority int32
	// Unavailable is true if the catalog is disabled: nothing is installed from it, and its
	// packages are not listed.
	Unavailable bool
	// Index is nil until the content is indexed. Unpacked is the time when that content was
	// unpacked.
	Index    *index.Index
	Unpacked time.Time
	// Err is the reason why the catalog cannot be read. If Index is set, too, it is the last
	// readable index.
	Err error
}

// Digest returns the digest of the content; "" if there is none.
func (c *Catalog) Digest() string {
	if c.Index == nil {
		return ""
	}
	return c.Index.Digest()
}

func (c *Catalog) readable() bool { return c.Index != nil && !c.Unavailable }

// same reports whether two catalogs are equal for readers.
func (c *Catalog) same(other *Catalog) bool {
	return c.Name == other.Name && c.Priority == other.Priority && c.Unavailable == other.Unavailable &&
		c.Digest() == other.Digest() && c.Unpacked.Equal(other.Unpacked) && message(c.Err) == message(other.Err) && maps.Equal(c.Labels, other.Labels)
}

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// kept is the number of earlier snapshots that At can return. It is small, because each keeps its
// indexes open.
const kept = 2

// Inventory is the set of catalogs. It is safe for concurrent use.
type Inventory struct {
	clock clock.PassiveClock

	mu       sync.Mutex
	complete bool
	current  *Snapshot
	// before are earlier snapshots, newest first.
	before []*Snapshot
}

// New returns an empty inventory. The clock is for versions.
func New(clock clock.PassiveClock) *Inventory {
	i := &Inventory{clock: clock}
	i.current = newSnapshot(nil, i.nextVersion(0, nil))
	return i
}

// MarkComplete records that the inventory has all catalogs of the cluster, readable or not. Until
// then, a missing package is unknown, not absent.
func (i *Inventory) MarkComplete() {
	i.mu.Lock()
	defer i.mu.Unlock()
	if !i.complete {
		i.complete = true
		i.replace(i.current.catalogs)
	}
}

// Snapshot returns the current snapshot.
func (i *Inventory) Snapshot() *Snapshot {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.current
}

// At returns the current or a recent snapshot with the same content as a version, even if another
// process created the version. It returns nil if there is none.
func (i *Inventory) At(version Version) *Snapshot {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, one := range append([]*Snapshot{i.current}, i.before...) {
		if one.version.SameContent(version) {
			return one
		}
	}
	return nil
}

// Put adds or replaces a catalog. An unchanged catalog creates no snapshot.
func (i *Inventory) Put(catalog Catalog) {
	catalog.Labels = maps.Clone(catalog.Labels)
	i.mu.Lock()
	defer i.mu.Unlock()
	at, found := i.current.find(catalog.Name)
	if found && i.current.catalogs[at].same(&catalog) {
		return
	}
	catalogs := slices.Clone(i.current.catalogs)
	if found {
		catalogs[at] = catalog
	} else {
		catalogs = slices.Insert(catalogs, at, catalog)
	}
	i.replace(catalogs)
}

// Remove removes a catalog.
func (i *Inventory) Remove(name string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if at, found := i.current.find(name); found {
		i.replace(slices.Delete(slices.Clone(i.current.catalogs), at, at+1))
	}
}

// replace creates a new snapshot, and marks the previous one as outdated.
func (i *Inventory) replace(catalogs []Catalog) {
	old := i.current
	i.current = newSnapshot(catalogs, i.nextVersion(old.version, catalogs))
	i.current.complete = i.complete
	i.before = append([]*Snapshot{old}, i.before[:min(len(i.before), kept-1)]...)
	close(old.outdated)
}

// Snapshot holds the catalogs at one time. It is immutable.
type Snapshot struct {
	version  Version
	complete bool
	catalogs []Catalog
	packages func() []string
	outdated chan struct{}
}

func newSnapshot(catalogs []Catalog, version Version) *Snapshot {
	s := &Snapshot{version: version, catalogs: catalogs, outdated: make(chan struct{})}
	s.packages = sync.OnceValue(s.listPackages)
	return s
}

// Version returns a number that is higher than in all earlier snapshots.
func (s *Snapshot) Version() Version { return s.version }

// Complete reports whether the inventory had all catalogs. If not, a missing package is unknown.
func (s *Snapshot) Complete() bool { return s.complete }

// Outdated returns a channel that is closed when a newer snapshot exists.
func (s *Snapshot) Outdated() <-chan struct{} { return s.outdated }

// Catalogs returns all catalogs, sorted by name. The list is shared: do not change it.
func (s *Snapshot) Catalogs() []Catalog { return s.catalogs }

// Catalog returns one catalog; nil if it is unknown.
func (s *Snapshot) Catalog(name string) *Catalog {
	if at, found := s.find(name); found {
		return &s.catalogs[at]
	}
	return nil
}

func (s *Snapshot) find(name string) (int, bool) {
	return slices.BinarySearchFunc(s.catalogs, name, func(one Catalog, name string) int { return cmp.Compare(one.Name, name) })
}
