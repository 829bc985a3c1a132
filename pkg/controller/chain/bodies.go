package chain

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/utils/lru"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/store/pack"
)

// Packs reads the manifests of a revision.
type Packs interface {
	Read(ctx context.Context, root string) (map[manifest.Digest][]byte, error)
}

// openPacks is how many decoded packs are kept: rollouts under way read the same
// pack in every pass, and chains at rest read none.
const openPacks = 4

// library reads packs and keeps the ones used last.
type library struct {
	packs Packs
	open  *lru.Cache
}

func newLibrary(packs Packs) *library {
	return &library{packs: packs, open: lru.New(openPacks)}
}

func (l *library) read(ctx context.Context, root string) (map[manifest.Digest][]byte, error) {
	if found, ok := l.open.Get(root); ok {
		return found.(map[manifest.Digest][]byte), nil
	}
	bodies, err := l.packs.Read(ctx, root)
	if err != nil {
		return nil, fmt.Errorf("opening the pack %s: %w", root, err)
	}
	l.open.Add(root, bodies)
	return bodies, nil
}

// close drops the packs of revisions that are at rest: they hold Secrets.
func (l *library) close(revisions []olmv1alpha1.ClusterExtensionRevision) {
	if l.open.Len() == 0 {
		return
	}
	for i := range revisions {
		l.open.Remove(pack.Root(refs(&revisions[i])))
	}
}

// shelf finds the manifests of a chain's layers. It is for one pass.
type shelf struct {
	library *library
	// roots says which pack holds a digest.
	roots map[manifest.Digest]string
	mu    sync.Mutex
}

func newShelf(l *library, revisions []olmv1alpha1.ClusterExtensionRevision) *shelf {
	s := &shelf{library: l, roots: map[manifest.Digest]string{}}
	for i := range revisions {
		held := refs(&revisions[i])
		root := pack.Root(held)
		for _, r := range held {
			s.roots[r.Digest] = root
		}
	}
	return s
}

// Body returns the manifest that a layer refers to.
func (s *shelf) Body(ctx context.Context, r manifest.Ref) ([]byte, error) {
	root, ok := s.roots[r.Digest]
	if !ok {
		return nil, fmt.Errorf("no revision of the chain refers to %s", r.Digest)
	}
	s.mu.Lock() // one decode at a time: the workers of a stage ask for the same pack
	defer s.mu.Unlock()
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
