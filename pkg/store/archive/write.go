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
	// Format is the written version, and the highest readable version.
	Format = 1

	headerName = "penstock.json"
	sumsName   = "SHA256SUMS"
)

// header is the first entry. Readers that do not know its format stop after it.
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

// Writer writes an archive: for each chain, by rising name, Chain, and then Revision for each
// announced number. It refuses writes in another order, so that equal content makes equal archives.
type Writer struct {
	compressor *zstd.Encoder
	tar        *tar.Writer
	sums       bytes.Buffer
	limits     Limits
	order      order
}

// NewWriter begins an archive.
func NewWriter(w io.Writer) (*Writer, error) {
	// The encoder uses one goroutine. With several goroutines, the frame would depend on their
	// scheduling.
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

// Revision writes a revision and its manifests, in rollout order. Equal manifests are written once.
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
		// The manifest is canonical JSON, and encoding/json would escape it.
		fmt.Fprintf(&lines, `{"digest":%q,"manifest":%s}`+"\n", l.Digest, l.Manifest)
	}
	if err := w.record(revisionPath(w.order.name, revision.Number), revision); err != nil {
		return err
	}
	return w.entry(manifestsPath(w.order.name, revision.Number), lines.Bytes(), w.limits.ManifestBytes)
}

// Close ends the archive. An archive that is not closed cannot be read.
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

// record writes an entry of JSON. Maps are sorted by key.
func (w *Writer) record(name string, content any) error {
	var data bytes.Buffer
	encoder := json.NewEncoder(&data)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(content); err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	return w.entry(name, data.Bytes(), w.limits.RecordBytes)
}

func (w *Writer) entry(name string, data []byte, limit int64) error {
	fmt.Fprintf(&w.sums, "%x  %s\n", sha256.Sum256(data), name)
	return w.put(name, data, limit)
}

func (w *Writer) put(name string, data []byte, limit int64) error {
	if int64(len(data)) > limit {
		return fmt.Errorf("writing %s: it has %d bytes, %d are allowed", name, len(data), limit)
	}
	// The header contains neither an owner nor a time, so the bytes depend on the content alone.
	// Extracted files contain Secrets, so only their owner may read them.
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
