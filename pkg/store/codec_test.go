package store

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
)

// plainCodec stores objects as kube-apiserver does, as JSON.
func plainCodec(t *testing.T) runtime.Codec {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	codecs := serializer.NewCodecFactory(scheme)
	return codecs.CodecForVersions(codecs.LegacyCodec(corev1.SchemeGroupVersion), codecs.UniversalDeserializer(), corev1.SchemeGroupVersion, corev1.SchemeGroupVersion)
}

func sample() *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Data: map[string]string{"text": strings.Repeat("the same again, ", 300)}}
}

// TestCompressed: the codec reads compressed and plain records, writes equal bytes for equal
// objects, and saves space.
func TestCompressed(t *testing.T) {
	plain := plainCodec(t)
	codec := Compressed(plain)
	before, err := runtime.Encode(plain, sample())
	if err != nil {
		t.Fatal(err)
	}
	stored, err := runtime.Encode(codec, sample())
	if err != nil {
		t.Fatal(err)
	}
	if again, err := runtime.Encode(codec, sample()); err != nil || !bytes.Equal(stored, again) {
		t.Errorf("the same object gave other bytes, error %v: every update would look like a change", err)
	}
	if !bytes.HasPrefix(stored, []byte("PKO\x01")) {
		t.Errorf("it is written as %.4q: another format is to be read one release before it is written", stored)
	}
	if len(stored)*4 > len(before) {
		t.Errorf("%d bytes became %d", len(before), len(stored))
	}
	for name, record := range map[string][]byte{"Plain": before, "Compressed": stored} {
		got, err := runtime.Decode(codec, record)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if diff := cmp.Diff(sample().Data, got.(*corev1.ConfigMap).Data); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if plain.Identifier() == codec.Identifier() {
		t.Error("two encodings have one identifier: what one of them cached would be used for the other")
	}
}

// TestCompressedRefuses: the codec refuses records of other formats, and of newer versions.
func TestCompressedRefuses(t *testing.T) {
	codec := Compressed(plainCodec(t))
	stored, err := runtime.Encode(codec, sample())
	if err != nil {
		t.Fatal(err)
	}
	newer := bytes.Clone(stored)
	newer[len(objectFormat().Magic)]++
	damaged := bytes.Clone(stored)
	damaged[len(damaged)-1] ^= 1
	cases := map[string]struct {
		reason string
		record []byte
		newer  bool
	}{
		"Empty":   {reason: "nothing is no object"},
		"Garbage": {reason: "neither JSON nor ours", record: []byte("garbage")},
		"Newer":   {reason: "not guessed", record: newer, newer: true},
		"Damaged": {reason: "the checksum is wrong", record: damaged},
		"Short":   {reason: "half a record", record: stored[:len(stored)/2]},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			object, err := runtime.Decode(codec, tc.record)
			var format *FormatError
			if err == nil || errors.As(err, &format) != tc.newer {
				t.Errorf("%s: got %v, error %v", tc.reason, object, err)
			}
		})
	}
}

// TestDecodes: an object that could not be decoded is not encoded. The example is a time:
// Kubernetes' types encode years of more than four digits, and cannot decode them.
func TestDecodes(t *testing.T) {
	codec := Compressed(plainCodec(t))
	far := time.FixedZone("far", 23*60*60)
	for name, tc := range map[string]struct {
		reason string
		time   time.Time
		fails  bool
	}{
		"Before":   {reason: "a year before 0", time: time.Date(0, 1, 1, 0, 0, 0, 0, far), fails: true},
		"First":    {reason: "the first year", time: time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC)},
		"Ordinary": {reason: "as most are", time: time.Date(2026, 1, 1, 0, 0, 0, 0, far)},
		"Last":     {reason: "the last year", time: time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)},
		"Behind":   {reason: "a year of five digits", time: time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC), fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			object := sample()
			object.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "a", Time: &metav1.Time{Time: tc.time}}}
			record, err := runtime.Encode(codec, object)
			var undecodable *UndecodableError
			if errors.As(err, &undecodable) != tc.fails || (err != nil) != tc.fails {
				t.Fatalf("%s: error %v", tc.reason, err)
			}
			if err != nil {
				return
			}
			if _, err := runtime.Decode(codec, record); err != nil {
				t.Errorf("%s: it is stored and cannot be read: %v", tc.reason, err)
			}
		})
	}
}
