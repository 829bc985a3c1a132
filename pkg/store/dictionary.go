package store

import (
	"errors"
	"fmt"
	"sync"

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
// what both have in common is not written again. What lies more than 8 MiB back is not found.
// Only DecompressWith and the same dictionary read it, and Decompress what has none.
func CompressWith(dictionary, data []byte) ([]byte, error) {
	if len(dictionary) > 0 {
		return compressOnto(dictionary, data)
	}
	if len(data) < littleAlone {
		return Compress(data)
	}
	encoder, ok := farEncoders.Get().(*zstd.Encoder)
	if !ok {
		var err error
		if encoder, err = farEncoder(farWindow, zstd.SpeedBetterCompression); err != nil {
			return nil, err
		}
	}
	frame := encoder.EncodeAll(data, nil)
	if len(data) <= maxKept {
		farEncoders.Put(encoder)
	}
	return frame, nil
}

// compressOnto compresses by an encoder of its own, which belongs to the dictionary. It is as
// small as will do.
func compressOnto(dictionary, data []byte) ([]byte, error) {
	all := len(dictionary) + len(data)
	window := zstd.MinWindowSize
	for window < min(all, farWindow) {
		window *= 2
	}
	level := zstd.SpeedBetterCompression
	if all < little {
		level = zstd.SpeedFastest
	}
	encoder, err := farEncoder(window, level, zstd.WithEncoderDictRaw(0, dictionary))
	if err != nil {
		return nil, err
	}
	return encoder.EncodeAll(data, nil), nil
}

func farEncoder(window int, level zstd.EncoderLevel, more ...zstd.EOption) (*zstd.Encoder, error) {
	encoder, err := zstd.NewWriter(nil, append(more, zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(true), zstd.WithZeroFrames(true),
		zstd.WithSingleSegment(true), zstd.WithEncoderLevel(level), zstd.WithWindowSize(window), zstd.WithLowerEncoderMem(true))...)
	if err != nil {
		return nil, fmt.Errorf("compressing with more effort: %w", err)
	}
	return encoder, nil
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
