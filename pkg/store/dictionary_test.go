package store

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
)

// TestCompressWith: repetitions of a dictionary of any size are found up to the window, and
// decompression restores the content.
func TestCompressWith(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	noise := make([]byte, 300<<10)
	for i := range noise {
		noise[i] = byte(random.UintN(256))
	}
	sizes := []int{0, 1, 7, 100, 512, 1000, 1024, 1025, 4 << 10, little/2 - 100, little / 2, little, 150 << 10}
	for _, before := range sizes {
		for _, after := range sizes {
			t.Run(fmt.Sprintf("%d onto %d", after, before), func(t *testing.T) {
				dictionary, data := noise[:before], noise[:after]
				frame, err := CompressWith(dictionary, data)
				if err != nil {
					t.Fatal(err)
				}
				got, err := DecompressWith(dictionary, frame, after)
				if err != nil || !bytes.Equal(got, data) {
					t.Fatalf("%d bytes came back as %d, error %v", after, len(got), err)
				}
				// The dictionary alone compresses the noise. Mostly new content stays uncompressed.
				if shared := min(before, after); shared >= 512 && 2*shared >= after && len(frame) > after-shared+shared/10+100 {
					t.Errorf("%d bytes of which %d are in the dictionary became %d", after, shared, len(frame))
				}
			})
		}
	}
}

// TestCompressWithMemory: compressing a small revision against its predecessor causes little
// garbage. Formerly, encoders for 8 MiB were four fifths of an upgrade's allocations.
func TestCompressWithMemory(t *testing.T) {
	dictionary := bytes.Repeat([]byte("name: a\nimage: b\n"), 500)
	data := bytes.Replace(dictionary, []byte("b"), []byte("c"), 3)
	const rounds, most = 20, 1 << 20
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range rounds {
		if _, err := CompressWith(dictionary, data); err != nil {
			t.Fatal(err)
		}
	}
	runtime.ReadMemStats(&after)
	if each := (after.TotalAlloc - before.TotalAlloc) / rounds; each > most {
		t.Errorf("compressing %d bytes allocates %d, want at most %d", len(data), each, most)
	}
}
