package sharing

import (
	"crypto/sha256"
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
	stored, err := apiruntime.Encode(codec, phaseOf("e-1", digested(3, "a")))
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
	if phase := one.Spec.Phases[0]; phase.Packed == nil || phase.Objects != nil {
		t.Fatal("what was decoded is not packed")
	}
	if one.Spec.Phases[0].Packed != two.Spec.Phases[0].Packed {
		t.Error("a revision that was decoded twice has its entries twice")
	}
	encode := func(revision *olm.ClusterExtensionRevision) string {
		t.Helper()
		encoded, err := apiruntime.Encode(codec, revision)
		if err != nil {
			t.Fatal(err)
		}
		return string(encoded)
	}
	// Code that updates a revision changes what it got.
	one.Unpack()
	if diff := cmp.Diff(encode(one), encode(two)); diff != "" {
		t.Errorf("what is packed is stored otherwise (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(digested(3, "a"), one.Spec.Phases[0].Objects); diff != "" {
		t.Errorf("unpacked (-want +got):\n%s", diff)
	}
	clear(one.Spec.Phases[0].Objects)
	if diff := cmp.Diff(digested(3, "a"), two.Spec.Phases[0].List()); diff != "" {
		t.Errorf("a change of one revision changed another one (-want +got):\n%s", diff)
	}
}

// digested are entries with digests as the store makes them.
func digested(n int, content string) []olm.RevisionObject {
	objects := listOf(n, "")
	for i := range objects {
		objects[i].Digest = fmt.Sprintf("sha256:%x", sha256.Sum256(fmt.Append(nil, content, i)))
	}
	return objects
}

// Of the next revision only the digests and sizes are its own.
func TestNeighboursShareShapes(t *testing.T) {
	const n = 60
	entries := NewEntries()
	phase := func(content string) *olm.RevisionPhase {
		phase := &olm.RevisionPhase{Objects: digested(n, content)}
		entries.pack(here, phase)
		return phase
	}
	one, two, longer := phase("a"), phase("b"), &olm.RevisionPhase{Objects: digested(n+1, "a")}
	entries.pack(here, longer)
	if &one.Packed.Shape[0] != &two.Packed.Shape[0] {
		t.Error("revisions of the same objects have two shapes")
	}
	if &one.Packed.Shape[0] == &longer.Packed.Shape[0] {
		t.Error("revisions of different objects have one shape")
	}
	if most := 36 * n; len(two.Packed.Own) > most {
		t.Errorf("the next revision has %d bytes of its own, want at most %d", len(two.Packed.Own), most)
	}
	if diff := cmp.Diff(digested(n, "b"), two.List()); diff != "" {
		t.Errorf("packed (-want +got):\n%s", diff)
	}
	// What has no packed form is shared as it is.
	plain := &olm.RevisionPhase{Objects: listOf(3, "no-digest")}
	entries.pack(here, plain)
	if diff := cmp.Diff(&olm.RevisionPhase{Objects: listOf(3, "no-digest")}, plain); diff != "" {
		t.Errorf("not packed (-want +got):\n%s", diff)
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
	packed := func(at place, content string) *olm.PackedObjects {
		phase := &olm.RevisionPhase{Objects: digested(4, content)}
		entries.pack(at, phase)
		return phase.Packed
	}
	keptPacked := packed(place{chain: "packed"}, "kept")
	for i := range 100 {
		entries.share(place{chain: fmt.Sprint(i)}, listOf(3, fmt.Sprint(i)))
		packed(place{chain: fmt.Sprint("packed", i)}, fmt.Sprint(i))
	}
	count := func() int { return max(entries.lists.count(), entries.newest.count(), entries.packed.count()+1) }
	// Cleanups run on a goroutine of their own, some time after a collection.
	for deadline := time.Now().Add(time.Minute); count() > 2; runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatalf("%d phases are known, want the two that are in use", count())
		}
		runtime.GC()
	}
	if again := entries.share(here, listOf(3, "kept")); &again[0] != &kept[0] {
		t.Error("what is in use was forgotten")
	}
	if packed(place{chain: "packed"}, "kept") != keptPacked {
		t.Error("what is packed and in use was forgotten")
	}
}

// An entry costs its own size and its text, whatever it was decoded from.
func TestCompactAllocatesThreeTimes(t *testing.T) {
	objects := listOf(60, "sha256:0123456789012345678901234567890123456789012345678901234567890123")
	if allocations := testing.AllocsPerRun(10, func() { compact(objects, nil) }); allocations > 3 {
		t.Errorf("60 entries are %.0f pieces of memory, want 3: the entries, their identities and their digests", allocations)
	}
}
