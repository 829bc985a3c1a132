// Package inventory has the present catalogs of this process. Writers keep it current, and a reader
// takes a snapshot, which does not change.
//
// A snapshot need not be returned. An index stays readable while a reader has it, even after it was
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

// Catalog is one catalog. Its users must not change it.
type Catalog struct {
	Name string
	// Labels are the labels of the ClusterCatalog.
	Labels   map[string]string
	Priority int32
	// Unavailable says that the catalog is switched off: nothing is installed from it, and
	// its packages are not listed.
	Unavailable bool
	// Index is nil when there is none yet, and Unpacked is when its content came.
	Index    *index.Index
	Unpacked time.Time
	// Err says why the catalog cannot be read. It may be set besides an Index: that is the
	// last one that could be read, then.
	Err error
}

// Digest returns the digest of the content, "" when there is none.
func (c *Catalog) Digest() string {
	if c.Index == nil {
		return ""
	}
	return c.Index.Digest()
}

// readable reports whether there is something to list.
func (c *Catalog) readable() bool { return c.Index != nil && !c.Unavailable }

// same reports whether two are alike for readers.
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

// kept is the number of snapshots before the current one that At can return. Each keeps its indexes
// open, so there are few.
const kept = 2

// Inventory is the set of catalogs. It is safe for concurrent use.
type Inventory struct {
	clock clock.PassiveClock

	mu       sync.Mutex
	complete bool
	current  *Snapshot
	// before has the newest first.
	before []*Snapshot
}

// New returns an empty inventory. The clock is for versions.
func New(clock clock.PassiveClock) *Inventory {
	i := &Inventory{clock: clock}
	i.current = newSnapshot(nil, i.nextVersion(0, nil))
	return i
}

// MarkComplete records that all catalogs of the cluster were put in, readable or not. Before that, a
// missing package is unknown and not absent.
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

// At returns the snapshot with the content that a version tells of, the current one or one
// shortly before it, also when another process gave the version. It is nil when none has.
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

// Put adds or replaces a catalog. An unchanged catalog makes no new snapshot.
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

// Remove forgets a catalog.
func (i *Inventory) Remove(name string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if at, found := i.current.find(name); found {
		i.replace(slices.Delete(slices.Clone(i.current.catalogs), at, at+1))
	}
}

// replace makes a new snapshot, and tells the caller that has the one before.
func (i *Inventory) replace(catalogs []Catalog) {
	old := i.current
	i.current = newSnapshot(catalogs, i.nextVersion(old.version, catalogs))
	i.current.complete = i.complete
	i.before = append([]*Snapshot{old}, i.before[:min(len(i.before), kept-1)]...)
	close(old.outdated)
}

// Snapshot has the catalogs of one moment. It does not change.
type Snapshot struct {
	version  Version
	complete bool
	catalogs []Catalog
	packages func() []string
	// outdated is closed when there is a newer one.
	outdated chan struct{}
}

func newSnapshot(catalogs []Catalog, version Version) *Snapshot {
	s := &Snapshot{version: version, catalogs: catalogs, outdated: make(chan struct{})}
	s.packages = sync.OnceValue(s.listPackages)
	return s
}

// Version returns a number that is higher than those of all earlier snapshots.
func (s *Snapshot) Version() Version { return s.version }

// Complete reports whether the inventory had all catalogs: if not, nothing is known of packages
// that it does not have.
func (s *Snapshot) Complete() bool { return s.complete }

// Outdated is closed when there is a newer snapshot.
func (s *Snapshot) Outdated() <-chan struct{} { return s.outdated }

// Catalogs returns all catalogs, sorted by name. It is shared: do not change it.
func (s *Snapshot) Catalogs() []Catalog { return s.catalogs }

// Catalog returns one catalog, nil when it is not known.
func (s *Snapshot) Catalog(name string) *Catalog {
	if at, found := s.find(name); found {
		return &s.catalogs[at]
	}
	return nil
}

func (s *Snapshot) find(name string) (int, bool) {
	return slices.BinarySearchFunc(s.catalogs, name, func(one Catalog, name string) int { return cmp.Compare(one.Name, name) })
}
