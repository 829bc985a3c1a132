package sharing

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"

	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/install"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
)

// listOf are entries of which one field or the other is the same in neighbours.
func listOf(n int, digest string) []olm.RevisionObject {
	var objects []olm.RevisionObject
	for i := range n {
		objects = append(objects, olm.RevisionObject{
			APIVersion: "v1", Kind: fmt.Sprintf("Kind%d", i/2), Namespace: "n", Name: fmt.Sprintf("name-%d", i),
			Digest: fmt.Sprintf("%s-%d", digest, i), Size: int64(i), CollisionProtection: olm.CollisionProtectionPrevent,
		})
	}
	return objects
}

// here is where the entries of these tests are.
var here = place{chain: "e", phase: "one"}

func phaseOf(name string, objects []olm.RevisionObject) *olm.ClusterExtensionRevision {
	return &olm.ClusterExtensionRevision{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       olm.ClusterExtensionRevisionSpec{Phases: []olm.RevisionPhase{{Name: "one", Objects: objects}}},
	}
}

func TestShare(t *testing.T) {
	entries := NewEntries()
	inline := listOf(3, "a")
	inline[1].Object = &olm.Manifest{Raw: []byte("{}")}
	first := entries.share(here, listOf(3, "a"))
	for name, tc := range map[string]struct {
		reason  string
		objects []olm.RevisionObject
		same    bool
	}{
		"Equal":  {"the same phase again", listOf(3, "a"), true},
		"Longer": {"another phase that begins like it", listOf(4, "a"), false},
		"Other":  {"another content", listOf(3, "b"), false},
		"Inline": {"a manifest is the request's", inline, false},
		"Resized": {"everything counts", func() []olm.RevisionObject {
			objects := listOf(3, "a")
			objects[2].Size = 7
			return objects
		}(), false},
		"Empty": {reason: "nothing to share"},
	} {
		t.Run(name, func(t *testing.T) {
			got := entries.share(here, tc.objects)
			if diff := cmp.Diff(tc.objects, got); diff != "" {
				t.Errorf("%s: entries have changed (-want +got):\n%s", tc.reason, diff)
			}
			if same := len(got) > 0 && &got[0] == &first[0]; same != tc.same {
				t.Errorf("%s: the same memory: %t, want %t", tc.reason, same, tc.same)
			}
			if name != "Inline" && cap(got) > len(got) {
				t.Errorf("%s: who appends to the entries would write behind them: %d of %d are used", tc.reason, len(got), cap(got))
			}
		})
	}
}

// What is decoded twice is one piece of memory.
func TestDecodedShare(t *testing.T) {
	scheme := apiruntime.NewScheme()
	install.Install(scheme)
	entries := NewEntries()
	plain := serializer.NewCodecFactory(scheme).LegacyCodec(v1alpha1.SchemeGroupVersion)
	codec := entries.Codec(plain)
	stored, err := apiruntime.Encode(codec, phaseOf("e-1", listOf(3, "a")))
	if err != nil {
		t.Fatal(err)
	}
	decode := func() *olm.ClusterExtensionRevision {
		t.Helper()
		into := &olm.ClusterExtensionRevision{}
		object, _, err := codec.Decode(stored, nil, into)
		if err != nil {
			t.Fatal(err)
		}
		if object != apiruntime.Object(into) {
			t.Fatal("the object is not the one to decode into")
		}
		return into
	}
	one, two := decode(), decode()
	if &one.Spec.Phases[0].Objects[0] != &two.Spec.Phases[0].Objects[0] {
		t.Error("a revision that was decoded twice has its entries twice")
	}
}

// A revision that cannot be decoded is the codec's error.
func TestSharingDecodeFails(t *testing.T) {
	scheme := apiruntime.NewScheme()
	install.Install(scheme)
	codec := NewEntries().Codec(serializer.NewCodecFactory(scheme).LegacyCodec(v1alpha1.SchemeGroupVersion))
	if _, _, err := codec.Decode([]byte("{"), nil, &olm.ClusterExtensionRevision{}); err == nil {
		t.Error("half an object was decoded")
	}
}

// Nothing is kept for revisions that are gone.
func TestEntriesAreForgotten(t *testing.T) {
	entries := NewEntries()
	kept := entries.share(here, listOf(3, "kept"))
	for i := range 100 {
		entries.share(place{chain: fmt.Sprint(i)}, listOf(3, fmt.Sprint(i)))
	}
	count := func() int { return max(entries.lists.count(), entries.newest.count()) }
	// Cleanups run on a goroutine of their own, some time after a collection.
	for deadline := time.Now().Add(time.Minute); count() > 1; runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatalf("%d phases are known, want the one that is in use", count())
		}
		runtime.GC()
	}
	if again := entries.share(here, listOf(3, "kept")); &again[0] != &kept[0] {
		t.Error("what is in use was forgotten")
	}
}

// An entry costs its own size and its text, whatever it was decoded from.
func TestCompactAllocatesThreeTimes(t *testing.T) {
	objects := listOf(60, "sha256:0123456789012345678901234567890123456789012345678901234567890123")
	if allocations := testing.AllocsPerRun(10, func() { compact(objects, nil) }); allocations > 3 {
		t.Errorf("60 entries are %.0f pieces of memory, want 3: the entries, their identities and their digests", allocations)
	}
}
