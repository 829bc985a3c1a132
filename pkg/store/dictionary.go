package store

import (
	"errors"
	"fmt"

	"github.com/klauspost/compress/zstd"
)

const (
	// farWindow is the window of a frame of CompressWith, in bytes. It covers the dictionary and
	// the frame's content.
	farWindow = 8 << 20
	// little is the largest size, in bytes with the dictionary, that is not worth a higher
	// compression level: filling its tables takes longer than compressing, and causes most of the
	// garbage of an upgrade. littleAlone is the size without a dictionary.
	little, littleAlone = 128 << 10, 32 << 10
)

// CompressWith works like Compress, with a higher level where it pays, and with a dictionary whose
// content is not written again. It finds repetitions up to 8 MiB back. Only DecompressWith with the
// same dictionary can read the result; without a dictionary, Decompress can too.
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

// levelFor returns the compression level for a size in bytes, including the dictionary.
func levelFor(size int) zstd.EncoderLevel {
	if size < little {
		return zstd.SpeedFastest
	}
	return zstd.SpeedBetterCompression
}

// farEncoders are the encoders of CompressWith without a dictionary.
var farEncoders = &encoderPool{options: []zstd.EOption{zstd.WithEncoderLevel(zstd.SpeedBetterCompression)}}

// DecompressWith returns the content of a zstd frame of CompressWith with the same dictionary. With
// another dictionary it fails or returns wrong bytes, so callers must verify the result. Its memory
// is bounded like that of Decompress.
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
