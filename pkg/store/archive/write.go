package archive

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/penstock-project/penstock/pkg/manifest"
)

const (
	// Format is the version that is written, and the highest that is read.
	Format = 1

	headerName = "penstock.json"
	sumsName   = "SHA256SUMS"
)

// header is the first entry. Readers that do not know the format stop there.
type header struct {
	Format int `json:"format"`
}

func chainPath(chain string) string { return "chains/" + chain + "/chain.json" }

func revisionPath(chain string, number int64) string {
	return fmt.Sprintf("chains/%s/%d/revision.json", chain, number)
}

func manifestsPath(chain string, number int64) string {
	return fmt.Sprintf("chains/%s/%d/manifests.jsonl", chain, number)
}

// Writer makes an archive: for each chain, by rising name, Chain and then Revision
// for each number that it announces. Writes out of order are refused, so
// that equal content makes equal archives.
type Writer struct {
	compressor *zstd.Encoder
	tar        *tar.Writer
	sums       bytes.Buffer
	limits     Limits
	order      order
}

// NewWriter begins an archive.
func NewWriter(w io.Writer) (*Writer, error) {
	// One goroutine: with several the frame would depend on how they are
	// scheduled.
	compressor, err := zstd.NewWriter(w, zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(true))
	if err != nil {
		return nil, fmt.Errorf("writing an archive: %w", err)
	}
	out := &Writer{compressor: compressor, tar: tar.NewWriter(compressor), limits: DefaultLimits()}
	return out, out.record(headerName, header{Format: Format})
}

// Chain writes the record of a chain. The chain's revisions must follow.
func (w *Writer) Chain(chain Chain) error {
	if err := chain.validate(w.limits); err != nil {
		return fmt.Errorf("writing an archive: %w", err)
	}
	if err := w.order.chain(chain, w.limits); err != nil {
		return fmt.Errorf("writing an archive: %w", err)
	}
	return w.record(chainPath(chain.Name), chain)
}

// Revision writes a revision and its manifests, in rollout order. The same
// content is written once.
func (w *Writer) Revision(revision Revision, objects []manifest.Object) error {
	if err := revision.validate(); err != nil {
		return fmt.Errorf("writing revision %d of extension %s: %w", revision.Number, w.order.name, err)
	}
	if err := w.order.revision(revision.Number); err != nil {
		return fmt.Errorf("writing an archive: %w", err)
	}
	var lines bytes.Buffer
	written := make(map[manifest.Digest]bool, len(objects))
	for _, object := range objects {
		if written[object.Digest] {
			continue
		}
		written[object.Digest] = true
		l := line{Digest: object.Digest, Manifest: object.JSON}
		if _, err := l.check(); err != nil {
			return fmt.Errorf("writing the manifests of %s-%d: %w", w.order.name, revision.Number, err)
		}
		// Not by encoding/json, which would escape what is canonical as it is.
		fmt.Fprintf(&lines, `{"digest":%q,"manifest":%s}`+"\n", l.Digest, l.Manifest)
	}
	if err := w.record(revisionPath(w.order.name, revision.Number), revision); err != nil {
		return err
	}
	return w.entry(manifestsPath(w.order.name, revision.Number), lines.Bytes(), w.limits.ManifestBytes)
}

// Close ends the archive. One that was not closed cannot be read.
func (w *Writer) Close() error {
	if err := w.order.end(); err != nil {
		return fmt.Errorf("ending an archive: %w", err)
	}
	if err := w.put(sumsName, w.sums.Bytes(), w.limits.maxSumsBytes()); err != nil {
		return err
	}
	if err := errors.Join(w.tar.Close(), w.compressor.Close()); err != nil {
		return fmt.Errorf("ending an archive: %w", err)
	}
	return nil
}

// record writes an entry of JSON. Maps are sorted by their keys.
func (w *Writer) record(name string, content any) error {
	var data bytes.Buffer
	encoder := json.NewEncoder(&data)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(content); err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	return w.entry(name, data.Bytes(), w.limits.RecordBytes)
}

// entry writes an entry and remembers its checksum.
func (w *Writer) entry(name string, data []byte, limit int64) error {
	fmt.Fprintf(&w.sums, "%x  %s\n", sha256.Sum256(data), name)
	return w.put(name, data, limit)
}

func (w *Writer) put(name string, data []byte, limit int64) error {
	if int64(len(data)) > limit {
		return fmt.Errorf("writing %s: it has %d bytes, %d are allowed", name, len(data), limit)
	}
	// Nothing of who wrote it, and when: the content alone makes the bytes. Extracted files
	// have Secrets in them, so nobody else is to read them.
	err := w.tar.WriteHeader(&tar.Header{
		Typeflag: tar.TypeReg, Name: name, Size: int64(len(data)), Mode: 0o600, ModTime: time.Unix(0, 0), Format: tar.FormatUSTAR,
	})
	if err == nil {
		_, err = w.tar.Write(data)
	}
	if err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	return nil
}
