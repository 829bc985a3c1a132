package store

import (
	"errors"
	"fmt"

	"github.com/klauspost/compress/zstd"
)

const (
	// farWindow is how far back a frame of CompressWith refers at most, in bytes: over the
	// dictionary and its own content.
	farWindow = 8 << 20
	// little is how many bytes, with those of the dictionary, are not worth more effort:
	// to make and to fill the tables takes longer than to compress, and is most of the
	// garbage of an upgrade. Without a dictionary it is less.
	little, littleAlone = 128 << 10, 32 << 10
)

// CompressWith is Compress with more effort where it is worth that, and with a dictionary:
// what both have in common is not written again. Repetitions more than 8 MiB back are not
// found. Only DecompressWith and the same dictionary read it, and Decompress what has
// none.
func CompressWith(dictionary, data []byte) ([]byte, error) {
	encode := farEncoders.encode
	switch {
	case len(dictionary) > 0:
		encode = func(data []byte) ([]byte, error) { return encodeWith(dictionary, data) }
	case len(data) < littleAlone:
		return Compress(data)
	}
	frame, err := encode(data)
	if err != nil {
		return nil, fmt.Errorf("compressing with more effort: %w", err)
	}
	return frame, nil
}

// levelFor is the effort for so many bytes, with those of the dictionary.
func levelFor(size int) zstd.EncoderLevel {
	if size < little {
		return zstd.SpeedFastest
	}
	return zstd.SpeedBetterCompression
}

// farEncoders are those of CompressWith without a dictionary.
var farEncoders = &encoderPool{options: []zstd.EOption{zstd.WithEncoderLevel(zstd.SpeedBetterCompression)}}

// DecompressWith returns the content of one zstd frame that CompressWith made with the
// same dictionary. With another one it fails, or returns other bytes: a caller that calls it
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
		return nil, fmt.Errorf("more than the %d bytes that the frame declares: %w", size, ErrTooLarge)
	}
	if err != nil {
		return nil, fmt.Errorf("decompressing with a dictionary: %w", err)
	}
	return data, nil
}
