package profile

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestLargeFile: two large compressed files with the same beginning are not equal.
func TestLargeFile(t *testing.T) {
	config := func(end string) NodeConfig {
		var packed bytes.Buffer
		w := gzip.NewWriter(&packed)
		for _, part := range [][]byte{make([]byte, maxFileBytes+1), []byte(end)} {
			if _, err := w.Write(part); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		contents := map[string]any{"compression": "gzip", "source": "data:;base64," + base64.StdEncoding.EncodeToString(packed.Bytes())}
		return NodeConfigOf(&unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"config": map[string]any{
			"storage": map[string]any{"files": []any{map[string]any{"path": "/etc/large", "contents": contents}}}}}}})
	}
	if one, other := config("a"), config("b"); one.Has(other) || !one.Has(config("a")) {
		t.Errorf("%v and %v", one, other)
	}
}
