package store

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/klauspost/compress/zstd"
)

func TestWindowFor(t *testing.T) {
	for size, want := range map[int]int{0: zstd.MinWindowSize, 1024: 1024, 1025: 2048, 100_000: 128 << 10, farWindow: farWindow, farWindow + 1: farWindow} {
		if got := windowFor(size); got != want {
			t.Errorf("the window for %d bytes has %d, want %d", size, got, want)
		}
	}
}

// manifestsOf returns text of a size whose end repeats its beginning. Finding the distant
// repetition makes the frame small.
func manifestsOf(size int) []byte {
	random := rand.New(rand.NewPCG(1, 2))
	var text bytes.Buffer
	for text.Len() < size/2 {
		fmt.Fprintf(&text, `{"kind":"ConfigMap","name":"settings-%d","value":"%x"}`, random.IntN(1000), random.Uint64())
	}
	return append(text.Bytes(), text.Bytes()...)
}

// packOptions returns the encoder options of a pack of a size.
func packOptions(size int) []zstd.EOption {
	if size < littleAlone {
		return nil
	}
	return []zstd.EOption{zstd.WithEncoderLevel(zstd.SpeedBetterCompression)}
}

// TestSmallWindowFindsAll: a window that covers the whole input compresses as well as the largest
// window. This holds with a pool and with a dictionary.
func TestSmallWindowFindsAll(t *testing.T) {
	for _, size := range []int{200, 10 << 10, 100 << 10, 300 << 10, 3 << 20} {
		data := manifestsOf(size)
		for name, tc := range map[string]struct {
			options  []zstd.EOption
			compress func() ([]byte, error)
		}{
			"Record": {nil, func() ([]byte, error) { return Compress(data) }},
			"Pack": {packOptions(size),
				func() ([]byte, error) { return CompressWith(nil, data) }},
			"Delta": {[]zstd.EOption{zstd.WithEncoderLevel(levelFor(2 * len(data))), zstd.WithEncoderDictRaw(0, data)},
				func() ([]byte, error) { return CompressWith(data, data) }},
		} {
			t.Run(fmt.Sprintf("%s/%d", name, size), func(t *testing.T) {
				largest, err := newEncoder(append([]zstd.EOption{zstd.WithWindowSize(farWindow)}, tc.options...)...)
				if err != nil {
					t.Fatal(err)
				}
				want := largest.EncodeAll(data, nil)
				for range 2 { // the second encoder is from the pool
					got, err := tc.compress()
					if err != nil {
						t.Fatal(err)
					}
					if len(got) > len(want)+len(want)/100 {
						t.Errorf("%d bytes, %d with the largest window", len(got), len(want))
					}
				}
			})
		}
	}
}

// TestCompressingPlaces: at most one encoder per processor works at a time, and every waiting
// caller gets a place.
func TestCompressingPlaces(t *testing.T) {
	var working, most atomic.Int32
	var all sync.WaitGroup
	for range 4 * cap(compressing) {
		all.Go(func() {
			_, err := inPlace(func() ([]byte, error) {
				now := working.Add(1)
				defer working.Add(-1)
				for before := most.Load(); now > before && !most.CompareAndSwap(before, now); before = most.Load() {
				}
				return encoders.encodeNow(manifestsOf(10 << 10))
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if got := most.Load(); got < 1 || int(got) > cap(compressing) {
		t.Errorf("%d encoders worked at a time, want %d at most", got, cap(compressing))
	}
	if left := len(compressing); left != 0 {
		t.Errorf("%d places are taken by nobody", left)
	}
}
