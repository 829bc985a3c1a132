package olm

import (
	"encoding/binary"
	"encoding/hex"
	"slices"
	"strings"
	"unique"
)

// PackedObjects are the entries of a phase in the form that caches keep. An object needs about 35
// bytes; an unpacked entry with its digest needs 190. Equal content is in memory once, while a
// handle refers to it. PackedObjects never change.
//
// +k8s:deepcopy-gen=false
type PackedObjects struct {
	// Shape has, of each entry, the strings of shapeOf, each after its length, then createOnly and
	// installLevel. Revisions of an extension mostly have the same shape.
	Shape unique.Handle[string]
	// Own has the digests and sizes, in the order of Shape. An entry is the number of the digest's
	// kind, the 32 bytes of the digest, and the size as a varint.
	Own unique.Handle[string]
}

// DeepCopyInto shares the content, because it never changes.
func (p *PackedObjects) DeepCopyInto(out *PackedObjects) { *out = *p }

// DeepCopy returns p, because it never changes.
func (p *PackedObjects) DeepCopy() *PackedObjects { return p }

// digestSize is the length of a digest in bytes. As text it has two digits per byte.
const digestSize = 32

// noDigest is the kind of an absent digest, which has no bytes.
const noDigest = 0

// digestKinds returns the prefixes of digests, by the number of their kind.
func digestKinds() [3]string { return [...]string{noDigest: "", 1: "sha256:", 2: "hmac-sha256:"} }

// shapeOf returns pointers to the strings of an entry that Shape has.
func shapeOf(object *RevisionObject) [5]*string {
	return [5]*string{&object.APIVersion, &object.Kind, &object.Namespace, &object.Name, (*string)(&object.CollisionProtection)}
}

// Pack packs a phase's entries. It leaves a phase unchanged if the phase has no entries, or if an
// entry has an inline manifest or a digest of another form.
func (p *RevisionPhase) Pack() {
	if len(p.Objects) == 0 {
		return
	}
	var shape []byte
	own := make([]byte, 0, len(p.Objects)*(1+digestSize+binary.MaxVarintLen32))
	for i := range p.Objects {
		object := &p.Objects[i]
		var ok bool
		if own, ok = appendDigest(own, object.Digest); !ok || object.Object != nil {
			return
		}
		own = binary.AppendVarint(own, object.Size)
		for _, s := range shapeOf(object) {
			shape = append(binary.AppendVarint(shape, int64(len(*s))), *s...)
		}
		createOnly := int64(0)
		if object.CreateOnly {
			createOnly = 1
		}
		shape = binary.AppendVarint(binary.AppendVarint(shape, createOnly), int64(object.InstallLevel))
	}
	p.Packed = &PackedObjects{Shape: unique.Make(string(shape)), Own: unique.Make(string(own))}
	p.Objects = nil
}

// appendDigest appends the number of a digest's kind, and the digest.
func appendDigest(to []byte, digest string) ([]byte, bool) {
	if digest == "" {
		return append(to, noDigest), true
	}
	for kind, prefix := range digestKinds() {
		digits, found := strings.CutPrefix(digest, prefix)
		if kind == noDigest || !found {
			continue
		}
		if len(digits) != 2*digestSize || strings.ToLower(digits) != digits {
			return nil, false
		}
		out, err := hex.AppendDecode(append(to, byte(kind)), []byte(digits))
		return out, err == nil
	}
	return nil, false
}

// unpack returns the entries. The caller may change them; only their strings are shared.
func (p *PackedObjects) unpack() []RevisionObject {
	kinds := digestKinds()
	objects := make([]RevisionObject, p.count())
	// All digests are in one piece of memory.
	var text strings.Builder
	text.Grow(len(objects) * (len(kinds[2]) + 2*digestSize))
	shape, own := reader(p.Shape.Value()), reader(p.Own.Value())
	for i := range objects {
		object := &objects[i]
		for _, s := range shapeOf(object) {
			*s = shape.next(int(shape.number()))
		}
		object.CreateOnly, object.InstallLevel = shape.number() == 1, int32(shape.number())
		if kind := own.next(1)[0]; kind != noDigest {
			start := text.Len()
			text.WriteString(kinds[kind])
			writeHex(&text, own.next(digestSize))
			object.Digest = text.String()[start:]
		}
		object.Size = own.number()
	}
	return objects
}

func (p *PackedObjects) count() int {
	n := 0
	for own := reader(p.Own.Value()); own != ""; n++ {
		if own.next(1)[0] != noDigest {
			own.next(digestSize)
		}
		own.number()
	}
	return n
}

// reader is the unread rest of a packed text.
type reader string

func (r *reader) next(n int) string {
	text := string((*r)[:n])
	*r = (*r)[n:]
	return text
}

// number returns the varint at the beginning.
func (r *reader) number() int64 {
	var buffer [binary.MaxVarintLen64]byte
	number, length := binary.Varint(buffer[:copy(buffer[:], *r)])
	*r = (*r)[length:]
	return number
}

func writeHex(to *strings.Builder, digest string) {
	const digits = "0123456789abcdef"
	for i := range len(digest) {
		to.WriteByte(digits[digest[i]>>4])
		to.WriteByte(digits[digest[i]&15])
	}
}

// Count returns the number of objects in a phase, packed or not.
func (p *RevisionPhase) Count() int {
	if p.Packed != nil {
		return p.Packed.count()
	}
	return len(p.Objects)
}

// List returns the entries of a phase. If the phase is packed, the caller may change them; only
// their strings are shared.
func (p *RevisionPhase) List() []RevisionObject {
	if p.Packed != nil {
		return p.Packed.unpack()
	}
	return p.Objects
}

// Unpack unpacks the entries of a phase.
func (p *RevisionPhase) Unpack() { p.Objects, p.Packed = p.List(), nil }

// Unpack unpacks the phases of a revision, into new memory. It does not change phases that the
// revision shares with a cache.
func (r *ClusterExtensionRevision) Unpack() {
	r.Spec.Phases = slices.Clone(r.Spec.Phases)
	for i := range r.Spec.Phases {
		r.Spec.Phases[i].Unpack()
	}
}
