package store

import (
	"runtime"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// encoderPool holds unused encoders. An encoder takes megabytes, and allocating one for each record
// of some hundred bytes was most of a rollout's allocations. Encoders have no state between two
// calls, and garbage collection frees unused encoders. So the pools are global, and callers need
// not know them.
//
// An encoder takes several times the memory of its window. So it has the smallest of a few windows
// that covers the data; a larger window would find nothing more.
type encoderPool struct {
	options []zstd.EOption
	pools   [3]sync.Pool
}

// windowOf holds the windows of the pools, in bytes. Larger records use the last window.
var windowOf = [3]int{128 << 10, 1 << 20, farWindow}

// maxKept bounds the data that a reused encoder or decoder has processed, because its buffers grow
// with the data.
const maxKept = 1 << 20

// compressing has a place for each processor. More encoders would not be faster, and each takes
// megabytes: in sixteen concurrent creates, they were most of the process's peak memory.
var compressing = make(chan struct{}, runtime.GOMAXPROCS(0))

// inPlace calls a function that uses an encoder when a place is free.
func inPlace(encode func() ([]byte, error)) ([]byte, error) {
	compressing <- struct{}{}
	defer func() { <-compressing }()
	return encode()
}

func (p *encoderPool) encode(data []byte) ([]byte, error) {
	return inPlace(func() ([]byte, error) { return p.encodeNow(data) })
}

func (p *encoderPool) encodeNow(data []byte) ([]byte, error) {
	size := 0
	for size < len(windowOf)-1 && windowOf[size] < len(data) {
		size++
	}
	encoder, ok := p.pools[size].Get().(*zstd.Encoder)
	if !ok {
		var err error
		if encoder, err = newEncoder(append([]zstd.EOption{zstd.WithWindowSize(windowOf[size])}, p.options...)...); err != nil {
			return nil, err
		}
	}
	frame := encoder.EncodeAll(data, nil)
	if len(data) <= maxKept {
		p.pools[size].Put(encoder)
	}
	return frame, nil
}

// encodeWith returns the frame of data with a dictionary. Its encoder is bound to the dictionary,
// so it is not reused.
func encodeWith(dictionary, data []byte) ([]byte, error) {
	return inPlace(func() ([]byte, error) {
		size := len(dictionary) + len(data)
		encoder, err := newEncoder(zstd.WithEncoderLevel(levelFor(size)), zstd.WithWindowSize(windowFor(size)), zstd.WithEncoderDictRaw(0, dictionary))
		if err != nil {
			return nil, err
		}
		return encoder.EncodeAll(data, nil), nil
	})
}

// newEncoder returns an encoder whose frames have a checksum. A single-segment frame always
// declares the size of its content, which Decompress needs first.
func newEncoder(options ...zstd.EOption) (*zstd.Encoder, error) {
	return zstd.NewWriter(nil, append([]zstd.EOption{zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(true),
		zstd.WithZeroFrames(true), zstd.WithSingleSegment(true), zstd.WithLowerEncoderMem(true)}, options...)...)
}

// windowFor returns the smallest window for a number of bytes, for an encoder of one frame.
func windowFor(size int) int {
	window := zstd.MinWindowSize
	for window < min(size, farWindow) {
		window *= 2
	}
	return window
}
