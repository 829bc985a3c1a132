package clusterextensionrevision

import (
	"context"
	"maps"
	"sync"

	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/manifest"
)

type stagedKey struct{}

// staged holds, by digest, the manifests of one request that were removed from its revision. It
// lives in the request's context: the endpoint calls Create or Update again, with the stripped
// object, if the first try was too large to store. GuaranteedUpdate also prepares an object several
// times.
type staged struct {
	// mu guards against the goroutine of a timed-out request, which may still run after the filter
	// has returned.
	mu      sync.Mutex
	objects map[manifest.Digest]manifest.Object
	total   int64
	// sealed is set when all manifests of the request have been added.
	sealed bool
	// seen holds the Secrets of the request that the caller may know.
	seen map[manifest.ID]bool
	// secret is true if the caller must not learn the sizes of the manifests (see hideSizes).
	secret bool
	// borrowed holds manifests that the request names only by digest, with the revisions that
	// contain them.
	borrowed map[manifest.Digest]string
	// revisions are the revisions of the chain, if they were needed. version is the chain's version
	// before they were read.
	revisions []olm.ClusterExtensionRevision
	version   int64
	// failure is the error of a step that cannot return an error.
	failure error
}

func newStaged() *staged {
	return &staged{objects: map[manifest.Digest]manifest.Object{}}
}

// withStaged returns a context with staged manifests, and the staged manifests.
func withStaged(ctx context.Context) (context.Context, *staged) {
	if found, ok := ctx.Value(stagedKey{}).(*staged); ok {
		return ctx, found
	}
	place := newStaged()
	return context.WithValue(ctx, stagedKey{}, place), place
}

// stagedFrom returns the staged manifests of a request. Outside a request it returns a new, empty
// value.
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

// lend adds a manifest of another revision that the request only named.
func (s *staged) lend(object manifest.Object, revision string) {
	s.add(object)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.borrowed == nil {
		s.borrowed = map[manifest.Digest]string{}
	}
	s.borrowed[object.Digest] = revision
}

// lent returns the manifests that the request only named, with the revisions that contain them.
func (s *staged) lent() map[manifest.Digest]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.borrowed)
}

// seal records that all manifests of the request have been added. Admission added any inline
// manifest that is found later.
func (s *staged) seal() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sealed = true
}

// admits reports whether a manifest that is found inline may be stored: it was in the request, or
// the request is not sealed.
func (s *staged) admits(object manifest.Object) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, brought := s.objects[object.Digest]
	return brought || !s.sealed
}

// see records Secrets of the request after the check that the caller may compare them with stored
// content.
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

// strange reports whether a Secret that is found inline was not checked. It is false if the request
// is not sealed.
func (s *staged) strange(id manifest.ID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sealed && !s.seen[id]
}

// find returns the manifest with the digest of an entry, if the entry's other fields agree.
func (s *staged) find(key entryKey) (manifest.Object, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	object, ok := s.objects[manifest.Digest(key.digest)]
	return object, ok && keyOfManifest(object) == key
}

func (s *staged) bytes() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.total
}

// hideSizes records that the caller must not learn the sizes of the manifests: they include a
// Secret that the caller did not send.
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

// setChain records the revisions of the chain that a new revision joins, and the chain's version
// before they were read.
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

// fail records an error, or nil, for the next step that can return it.
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
