package clusterextensionrevision

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/store/pack"
)

// brokenBodies fails on every write.
type brokenBodies struct {
	Bodies
	err error
}

func (b brokenBodies) PutInChain(context.Context, []manifest.Object, []string) (string, error) {
	return "", b.err
}

// TestCollectCountsSecrets: entries do not show the size of Secrets. An error about the total size
// is only for a user who has the manifests.
func TestCollectCountsSecrets(t *testing.T) {
	revision, held := &olm.ClusterExtensionRevision{ObjectMeta: metav1.ObjectMeta{Name: "e-1"}}, newStaged()
	revision.Spec.Phases = []olm.RevisionPhase{{Objects: make([]olm.RevisionObject, 2)}}
	for i, name := range []string{"a", "b"} {
		object, err := testDigester().New(map[string]any{
			"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": name},
			"stringData": map[string]any{"k": strings.Repeat("x", v1alpha1.MaxManifestBytes/2)},
		})
		if err != nil {
			t.Fatal(err)
		}
		held.add(object)
		writeEntry(&revision.Spec.Phases[0].Objects[i], object)
	}
	_, err := (&contents{}).collect(t.Context(), revision, held)
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "16777216 are allowed") {
		t.Errorf("got %v, want 422 that names the limit", err)
	}
}

// lending is a store that has one manifest and accepts no writes.
type lending struct{ object manifest.Object }

func (l lending) Read(context.Context, string) (map[manifest.Digest][]byte, error) {
	return map[manifest.Digest][]byte{l.object.Digest: l.object.JSON}, nil
}

func (l lending) PutInChain(context.Context, []manifest.Object, []string) (string, error) {
	return "", &pack.TooLargeError{What: "manifests", Bytes: 4711, Max: 1}
}

// TestBorrowedSecretHidesSizes: a user who names a Secret by digest must not learn its size by
// adding other manifests up to the limit.
func TestBorrowedSecretHidesSizes(t *testing.T) {
	for kind, hidden := range map[string]bool{"Secret": true, "ConfigMap": false} {
		t.Run(kind, func(t *testing.T) {
			borrowed, err := testDigester().New(map[string]any{"apiVersion": "v1", "kind": kind, "metadata": map[string]any{"name": "a"}, "data": map[string]any{"k": "eA=="}})
			if err != nil {
				t.Fatal(err)
			}
			padding, err := testDigester().New(map[string]any{
				"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "b"}, "data": map[string]any{"k": strings.Repeat("x", v1alpha1.MaxManifestBytes)},
			})
			if err != nil {
				t.Fatal(err)
			}
			older := olm.ClusterExtensionRevision{ObjectMeta: metav1.ObjectMeta{Name: "e-1"}}
			older.Spec.Phases = []olm.RevisionPhase{{Objects: make([]olm.RevisionObject, 1)}}
			writeEntry(&older.Spec.Phases[0].Objects[0], borrowed)
			revision := &olm.ClusterExtensionRevision{ObjectMeta: metav1.ObjectMeta{Name: "e-2"}}
			revision.Spec.Phases = []olm.RevisionPhase{{Objects: make([]olm.RevisionObject, 2)}}
			writeEntry(&revision.Spec.Phases[0].Objects[0], borrowed)
			writeEntry(&revision.Spec.Phases[0].Objects[1], padding)

			held := newStaged()
			held.add(padding)
			held.setChain([]olm.ClusterExtensionRevision{older}, 0)
			c := &contents{bodies: lending{borrowed}}
			total := strconv.Itoa(len(borrowed.JSON) + len(padding.JSON))
			_, err = c.collect(t.Context(), revision, held)
			if !apierrors.IsInvalid(err) || strings.Contains(err.Error(), total) == hidden {
				t.Errorf("the answer to too many bytes: %v", err)
			}
			_, err = c.put(t.Context(), revision, held, nil, nil)
			if !apierrors.IsInvalid(err) || strings.Contains(err.Error(), "4711") == hidden {
				t.Errorf("the answer to a pack that is too large: %v", err)
			}
		})
	}
}

func TestPutErrors(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		err    error
		want   func(error) bool
	}{
		"TooLarge": {"the client can do something about it", &pack.TooLargeError{What: "manifests", Bytes: 2, Max: 1}, apierrors.IsInvalid},
		"Other":    {"the client cannot", errors.New("etcd is away"), apierrors.IsInternalError},
	} {
		t.Run(name, func(t *testing.T) {
			c := &contents{bodies: brokenBodies{err: tc.err}}
			if _, err := c.put(t.Context(), &olm.ClusterExtensionRevision{}, newStaged(), nil, nil); !tc.want(err) {
				t.Errorf("%s: got %v", tc.reason, err)
			}
		})
	}
}
