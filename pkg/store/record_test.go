package store

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"runtime"
	"testing"
)

func TestUnwrap(t *testing.T) {
	format := Format{Kind: "thing", Magic: "PKT", Version: 2, Limit: 10}
	wrapped, err := format.Wrap([]byte("body"))
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		reason         string
		record         string
		body           string
		newer, damaged bool
	}{
		"Present":   {reason: "what Wrap made", record: string(wrapped), body: "body"},
		"Older":     {reason: "versions up to the known one are read", record: "PKT\x01body", body: "body"},
		"EmptyBody": {reason: "the body may be empty", record: "PKT\x02"},
		"Newer":     {reason: "a newer version is not damage", record: "PKT\x03body", newer: true},
		"Zero":      {reason: "there is no version 0", record: "PKT\x00body", damaged: true},
		"NoVersion": {reason: "cut behind the magic", record: "PKT", damaged: true},
		"OtherKind": {reason: "a record of another kind", record: "PKP\x01body", damaged: true},
		"Nothing":   {reason: "an empty value is not a record", damaged: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			body, err := format.Unwrap("/key", []byte(tc.record))
			var newer *FormatError
			var damaged *DamagedError
			if errors.As(err, &newer) != tc.newer || errors.As(err, &damaged) != tc.damaged {
				t.Errorf("%s: got error %v", tc.reason, err)
			}
			if string(body) != tc.body {
				t.Errorf("%s: got body %q, want %q", tc.reason, body, tc.body)
			}
		})
	}
}

// TestCompressSizes: the sizes are those at which zstd changes the window or the blocks. A limit
// equal to the content's size suffices, and a smaller limit fails.
func TestCompressSizes(t *testing.T) {
	random := rand.NewChaCha8([32]byte{1})
	for _, size := range []int{0, 1, 255, 256, 1 << 10, 100_000, 128 << 10, 300_000, 1 << 20, 3_000_000, 9 << 20} {
		data := make([]byte, size)
		if _, err := random.Read(data[:size/2]); err != nil {
			t.Fatal(err)
		}
		frame, err := Compress(data)
		if err != nil {
			t.Fatalf("compressing %d bytes: %v", size, err)
		}
		again, err := Compress(data)
		if err != nil || !bytes.Equal(frame, again) {
			t.Errorf("compressing %d bytes twice gives different frames (error %v)", size, err)
		}
		got, err := Decompress(frame, size)
		if err != nil || !bytes.Equal(got, data) {
			t.Errorf("%d bytes came back as %d, error %v", size, len(got), err)
		}
		if size == 0 {
			continue
		}
		if _, err := Decompress(frame, size-1); !errors.Is(err, ErrTooLarge) {
			t.Errorf("%d bytes passed a limit of one less: error %v", size, err)
		}
	}
}

// TestDecompressBomb: decompressing a bomb takes about the memory of the limit. The frame may
// declare its size or not, and further frames may follow.
func TestDecompressBomb(t *testing.T) {
	const limit = 1 << 20
	bomb, err := Compress(make([]byte, 256<<20))
	if err != nil {
		t.Fatal(err)
	}
	// Of two consecutive frames, only the first declares its size.
	small, err := Compress([]byte("small"))
	if err != nil {
		t.Fatal(err)
	}
	for name, frame := range map[string][]byte{
		"Honest":    bomb,
		"Unsized":   unsized(t, 256<<20),
		"Following": append(small, unsized(t, 256<<20)...),
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := Decompress(frame, limit)
			runtime.ReadMemStats(&after)
			if err == nil {
				t.Error("got no error")
			}
			if used := after.TotalAlloc - before.TotalAlloc; used > 64<<20 {
				t.Errorf("decompressing with a limit of %d bytes took %d bytes of memory", limit, used)
			}
		})
	}
}

func FuzzDecompress(f *testing.F) {
	frame, err := Compress(bytes.Repeat([]byte("penstock "), 1000))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(frame)
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, frame []byte) {
		data, err := Decompress(frame, 1<<16)
		if err == nil && len(data) > 1<<16 {
			t.Errorf("got %d bytes beyond the limit", len(data))
		}
	})
}

// TestCompressKeepsNothing: earlier content of an encoder shows in no frame.
func TestCompressKeepsNothing(t *testing.T) {
	var inputs [][]byte
	random := rand.New(rand.NewPCG(1, 2))
	for _, size := range []int{0, 1, 300, 5000, 70_000, 400_000, 1<<20 + 1} {
		for range 4 {
			data := make([]byte, size)
			for i := range data {
				// The data has both repeated words and random bytes.
				data[i] = byte("abcdefgh"[random.IntN(8)])
			}
			inputs = append(inputs, data)
		}
	}
	frames := map[int][]byte{}
	for round := range 2 {
		for _, i := range random.Perm(len(inputs)) {
			frame, err := Compress(inputs[i])
			if err != nil {
				t.Fatal(err)
			}
			if before, seen := frames[i]; seen && !bytes.Equal(before, frame) {
				t.Errorf("round %d: the %d bytes of input %d have another frame than before", round, len(inputs[i]), i)
			}
			frames[i] = frame
			content, err := Decompress(frame, 4<<20)
			if err != nil || !bytes.Equal(content, inputs[i]) {
				t.Errorf("round %d: input %d does not come back: %v", round, i, err)
			}
		}
		runtime.GC() // frees unused encoders
	}
}

// BenchmarkCompress measures the compression of an inventory.
func BenchmarkCompress(b *testing.B) {
	data := bytes.Repeat([]byte(`{"kind":"ConfigMap","name":"settings","namespace":"a"}`), 20)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Compress(data); err != nil {
			b.Fatal(err)
		}
	}
}
