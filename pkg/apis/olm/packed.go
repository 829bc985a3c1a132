package olm

import (
	"encoding/binary"
	"encoding/hex"
	"slices"
	"strings"
)

// PackedObjects is what a phase lists, as caches keep it: 35 bytes for an object, where an
// entry with its digest takes 190. It never changes, so copies are of the same memory.
//
// +k8s:deepcopy-gen=false
type PackedObjects struct {
	// Shape is the entries without their digests and sizes. Revisions of an extension mostly
	// have the same, in one piece of memory: nobody may write to it.
	Shape []RevisionObject
	// Own is the digests and sizes, in the order of Shape: for each the number of
	// the digest's kind, 32 bytes of digest, and the size as a varint.
	Own string
}

// digestSize is the length of a digest in bytes; as text it has two digits for each.
const digestSize = 32

// noDigest is the kind of an absent digest, which has no bytes.
const noDigest = 0

// digestKinds are how digests begin, by the number of their kind.
func digestKinds() [3]string { return [...]string{noDigest: "", 1: "sha256:", 2: "hmac-sha256:"} }

// Pack returns entries in their packed form, with a shape of their own. It is false when they have none:
// when one has its manifest inline, or a digest of another form.
func Pack(objects []RevisionObject) (PackedObjects, bool) {
	shape := slices.Clip(slices.Clone(objects))
	own := make([]byte, 0, len(objects)*(1+digestSize+binary.MaxVarintLen32))
	for i := range shape {
		object := &shape[i]
		if object.Object != nil {
			return PackedObjects{}, false
		}
		var ok bool
		if own, ok = appendDigest(own, object.Digest); !ok {
			return PackedObjects{}, false
		}
		own = binary.AppendVarint(own, object.Size)
		object.Digest, object.Size = "", 0
	}
	return PackedObjects{Shape: shape, Own: string(own)}, true
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

// Unpack returns the entries, which are the caller's. Their text is shared.
func (p *PackedObjects) Unpack() []RevisionObject {
	kinds := digestKinds()
	objects := slices.Clip(slices.Clone(p.Shape))
	// All digests are one piece of memory.
	var text strings.Builder
	text.Grow(len(objects) * (len(kinds[2]) + 2*digestSize))
	var digits [2 * digestSize]byte
	own := p.Own
	for i := range objects {
		kind := own[0]
		own = own[1:]
		if kind != noDigest {
			start := text.Len()
			text.WriteString(kinds[kind])
			hexDigits(&digits, own[:digestSize])
			text.Write(digits[:])
			objects[i].Digest = text.String()[start:]
			own = own[digestSize:]
		}
		size, length := varint(own)
		objects[i].Size, own = size, own[length:]
	}
	return objects
}

func hexDigits(to *[2 * digestSize]byte, digest string) {
	const digits = "0123456789abcdef"
	for i := range len(digest) {
		to[2*i], to[2*i+1] = digits[digest[i]>>4], digits[digest[i]&15]
	}
}

// varint reads the number that a text begins with, and how many bytes it takes.
func varint(text string) (int64, int) {
	var buffer [binary.MaxVarintLen64]byte
	return binary.Varint(buffer[:copy(buffer[:], text)])
}

// DeepCopyInto shares what never changes.
func (p *PackedObjects) DeepCopyInto(out *PackedObjects) { *out = *p }

// DeepCopy returns the same: it never changes.
func (p *PackedObjects) DeepCopy() *PackedObjects { return p }

// Count is how many objects a phase lists, packed or not.
func (p *RevisionPhase) Count() int {
	if p.Packed != nil {
		return len(p.Packed.Shape)
	}
	return len(p.Objects)
}

// List returns what a phase lists. Of a packed phase they are the caller's, but
// for their text.
func (p *RevisionPhase) List() []RevisionObject {
	if p.Packed != nil {
		return p.Packed.Unpack()
	}
	return p.Objects
}

// Unpack gives a revision the entries of its phases, in memory of its own. Phases that it
// shares with others, as one from a cache does, stay as they are.
func (r *ClusterExtensionRevision) Unpack() {
	packed := func(phase RevisionPhase) bool { return phase.Packed != nil }
	if !slices.ContainsFunc(r.Spec.Phases, packed) {
		return
	}
	r.Spec.Phases = slices.Clone(r.Spec.Phases)
	for i := range r.Spec.Phases {
		phase := &r.Spec.Phases[i]
		phase.Objects, phase.Packed = phase.List(), nil
	}
}
