package olm_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"unique"

	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hub "github.com/penstock-project/penstock/pkg/apis/olm"
)

// cachedPhases returns the phases in the watch cache, by revision and phase.
func cachedPhases(t *testing.T, s *server) map[string]hub.PackedObjects {
	t.Helper()
	// Without a resourceVersion the watch cache answers when it has all written objects.
	listed, err := s.storage.Revision.List(t.Context(), &metainternalversion.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	phases := map[string]hub.PackedObjects{}
	for _, revision := range listed.(*hub.ClusterExtensionRevisionList).Items {
		for _, phase := range revision.Spec.Phases {
			if phase.Packed == nil || phase.Objects != nil {
				t.Fatalf("phase %s of %s is not packed", phase.Name, revision.Name)
			}
			phases[revision.Name+" "+phase.Name] = *phase.Packed
		}
	}
	return phases
}

// TestCachedEntriesNeverChange: the watch cache packs phases, and the revisions of an extension
// share one list of names. Readers and writers get copies, so the cached entries never change.
func TestCachedEntriesNeverChange(t *testing.T) {
	s := newServer(t, settings{})
	s.create(file("e-1", inline(configMap("a", "1"), configMap("b", "1")))).want(t, http.StatusCreated)
	s.create(file("e-2", inline(configMap("a", "2"), configMap("b", "1")))).want(t, http.StatusCreated)
	cached := cachedPhases(t, s)
	if len(cached) != 2 {
		t.Fatalf("%d phases are cached, want 2", len(cached))
	}
	shapes := map[unique.Handle[string]]bool{}
	for _, phase := range cached {
		shapes[phase.Shape] = true
	}
	if len(shapes) != 1 {
		t.Errorf("two revisions of the same objects have %d lists of names, want one", len(shapes))
	}

	scribble := func(revisions ...hub.ClusterExtensionRevision) error {
		for _, revision := range revisions {
			for p := range revision.Spec.Phases {
				phase := &revision.Spec.Phases[p]
				if phase.Packed != nil || len(phase.Objects) != 2 {
					return fmt.Errorf("phase %s of %s has %d objects and is packed: %t, want 2", phase.Name, revision.Name, len(phase.Objects), phase.Packed != nil)
				}
				for e := range phase.Objects {
					phase.Objects[e] = hub.RevisionObject{Name: "scribbled"}
				}
				_ = append(phase.Objects, hub.RevisionObject{Name: "scribbled"})
			}
		}
		return nil
	}
	const merge = "application/merge-patch+json"
	for _, tc := range []struct {
		name string
		do   func(ctx context.Context) error
	}{
		{"reads by name", func(ctx context.Context) error {
			read, err := s.storage.Revision.Stored(ctx, "e-1")
			if err != nil {
				return err
			}
			return scribble(*read)
		}},
		{"reads from the cache", func(ctx context.Context) error {
			read, err := s.storage.Revision.Get(ctx, "e-1", &metav1.GetOptions{ResourceVersion: "0"})
			if err != nil {
				return err
			}
			return scribble(*read.(*hub.ClusterExtensionRevision))
		}},
		{"reads of a chain", func(ctx context.Context) error {
			read, err := s.storage.Revision.Chain(ctx, "e")
			if err != nil {
				return err
			}
			return scribble(read...)
		}},
		{"a change of spec", func(context.Context) error {
			s.patch("e-1", merge, object{"spec": object{"lifecycleState": "Paused"}}).want(t, http.StatusOK)
			return nil
		}},
		{"a change of annotations", func(context.Context) error {
			s.patch("e-1", merge, object{"metadata": object{"annotations": object{"a": "b"}}}).want(t, http.StatusOK)
			return nil
		}},
		{"a refused change of a phase", func(context.Context) error {
			s.patch("e-1", merge, object{"spec": object{"phases": nil}}).want(t, http.StatusUnprocessableEntity)
			return nil
		}},
		{"the next revision", func(context.Context) error {
			s.create(file("e-3", inline(configMap("a", "3"), configMap("b", "3")))).want(t, http.StatusCreated)
			return nil
		}},
		{"a revision that is deleted", func(context.Context) error {
			s.remove("e-3")
			return nil
		}},
	} {
		if err := tc.do(t.Context()); err != nil {
			t.Errorf("%s: %v", tc.name, err)
		}
		now := cachedPhases(t, s)
		for name, was := range cached {
			if now[name] != was {
				t.Errorf("%s changed %s: %+v, want %+v", tc.name, name, now[name], was)
			}
		}
	}
}
