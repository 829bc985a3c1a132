package chain

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/manifest"
	rev "github.com/penstock-project/penstock/pkg/revision"
)

func nameOf(number int64) string   { return fmt.Sprint("argocd-", number) }
func uidOf(number int64) types.UID { return types.UID(fmt.Sprint("uid-of-", number)) }

// listing gives a revision one phase of objects, by "apiVersion kind name digest".
func listing(objects ...string) func(*olmv1alpha1.ClusterExtensionRevision) {
	return func(r *olmv1alpha1.ClusterExtensionRevision) {
		phase := olmv1alpha1.RevisionPhase{Name: "all"}
		for _, object := range objects {
			f := strings.Fields(object)
			phase.Objects = append(phase.Objects, olmv1alpha1.RevisionObject{
				APIVersion: f[0], Kind: f[1], Namespace: "argocd", Name: f[2], Digest: f[3],
			})
		}
		r.Spec.Phases = []olmv1alpha1.RevisionPhase{phase}
	}
}

type packs struct {
	bodies map[string]map[manifest.Digest][]byte
	opened int
}

func (p *packs) Read(_ context.Context, root string) (map[manifest.Digest][]byte, error) {
	p.opened++
	bodies, ok := p.bodies[root]
	if !ok {
		return nil, errors.New("there is no such pack")
	}
	return bodies, nil
}

func TestManifestCache(t *testing.T) {
	one := numbered(1, listing("v1 ConfigMap a sha256:1", "v1 ConfigMap b sha256:2"))
	two := numbered(2, listing("v1 ConfigMap a sha256:3"))
	revisions := []olmv1alpha1.ClusterExtensionRevision{*two, *one}
	stored := &packs{bodies: map[string]map[manifest.Digest][]byte{
		rev.PackRoot(one): {"sha256:1": []byte("one"), "sha256:2": []byte("two")},
		rev.PackRoot(two): {},
	}}
	library := newLibrary(stored)
	known := (&memoryByChain{}).open("argocd", revisions)
	s := newManifestCache(library, revisions, known)
	for range 2 {
		for digest, want := range map[manifest.Digest]string{"sha256:1": "one", "sha256:2": "two"} {
			if got, err := s.Body(t.Context(), manifest.Ref{Digest: digest}); err != nil || string(got) != want {
				t.Errorf("%s is %q, %v", digest, got, err)
			}
		}
	}
	if stored.opened != 1 {
		t.Errorf("one pack was opened %d times", stored.opened)
	}
	for name, digest := range map[string]manifest.Digest{"of no revision": "sha256:9", "not in its pack": "sha256:3"} {
		if got, err := s.Body(t.Context(), manifest.Ref{Digest: digest}); err == nil || !strings.Contains(err.Error(), string(digest)) {
			t.Errorf("a body %s: %q, %v", name, got, err)
		}
	}
	library.close(known)
	if n := library.small.Len() + library.large.Len(); n != 0 {
		t.Errorf("%d packs of a chain at rest stay in memory", n)
	}
}

// TestLibrary: large packs do not fill the memory, and do not evict the small packs of other
// chains.
func TestLibrary(t *testing.T) {
	stored := &packs{bodies: map[string]map[manifest.Digest][]byte{"small": {"sha256:1": []byte("x")}}}
	for i := range openLarge + 1 {
		stored.bodies[fmt.Sprint("large-", i)] = map[manifest.Digest][]byte{"sha256:2": make([]byte, smallPack+1)}
	}
	library := newLibrary(stored)
	read := func(root string) (opened bool) {
		t.Helper()
		before := stored.opened
		if _, err := library.read(t.Context(), root); err != nil {
			t.Fatal(err)
		}
		return stored.opened > before
	}
	read("small")
	for i := range openLarge + 1 {
		read(fmt.Sprint("large-", i))
	}
	for root, want := range map[string]bool{"small": false, fmt.Sprint("large-", openLarge): false, "large-0": true} {
		if got := read(root); got != want {
			t.Errorf("%s was opened again: %v, want %v", root, got, want)
		}
	}
}
