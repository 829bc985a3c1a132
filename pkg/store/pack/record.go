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

// checksum is a SHA-256.
type checksum [sha256.Size]byte

func sum(data []byte) checksum { return sha256.Sum256(data) }

func (c checksum) String() string { return hex.EncodeToString(c[:]) }

// header is what a pack's record says about its frame. The record is, in
// version 1:
//
//	"PKP" 1
//	SHA-256 of the frame
//	uvarint length of the content
//	uvarint length of the frame
//	uvarint number of chunks
//	SHA-256 of each chunk
//	the frame, when there are no chunks
//
// Almost all packs are one record: writing it is atomic, and reading it is one
// request.
type header struct {
	frame               checksum
	contentLen, compLen int
	chunks              []checksum
}

func packFormat() store.Format {
	return store.Format{Kind: "pack", Magic: "PKP", Version: 1, Limit: ChunkBytes}
}

// sealed is a pack as it goes to etcd.
type sealed struct {
	record []byte
	chunks []chunk
}

type chunk struct {
	digest checksum
	data   []byte
}

// seal compresses content, and cuts it into chunks when one record cannot hold
// it.
func seal(content []byte, chunkBytes int) (sealed, error) {
	frame, err := store.Compress(content)
	if err != nil {
		return sealed{}, err
	}
	h := header{frame: sum(frame), contentLen: len(content), compLen: len(frame)}
	if body := append(h.encode(), frame...); len(body) <= chunkBytes {
		record, err := packFormat().Wrap(body)
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
	record, err := packFormat().Wrap(h.encode())
	return sealed{record: record, chunks: chunks}, err
}

func (h header) encode() []byte {
	out := slices.Clone(h.frame[:])
	out = binary.AppendUvarint(out, uint64(h.contentLen))
	out = binary.AppendUvarint(out, uint64(h.compLen))
	out = binary.AppendUvarint(out, uint64(len(h.chunks)))
	for _, c := range h.chunks {
		out = append(out, c[:]...)
	}
	return out
}

// parseRecord returns what a record says, and the frame when it is in it.
func parseRecord(key string, record []byte) (header, []byte, error) {
	body, err := packFormat().Unwrap(key, record)
	if err != nil {
		return header{}, nil, err
	}
	r := reader{rest: body}
	h := header{frame: r.checksum(), contentLen: r.length(), compLen: r.length()}
	count := r.length()
	if count > maxChunks {
		return header{}, nil, packFormat().Damaged(key, fmt.Errorf("it names %d chunks, %d are allowed", count, maxChunks))
	}
	for range count {
		h.chunks = append(h.chunks, r.checksum())
	}
	if r.short {
		return header{}, nil, packFormat().Damaged(key, errors.New("it ends too early"))
	}
	if count > 0 && len(r.rest) > 0 {
		return header{}, nil, packFormat().Damaged(key, fmt.Errorf("it goes on for %d bytes behind its end", len(r.rest)))
	}
	return h, r.rest, nil
}

// open returns the content of a frame, which must be the one that the header
// speaks of. It needs memory for limit bytes at most.
func (h header) open(frame []byte, limit int) ([]byte, error) {
	if len(frame) != h.compLen || sum(frame) != h.frame {
		return nil, fmt.Errorf("its %d compressed bytes have checksum %s, want %d bytes with %s", len(frame), sum(frame), h.compLen, h.frame)
	}
	if h.contentLen > limit {
		return nil, fmt.Errorf("it says to have %d bytes of content: %w", h.contentLen, store.ErrTooLarge)
	}
	content, err := store.Decompress(frame, h.contentLen)
	if err != nil {
		return nil, err
	}
	if len(content) != h.contentLen {
		return nil, fmt.Errorf("it has %d bytes of content, and says to have %d", len(content), h.contentLen)
	}
	return content, nil
}

// reader takes a record apart. Once something is missing it returns zeros and
// short is true.
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
