package olm

import (
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// packable draws entries as the store holds them.
func packable() *rapid.Generator[[]RevisionObject] {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) RevisionObject {
		word := rapid.StringMatching(`[a-z]{0,8}`)
		return RevisionObject{
			APIVersion: word.Draw(t, "apiVersion"), Kind: word.Draw(t, "kind"), Namespace: word.Draw(t, "namespace"), Name: word.Draw(t, "name"),
			Digest: rapid.OneOf(rapid.Just(""), rapid.StringMatching(`(hmac-)?sha256:[0-9a-f]{64}`)).Draw(t, "digest"),
			Size:   rapid.Int64().Draw(t, "size"), CreateOnly: rapid.Bool().Draw(t, "createOnly"),
			InstallLevel: rapid.Int32().Draw(t, "level"), CollisionProtection: CollisionProtection(word.Draw(t, "collisionProtection")),
		}
	}), 0, 20)
}

// clone copies entries. Entries of these tests have no inline manifest.
func clone(objects []RevisionObject) []RevisionObject { return append([]RevisionObject{}, objects...) }

// TestPack: unpacking returns the same entries each time, and a change of one result changes no
// other result.
func TestPack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		objects := packable().Draw(t, "objects")
		want := clone(objects)
		phase := RevisionPhase{Name: "one", Objects: objects}
		phase.Pack()
		if diff := cmp.Diff(want, objects); diff != "" {
			t.Fatalf("packing changed what it was given (-want +got):\n%s", diff)
		}
		if phase.Objects != nil && len(want) > 0 {
			t.Fatal("it was not packed")
		}
		cached := ClusterExtensionRevision{Spec: ClusterExtensionRevisionSpec{Phases: []RevisionPhase{phase}}}
		before := phase
		for range 2 {
			// The watch cache returns a shallow copy: only the outermost structure belongs to the
			// reader.
			read := cached
			if rapid.Bool().Draw(t, "copied") {
				read = *cached.DeepCopy()
			}
			read.Unpack()
			phase := &read.Spec.Phases[0]
			if diff := cmp.Diff(want, phase.Objects); diff != "" {
				t.Fatalf("unpacked (-want +got):\n%s", diff)
			}
			if phase.Packed != nil || phase.Count() != len(want) || cached.Spec.Phases[0].Count() != len(want) {
				t.Fatalf("it has %d objects and is packed: %t; the cached one has %d, want %d", phase.Count(), phase.Packed != nil, cached.Spec.Phases[0].Count(), len(want))
			}
			phase.Name = "scribbled"
			for i := range phase.Objects {
				phase.Objects[i] = RevisionObject{Name: "scribbled", Digest: "scribbled", Size: 7}
			}
			_ = append(phase.Objects, RevisionObject{Name: "scribbled"})
		}
		if diff := cmp.Diff([]RevisionPhase{before}, cached.Spec.Phases, cmp.Comparer(func(a, b *PackedObjects) bool { return a == b })); diff != "" {
			t.Fatalf("the cached one has changed (-want +got):\n%s", diff)
		}
	})
}

// TestPackKeepsEachField fails for a new field of RevisionObject that is not packed. A field that
// refers to memory would be shared by all readers, so it needs a decision, like Object.
func TestPackKeepsEachField(t *testing.T) {
	entry := reflect.TypeFor[RevisionObject]()
	for i := range entry.NumField() {
		var object RevisionObject
		switch field := reflect.ValueOf(&object).Elem().Field(i); {
		case entry.Field(i).Name == "Object":
			continue // not packed
		case entry.Field(i).Name == "Digest":
			object.Digest = "sha256:" + strings.Repeat("0a", digestSize)
		case field.Kind() == reflect.String:
			field.SetString("x")
		case field.CanInt():
			field.SetInt(7)
		case field.Kind() == reflect.Bool:
			field.SetBool(true)
		default:
			t.Errorf("%s is a %s: say how it is packed and who may write to it", entry.Field(i).Name, field.Kind())
			continue
		}
		phase := RevisionPhase{Objects: []RevisionObject{object}}
		phase.Pack()
		packed := phase.Packed != nil
		if phase.Unpack(); !packed || phase.Objects[0] != object {
			t.Errorf("%s is lost: %+v, want %+v", entry.Field(i).Name, phase.Objects, object)
		}
	}
}

// Revisions without a packed form are not packed.
func TestPackRefuses(t *testing.T) {
	digits := strings.Repeat("0a", digestSize)
	for name, tc := range map[string]struct {
		reason string
		object RevisionObject
	}{
		"Inline":    {"a manifest is the request's", RevisionObject{Object: &Manifest{}}},
		"UpperCase": {"it would come back in lower case", RevisionObject{Digest: "sha256:" + strings.ToUpper(digits)}},
		"Short":     {"it has no 32 bytes", RevisionObject{Digest: "sha256:" + digits[2:]}},
		"Long":      {"it has more than 32 bytes", RevisionObject{Digest: "sha256:" + digits + "00"}},
		"NoDigits":  {"it is not hexadecimal", RevisionObject{Digest: "sha256:" + digits[1:] + "g"}},
		"Unknown":   {"another algorithm", RevisionObject{Digest: "sha512:" + digits}},
	} {
		t.Run(name, func(t *testing.T) {
			objects := []RevisionObject{{Digest: "sha256:" + digits}, tc.object}
			phase := RevisionPhase{Objects: objects}
			if phase.Pack(); phase.Packed != nil || !reflect.DeepEqual(phase.Objects, objects) {
				t.Errorf("it was packed: %s", tc.reason)
			}
		})
	}
}
