package store

import (
	"errors"
	"fmt"

	"github.com/klauspost/compress/zstd"
)

// deltaWindow is how far back a frame of CompressWith refers, in bytes: over the
// dictionary and its own content.
const deltaWindow = 8 << 20

// CompressWith is Compress with a dictionary: what both have in common is not written
// again. Only DecompressWith and the same dictionary read it. What lies more than 8 MiB
// back is not found.
func CompressWith(dictionary, data []byte) ([]byte, error) {
	// Not kept: it belongs to its dictionary.
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(true), zstd.WithZeroFrames(true),
		zstd.WithSingleSegment(true), zstd.WithWindowSize(deltaWindow), zstd.WithLowerEncoderMem(true), zstd.WithEncoderDictRaw(0, dictionary))
	if err != nil {
		return nil, fmt.Errorf("compressing with a dictionary: %w", err)
	}
	return encoder.EncodeAll(data, nil), nil
}

// DecompressWith returns the content of one zstd frame that CompressWith made with the
// same dictionary. With another one it fails, or returns other bytes: whoever calls it
// verifies them. Its memory is bounded as that of Decompress.
func DecompressWith(dictionary, frame []byte, limit int) ([]byte, error) {
	size, err := contentSize(frame, limit)
	if err != nil {
		return nil, err
	}
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecodeAllCapLimit(true),
		zstd.WithDecoderDictRaw(0, dictionary))
	if err != nil {
		return nil, fmt.Errorf("decompressing with a dictionary: %w", err)
	}
	defer decoder.Close()
	data, err := decoder.DecodeAll(frame, make([]byte, 0, size))
	if errors.Is(err, zstd.ErrDecoderSizeExceeded) {
		return nil, fmt.Errorf("more than the %d bytes that the frame speaks of: %w", size, ErrTooLarge)
	}
	if err != nil {
		return nil, fmt.Errorf("decompressing with a dictionary: %w", err)
	}
	return data, nil
}
