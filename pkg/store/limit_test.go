package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	goruntime "runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"pgregory.net/rapid"
)

// TestSealed: a format opens its sealed records unchanged, and seals only contents within its
// limit.
func TestSealed(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		format := Format{Kind: "thing", Magic: "PKT", Version: 1, Limit: rapid.IntRange(0, 1<<17).Draw(r, "limit")}
		size := max(0, rapid.OneOf(rapid.IntRange(0, 1<<17), rapid.IntRange(format.Limit-3, format.Limit+3)).Draw(r, "size"))
		content := bytes.Repeat(append([]byte("a"), rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(r, "text")...), size+1)[:size]
		sealed, err := format.Seal(content)
		wrapped, wrapErr := format.Wrap(content)
		if size > format.Limit {
			var large, alsoLarge *TooLargeError
			if !errors.As(err, &large) || !errors.As(wrapErr, &alsoLarge) || large.Bytes != size || large.Limit != format.Limit {
				r.Fatalf("%d bytes beyond a limit of %d: error %v and %v", size, format.Limit, err, wrapErr)
			}
			return
		}
		if err != nil || wrapErr != nil {
			r.Fatalf("%d bytes within a limit of %d: error %v and %v", size, format.Limit, err, wrapErr)
		}
		if got, err := format.Open("/key", sealed); err != nil || !bytes.Equal(got, content) {
			r.Fatalf("%d bytes were sealed and come back as %d, error %v", size, len(got), err)
		}
		if got, err := format.Unwrap("/key", wrapped); err != nil || !bytes.Equal(got, content) {
			r.Fatalf("%d bytes were wrapped and come back as %d, error %v", size, len(got), err)
		}
	})
}

// TestObjectLimit: any encoded object decodes to an equal object. The test covers sizes around the
// limit, and text that JSON writes six times as long.
func TestObjectLimit(t *testing.T) {
	plain := plainCodec(t)
	codec := Compressed(plain)
	for _, text := range []string{"x", "<", `"`, "\u2028", "é"} {
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Data: map[string]string{"text": text, "pad": ""}}
		one, err := runtime.Encode(plain, object)
		if err != nil {
			t.Fatal(err)
		}
		object.Data["text"] += text
		two, err := runtime.Encode(plain, object)
		if err != nil {
			t.Fatal(err)
		}
		most := (MaxObjectBytes-len(one))/(len(two)-len(one)) - 1
		object.Data["text"] = strings.Repeat(text, most)
		base, err := runtime.Encode(plain, object)
		if err != nil {
			t.Fatal(err)
		}
		for over := -2; over <= 2; over++ {
			object.Data["pad"] = strings.Repeat("p", MaxObjectBytes-len(base)+over)
			stored, err := runtime.Encode(codec, object)
			if over > 0 {
				var large *TooLargeError
				if !errors.As(err, &large) || large.Bytes != MaxObjectBytes+over {
					t.Errorf("%q, %d bytes beyond the limit: error %v", text, over, err)
				}
				continue
			}
			if err != nil {
				t.Fatalf("%q, %d bytes below the limit: %v", text, -over, err)
			}
			got, err := runtime.Decode(codec, stored)
			if err != nil || cmp.Diff(object.Data, got.(*corev1.ConfigMap).Data) != "" {
				t.Errorf("%q, %d bytes below the limit: it does not come back, error %v", text, -over, err)
			}
		}
	}
}

// TestLargerOfBefore: records that were stored before the limit existed can be read.
func TestLargerOfBefore(t *testing.T) {
	plain := plainCodec(t)
	before, err := runtime.Encode(plain, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{UID: "large"}, Data: map[string]string{"text": strings.Repeat("<", 2<<20)}})
	if err != nil {
		t.Fatal(err)
	}
	frame, err := Compress(before)
	if err != nil {
		t.Fatal(err)
	}
	codec := Compressed(plain)
	object, err := runtime.Decode(codec, append([]byte("PKO\x01"), frame...))
	if err != nil || len(object.(*corev1.ConfigMap).Data["text"]) != 2<<20 {
		t.Fatalf("%d bytes of before cannot be read: %v", len(before), err)
	}
	large := object.(*corev1.ConfigMap)
	for reason, more := range map[string]int{"as it is": 0, "with what a deletion adds": deletionBytes / 2, "larger": 2 * deletionBytes} {
		large.Data["more"] = strings.Repeat("x", more)
		record, err := runtime.Encode(codec, large)
		if refused := errors.As(err, new(*TooLargeError)); refused != (more > deletionBytes) {
			t.Errorf("writing it %s: error %v", reason, err)
		} else if err == nil {
			if _, err := runtime.Decode(codec, record); err != nil {
				t.Errorf("written %s it cannot be read: %v", reason, err)
			}
		}
	}
	large.UID = "another"
	if _, err := runtime.Encode(codec, large); !errors.As(err, new(*TooLargeError)) {
		t.Errorf("another object of that size: error %v", err)
	}
}

// TestPromisedMemory: a frame takes only the memory of its declared size, even if it asks for a
// large window or contains more.
func TestPromisedMemory(t *testing.T) {
	const promised = 4 << 10
	frame := func(window byte, blocks int) []byte {
		// The header has: magic; no single segment and a content size of four bytes; window.
		f := append([]byte{0x28, 0xb5, 0x2f, 0xfd, 0x80, window}, binary.LittleEndian.AppendUint32(nil, promised)...)
		for i := range blocks {
			// A block of one byte, repeated 128 KiB times.
			block := uint32(128<<10)<<3 | 1<<1
			if i == blocks-1 {
				block |= 1
			}
			f = append(f, byte(block), byte(block>>8), byte(block>>16), 'x')
		}
		return f
	}
	for name, hostile := range map[string][]byte{
		"Window": frame(21<<3, 1), // 2 GiB
		"More":   frame(10<<3, 2000),
	} {
		t.Run(name, func(t *testing.T) {
			var before, after goruntime.MemStats
			goruntime.ReadMemStats(&before)
			content, err := Decompress(hostile, 64<<20)
			goruntime.ReadMemStats(&after)
			if err == nil {
				t.Errorf("got %d bytes of a frame that lies", len(content))
			}
			if used := after.TotalAlloc - before.TotalAlloc; used > 2<<20 {
				t.Errorf("it took %d bytes of memory to find out", used)
			}
		})
	}
}

func ExampleTooLargeError() {
	_, err := Format{Kind: "object", Magic: "PKO", Version: 1, Limit: 3}.Seal([]byte("four"))
	fmt.Println(err)
	// Output: the object has 4 bytes, 3 are allowed
}
