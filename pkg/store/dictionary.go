package store

import (
	"errors"
	"fmt"
	"sync"

	"github.com/klauspost/compress/zstd"
)

const (
	// farWindow is how far back a frame of CompressWith refers, in bytes: over the
	// dictionary and its own content.
	farWindow = 8 << 20
	// little is how many bytes, with those of the dictionary, are not worth more effort:
	// to fill the tables takes longer than to compress.
	little = 128 << 10
)

// CompressWith is Compress with more effort, and with a dictionary: what both have in
// common is not written again. What lies more than 8 MiB back is not found. Only
// DecompressWith and the same dictionary read it, and Decompress what has none.
func CompressWith(dictionary, data []byte) ([]byte, error) {
	var encoder *zstd.Encoder
	if len(dictionary) == 0 {
		encoder, _ = farEncoders.Get().(*zstd.Encoder)
	}
	if encoder == nil {
		options := []zstd.EOption{zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(true), zstd.WithZeroFrames(true), zstd.WithSingleSegment(true),
			zstd.WithEncoderLevel(zstd.SpeedBetterCompression), zstd.WithWindowSize(farWindow), zstd.WithLowerEncoderMem(true)}
		if len(dictionary) > 0 {
			options = append(options, zstd.WithEncoderDictRaw(0, dictionary))
			if len(dictionary)+len(data) < little {
				options = append(options, zstd.WithEncoderLevel(zstd.SpeedDefault))
			}
		}
		var err error
		if encoder, err = zstd.NewWriter(nil, options...); err != nil {
			return nil, fmt.Errorf("compressing with a dictionary: %w", err)
		}
	}
	frame := encoder.EncodeAll(data, nil)
	// One with a dictionary belongs to it.
	if len(dictionary) == 0 && len(data) <= maxKept {
		farEncoders.Put(encoder)
	}
	return frame, nil
}

// farEncoders are of several megabytes each; see encoders.
var farEncoders sync.Pool

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
