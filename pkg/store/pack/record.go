package pack

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	"github.com/penstock-project/penstock/pkg/store"
)

type checksum [sha256.Size]byte

func sum(data []byte) checksum { return sha256.Sum256(data) }

func (c checksum) String() string { return hex.EncodeToString(c[:]) }

// header describes the frame of a pack in its record. The record of a whole pack is
//
//	"PKP" 1
//	SHA-256 of the frame
//	uvarint length of the content
//	uvarint length of the frame
//	uvarint number of chunks
//	SHA-256 of each chunk
//	the frame, if there are no chunks
//
// The record of a delta is
//
//	"PKP" 2
//	SHA-256 of the frame
//	uvarint length of the content
//	uvarint length of the frame
//	root of the base, without "sha256:"
//	SHA-256 of the base's content
//	uvarint distance
//	the frame, compressed with the base's content as dictionary
//
// Almost all packs are one record: writing it is atomic, and reading it is one request. A delta is
// always one record, and so is its base.
type header struct {
	frame               checksum
	contentLen, compLen int
	// base is nil for a whole pack.
	base   *base
	chunks []checksum
}

// base describes the base of a delta.
type base struct {
	root, content checksum
	// distance is the number of deltas since the base was written, including this delta.
	distance int
}

func (b base) name() string { return rootPrefix + b.root.String() }

const (
	formatWhole = 1
	formatDelta = 2
)

// packFormat returns the format of deltas. It reads both formats.
func packFormat() store.Format {
	return store.Format{Kind: "pack", Magic: "PKP", Version: formatDelta, Limit: ChunkBytes}
}

func fullFormat() store.Format {
	f := packFormat()
	f.Version = formatWhole
	return f
}

// Record is the description of a pack in its record, without its content.
type Record struct {
	// Format is 1 for a whole pack and 2 for a delta.
	Format int
	// Base is the root of the delta's base; empty for a whole pack. Without its base, a delta
	// cannot be read.
	Base string
	// Distance is the number of deltas since the base was written, including this one; 0 for a
	// whole pack.
	Distance int
	// Chunks are the digests of the chunks of a whole pack, as in store.Keys.Chunk.
	Chunks []string
	// ContentBytes is the size of the content. StoredBytes is its size in the record or the chunks.
	ContentBytes, StoredBytes int
}

// ParseRecord returns the references of a pack's record. It reads no other record and verifies no
// content. Errors name the key: a *store.FormatError for a newer format, a *store.DamagedError for
// other invalid bytes.
func ParseRecord(key string, record []byte) (Record, error) {
	h, _, err := parseRecord(key, record)
	if err != nil {
		return Record{}, err
	}
	r := Record{Format: formatWhole, ContentBytes: h.contentLen, StoredBytes: h.compLen}
	if h.base != nil {
		r.Format, r.Base, r.Distance = formatDelta, h.base.name(), h.base.distance
	}
	for _, c := range h.chunks {
		r.Chunks = append(r.Chunks, c.String())
	}
	return r, nil
}

// sealed is a pack in its stored form.
type sealed struct {
	record []byte
	chunks []chunk
}

type chunk struct {
	digest checksum
	data   []byte
}

// seal compresses content, and cuts it into chunks if it does not fit into one record.
func seal(content []byte, chunkBytes int) (sealed, error) {
	frame, err := store.CompressWith(nil, content)
	if err != nil {
		return sealed{}, err
	}
	h := header{frame: sum(frame), contentLen: len(content), compLen: len(frame)}
	if body := append(h.encode(), frame...); len(body) <= chunkBytes {
		record, err := fullFormat().Wrap(body)
		return sealed{record: record}, err
	}
	if limit := maxChunks * chunkBytes; len(frame) > limit {
		return sealed{}, &TooLargeError{What: "compressed manifests", Bytes: len(frame), Max: limit}
	}
	var chunks []chunk
	for data := range slices.Chunk(frame, chunkBytes) {
		c := chunk{digest: sum(data), data: data}
		chunks = append(chunks, c)
		h.chunks = append(h.chunks, c.digest)
	}
	record, err := fullFormat().Wrap(h.encode())
	return sealed{record: record, chunks: chunks}, err
}

func (h header) encode() []byte {
	out := slices.Clone(h.frame[:])
	out = binary.AppendUvarint(out, uint64(h.contentLen))
	out = binary.AppendUvarint(out, uint64(h.compLen))
	if h.base != nil {
		out = append(out, h.base.root[:]...)
		out = append(out, h.base.content[:]...)
		return binary.AppendUvarint(out, uint64(h.base.distance))
	}
	out = binary.AppendUvarint(out, uint64(len(h.chunks)))
	for _, c := range h.chunks {
		out = append(out, c[:]...)
	}
	return out
}

// parseRecord returns the header in a record, and the frame if the record contains it.
func parseRecord(key string, record []byte) (header, []byte, error) {
	body, err := packFormat().Unwrap(key, record)
	if err != nil {
		return header{}, nil, err
	}
	r := reader{rest: body}
	h := header{frame: r.checksum(), contentLen: r.length(), compLen: r.length()}
	if record[len(packFormat().Magic)] == formatDelta {
		h.base = &base{root: r.checksum(), content: r.checksum(), distance: r.length()}
	} else if h.chunks, err = r.chunks(); err != nil {
		return header{}, nil, packFormat().Damaged(key, err)
	}
	if r.short {
		return header{}, nil, packFormat().Damaged(key, errors.New("it ends too early"))
	}
	if len(h.chunks) > 0 && len(r.rest) > 0 {
		return header{}, nil, packFormat().Damaged(key, fmt.Errorf("it continues for %d bytes after its end", len(r.rest)))
	}
	return h, r.rest, nil
}

// open returns the content of a frame, which must match the header. A delta needs the content of
// its base. open takes at most limit bytes of memory.
func (h header) open(frame, dictionary []byte, limit int) ([]byte, error) {
	if len(frame) != h.compLen || sum(frame) != h.frame {
		return nil, fmt.Errorf("its %d compressed bytes have checksum %s, want %d bytes with %s", len(frame), sum(frame), h.compLen, h.frame)
	}
	if h.contentLen > limit {
		return nil, fmt.Errorf("its header says %d bytes of content: %w", h.contentLen, store.ErrTooLarge)
	}
	decompress := store.Decompress
	if h.base != nil {
		decompress = func(frame []byte, limit int) ([]byte, error) {
			return store.DecompressWith(dictionary, frame, limit)
		}
	}
	content, err := decompress(frame, h.contentLen)
	if err != nil {
		return nil, err
	}
	if len(content) != h.contentLen {
		return nil, fmt.Errorf("it has %d bytes of content, but its header says %d", len(content), h.contentLen)
	}
	return content, nil
}

// reader parses a record. If the record ends too early, it returns zeros and sets short.
type reader struct {
	rest  []byte
	short bool
}

func (r *reader) checksum() checksum {
	var c checksum
	if copy(c[:], r.rest) < len(c) {
		r.rest, r.short = nil, true
		return c
	}
	r.rest = r.rest[len(c):]
	return c
}

func (r *reader) length() int {
	n, size := binary.Uvarint(r.rest)
	if size <= 0 || n > 1<<40 {
		r.rest, r.short = nil, true
		return 0
	}
	r.rest = r.rest[size:]
	return int(n)
}

func (r *reader) chunks() ([]checksum, error) {
	count := r.length()
	if count > maxChunks {
		return nil, fmt.Errorf("it names %d chunks, %d are allowed", count, maxChunks)
	}
	var chunks []checksum
	for range count {
		chunks = append(chunks, r.checksum())
	}
	return chunks, nil
}
