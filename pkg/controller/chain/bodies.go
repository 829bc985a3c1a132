package chain

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/utils/lru"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/revision/references"
)

// Packs reads the manifests of a revision.
type Packs interface {
	Read(ctx context.Context, root string) (map[manifest.Digest][]byte, error)
}

// A rollout in progress reads the same packs in every pass, and an upgrade alternates between two
// packs. Chains at rest read none. So the library keeps more small packs than there are workers,
// and few large packs.
const (
	openSmall, openLarge = 64, 4
	// smallPack bounds the manifests of a small pack, in bytes.
	smallPack = 256 << 10
)

// library reads packs, and keeps the most recently used.
type library struct {
	packs        Packs
	small, large *lru.Cache
}

func newLibrary(packs Packs) *library {
	return &library{packs: packs, small: lru.New(openSmall), large: lru.New(openLarge)}
}

func (l *library) read(ctx context.Context, root string) (map[manifest.Digest][]byte, error) {
	for _, open := range []*lru.Cache{l.small, l.large} {
		if found, ok := open.Get(root); ok {
			return found.(map[manifest.Digest][]byte), nil
		}
	}
	bodies, err := l.packs.Read(ctx, root)
	if err != nil {
		return nil, fmt.Errorf("opening the pack %s: %w", root, err)
	}
	bytes := 0
	for _, body := range bodies {
		bytes += len(body)
	}
	if bytes <= smallPack {
		l.small.Add(root, bodies)
	} else {
		l.large.Add(root, bodies)
	}
	return bodies, nil
}

// close drops the packs of a chain at rest, because they contain Secrets.
func (l *library) close(known memories) {
	if l.small.Len()+l.large.Len() == 0 {
		return
	}
	for _, memory := range known {
		l.small.Remove(memory.root)
		l.large.Remove(memory.root)
	}
}

// manifestCache finds the manifests of a chain's layers during one pass.
type manifestCache struct {
	library   *library
	revisions []olmv1alpha1.ClusterExtensionRevision
	known     memories

	mu sync.Mutex
	// barred holds the packs that must not be read in this pass, with the reason.
	barred map[string]error
	// roots maps digests to packs. It is built on first use, because most passes need no manifests.
	roots map[manifest.Digest]string
}

func newManifestCache(l *library, revisions []olmv1alpha1.ClusterExtensionRevision, known memories) *manifestCache {
	return &manifestCache{library: l, revisions: revisions, known: known}
}

// root returns the pack that holds a digest. The caller holds the lock.
func (s *manifestCache) root(digest manifest.Digest) (string, bool) {
	if s.roots == nil {
		s.roots = map[manifest.Digest]string{}
		for i := range s.revisions {
			revision := &s.revisions[i]
			for _, r := range references.Of(revision) {
				s.roots[r.Digest] = s.known[revision.UID].root
			}
		}
	}
	root, ok := s.roots[digest]
	return root, ok
}

// bar prevents reads of a pack's manifests in this pass.
func (s *manifestCache) bar(root string, why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.barred == nil {
		s.barred = map[string]error{}
	}
	s.barred[root] = why
}

// Body returns the manifest that a layer refers to.
func (s *manifestCache) Body(ctx context.Context, r manifest.Ref) ([]byte, error) {
	s.mu.Lock() // one decode at a time: the workers of a stage read the same pack
	defer s.mu.Unlock()
	root, ok := s.root(r.Digest)
	if !ok {
		return nil, fmt.Errorf("no revision of the extension refers to %s", r.Digest)
	}
	if err := s.barred[root]; err != nil {
		return nil, err
	}
	bodies, err := s.library.read(ctx, root)
	if err != nil {
		return nil, err
	}
	body, ok := bodies[r.Digest]
	if !ok {
		return nil, fmt.Errorf("the pack %s does not hold %s", root, r.Digest)
	}
	return body, nil
}
