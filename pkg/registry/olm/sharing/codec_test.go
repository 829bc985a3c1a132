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

// listOf returns entries with digests as the store computes them.
func listOf(n int, content string) []olm.RevisionObject {
	var objects []olm.RevisionObject
	for i := range n {
		objects = append(objects, olm.RevisionObject{
			APIVersion: "v1", Kind: fmt.Sprintf("Kind%d", i/2), Namespace: "n", Name: fmt.Sprintf("name-%d", i),
			Digest: fmt.Sprintf("sha256:%x", sha256.Sum256(fmt.Append(nil, content, i))), Size: int64(i), CollisionProtection: olm.CollisionProtectionPrevent,
		})
	}
	return objects
}

// newCodec returns a codec of the store, and a function that encodes and decodes a revision.
func newCodec(t *testing.T) (codec apiruntime.Codec, again func(*olm.ClusterExtensionRevision) *olm.ClusterExtensionRevision) {
	t.Helper()
	scheme := apiruntime.NewScheme()
	install.Install(scheme)
	codec = Codec(serializer.NewCodecFactory(scheme).LegacyCodec(v1alpha1.SchemeGroupVersion))
	return codec, func(revision *olm.ClusterExtensionRevision) *olm.ClusterExtensionRevision {
		t.Helper()
		stored, err := apiruntime.Encode(codec, revision)
		if err != nil {
			t.Fatal(err)
		}
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
}

func withObjects(name string, objects []olm.RevisionObject) *olm.ClusterExtensionRevision {
	return &olm.ClusterExtensionRevision{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       olm.ClusterExtensionRevisionSpec{Phases: []olm.RevisionPhase{{Name: "one", Objects: objects}}},
	}
}

// TestDecodedRevisionsShare: a decoded revision has memory only for its own digests and sizes. It
// shares the rest with other revisions. Unpacking a revision changes no other revision.
func TestDecodedRevisionsShare(t *testing.T) {
	const n = 60
	_, again := newCodec(t)
	one, same, next := again(withObjects("e-1", listOf(n, "a"))), again(withObjects("e-1", listOf(n, "a"))), again(withObjects("e-2", listOf(n, "b")))
	packed := func(revision *olm.ClusterExtensionRevision) olm.PackedObjects { return *revision.Spec.Phases[0].Packed }
	if packed(one) != packed(same) {
		t.Error("a revision that is read twice is in memory twice")
	}
	if packed(one).Shape != packed(next).Shape {
		t.Error("the next revision of an extension has a shape of its own")
	}
	if most := 36 * n; len(packed(next).Own.Value()) > most {
		t.Errorf("the next revision has %d bytes of its own, want at most %d", len(packed(next).Own.Value()), most)
	}
	one.Unpack()
	if diff := cmp.Diff(listOf(n, "a"), one.Spec.Phases[0].Objects); diff != "" {
		t.Errorf("unpacked (-want +got):\n%s", diff)
	}
	clear(one.Spec.Phases[0].Objects)
	if same.Unpack(); !cmp.Equal(listOf(n, "a"), same.Spec.Phases[0].Objects) {
		t.Error("a change of one revision changed another one")
	}
}

// TestUnknownDigestsAreNotPacked: a revision whose digests cannot be packed is decoded unpacked.
func TestUnknownDigestsAreNotPacked(t *testing.T) {
	objects := listOf(3, "a")
	objects[1].Digest = "sha512:00"
	_, again := newCodec(t)
	if diff := cmp.Diff(objects, again(withObjects("e-1", objects)).Spec.Phases[0].Objects); diff != "" {
		t.Errorf("read (-stored +read):\n%s", diff)
	}
}

// TestSharingDecodeFails: a decoding error of the inner codec is returned.
func TestSharingDecodeFails(t *testing.T) {
	codec, _ := newCodec(t)
	if _, _, err := codec.Decode([]byte("{"), nil, &olm.ClusterExtensionRevision{}); err == nil {
		t.Error("half an object was decoded")
	}
}

// TestShareFields: equal fields of managers share memory while they are in use.
func TestShareFields(t *testing.T) {
	codec, again := newCodec(t)
	read := func(name string) *metav1.FieldsV1 {
		revision := withObjects("e-1", nil)
		revision.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "nobody"}, {Manager: name, FieldsV1: metav1.NewFieldsV1(`{"f:` + name + `":{}}`)}}
		managers := again(revision).ManagedFields
		if diff := cmp.Diff(revision.ManagedFields, managers); diff != "" {
			t.Errorf("managers have changed (-want +got):\n%s", diff)
		}
		return managers[1].FieldsV1
	}
	one, two, other := read("a"), read("a"), read("b")
	if one != two {
		t.Error("equal fields are there twice")
	}
	if one == other {
		t.Error("fields that differ are one")
	}
	runtime.KeepAlive(other)
	for i := range 100 {
		read(fmt.Sprint("c", i))
	}
	fields := codec.(sharingCodec).fields
	known := func() int {
		fields.mu.Lock()
		defer fields.mu.Unlock()
		return len(fields.known)
	}
	// Cleanups run in their own goroutine, some time after a garbage collection.
	for deadline := time.Now().Add(time.Minute); known() > 2; runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatalf("%d fields are known, want at most the two that are in use", known())
		}
		runtime.GC()
	}
	if again := read("a"); again != one {
		t.Error("fields that are in use were forgotten")
	}
}
