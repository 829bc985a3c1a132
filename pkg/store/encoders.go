package store

import (
	"runtime"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// encoderPool has encoders that nobody uses just now. One is megabytes, and to make one for
// each record of some hundred bytes was most of what a rollout allocated. They have no state
// of their own between two calls, so that no caller needs to know of them, and garbage
// collection drops what rests: that is why pools are no fields of something.
//
// An encoder has memory for its window, several times, so it has the smallest of a few
// windows in which what it compresses is. A larger one would find nothing more.
type encoderPool struct {
	options []zstd.EOption
	pools   [3]sync.Pool
}

// windowOf are the windows of the pools, in bytes. A record larger than the last size is
// compressed with it.
var windowOf = [3]int{128 << 10, 1 << 20, farWindow}

// maxKept bounds the data that a reused encoder or decoder has processed, because its buffers grow
// with the data.
const maxKept = 1 << 20

// compressing has a place for each processor. More encoders than these would not be done
// sooner, and have megabytes each meanwhile: of sixteen creates at a time that was most of
// what the process had at its peak.
var compressing = make(chan struct{}, runtime.GOMAXPROCS(0))

// inPlace calls a function that has an encoder when there is a place for it.
func inPlace(encode func() ([]byte, error)) ([]byte, error) {
	compressing <- struct{}{}
	defer func() { <-compressing }()
	return encode()
}

// encode returns the frame of data.
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

// encodeWith returns the frame of data with a dictionary, to which its encoder belongs: it is
// not kept.
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

// newEncoder makes one whose frames have a checksum. A single segment always says how
// large its content is: Decompress wants to know before it begins.
func newEncoder(options ...zstd.EOption) (*zstd.Encoder, error) {
	return zstd.NewWriter(nil, append([]zstd.EOption{zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(true),
		zstd.WithZeroFrames(true), zstd.WithSingleSegment(true), zstd.WithLowerEncoderMem(true)}, options...)...)
}

// windowFor is the smallest window in which so many bytes are, for an encoder that is made
// for one frame.
func windowFor(size int) int {
	window := zstd.MinWindowSize
	for window < min(size, farWindow) {
		window *= 2
	}
	return window
}
