package clusterextensionrevision

import (
	"context"
	"maps"
	"sync"

	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/manifest"
)

type stagedKey struct{}

// staged has the manifests of one request that its revision no longer carries, by digest. It lives
// in the request's context and not in a call of Create or Update, because the endpoint calls again
// with the same, already stripped object when the first try was too large to store, and because
// GuaranteedUpdate prepares an object as often as it needs to.
type staged struct {
	// A request that timed out leaves its goroutine behind while the filter
	// returns, so both may look.
	mu      sync.Mutex
	objects map[manifest.Digest]manifest.Object
	total   int64
	// sealed is set when all manifests that the request brought are here.
	sealed bool
	// seen are the Secrets that the request brought and may bring.
	seen map[manifest.ID]bool
	// secret is set when a Secret that the request only named was read.
	secret bool
	// borrowed manifests were only named, and found in the revision of that name.
	borrowed map[manifest.Digest]string
	// revisions of the chain, when they were needed, and how the chain stood before they
	// were read.
	revisions []olm.ClusterExtensionRevision
	version   int64
	// failure is the error of a step that cannot return errors.
	failure error
}

func newStaged() *staged {
	return &staged{objects: map[manifest.Digest]manifest.Object{}}
}

// withStaged returns a context that has a place for manifests, and the place.
func withStaged(ctx context.Context) (context.Context, *staged) {
	if found, ok := ctx.Value(stagedKey{}).(*staged); ok {
		return ctx, found
	}
	place := newStaged()
	return context.WithValue(ctx, stagedKey{}, place), place
}

// stagedFrom returns the place of a request. Outside of one it returns an empty
// place that nobody else sees.
func stagedFrom(ctx context.Context) *staged {
	_, place := withStaged(ctx)
	return place
}

func (s *staged) add(object manifest.Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.objects[object.Digest]; !known {
		s.objects[object.Digest] = object
		s.total += int64(len(object.JSON))
	}
}

// lend adds a manifest that the request has only named, as another revision holds it.
func (s *staged) lend(object manifest.Object, revision string) {
	s.add(object)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.borrowed == nil {
		s.borrowed = map[manifest.Digest]string{}
	}
	s.borrowed[object.Digest] = revision
}

// lent returns what was only named, and in which revision it was found.
func (s *staged) lent() map[manifest.Digest]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.borrowed)
}

// seal says that the request brought no manifest but those that are here: what
// turns up inline later was put in by somebody else.
func (s *staged) seal() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sealed = true
}

// admits reports whether a manifest that turned up inline may be stored: it came with the request,
// or nobody looked at what came with it.
func (s *staged) admits(object manifest.Object) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, brought := s.objects[object.Digest]
	return brought || !s.sealed
}

// see notes Secrets that the request brought, of which it was asked whether the caller
// may have them compared with what is stored.
func (s *staged) see(secrets []manifest.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.seen == nil {
		s.seen = map[manifest.ID]bool{}
	}
	for _, id := range secrets {
		s.seen[id] = true
	}
}

// strange tells of a Secret that turned up inline that nobody was asked about it. It is
// false where nobody looked at what came with the request.
func (s *staged) strange(id manifest.ID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sealed && !s.seen[id]
}

// find returns the manifest that an entry names: by digest, when the rest of
// the entry agrees.
func (s *staged) find(key entryKey) (manifest.Object, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	object, ok := s.objects[manifest.Digest(key.digest)]
	return object, ok && keyOfManifest(object) == key
}

// bytes is the memory that the manifests take.
func (s *staged) bytes() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.total
}

// hideSizes notes that the sizes of the manifests are not for the caller to know:
// there is a Secret among them that the caller did not bring.
func (s *staged) hideSizes() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.secret = true
}

func (s *staged) hidesSizes() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.secret
}

// setChain remembers the revisions of the chain that a new revision joins, as they were
// read when the chain stood so.
func (s *staged) setChain(revisions []olm.ClusterExtensionRevision, version int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.revisions, s.version = revisions, version
}

// stood returns the version of the chain before its revisions were read.
func (s *staged) stood() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.version
}

func (s *staged) chain() []olm.ClusterExtensionRevision {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.revisions
}

// fail remembers an error, nil included, for the next step that can return it.
func (s *staged) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failure = err
}

func (s *staged) failed() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failure
}
