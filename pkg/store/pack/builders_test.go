package pack

import (
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/penstock-project/penstock/pkg/manifest"
)

func digester() manifest.Digester {
	return manifest.Digester{SecretKey: []byte("a key for tests")}
}

func object(t testing.TB, kind, name, data string) manifest.Object {
	t.Helper()
	o, err := digester().New(map[string]any{
		"apiVersion": "v1",
		"kind":       kind,
		"metadata":   map[string]any{"name": name, "namespace": "default"},
		"data":       map[string]any{"value": data},
	})
	if err != nil {
		t.Fatalf("making %s %s: %v", kind, name, err)
	}
	return o
}

// noise returns n objects of size bytes that compress by less than half.
func noise(t testing.TB, n, size int) []manifest.Object {
	t.Helper()
	random := rand.NewChaCha8([32]byte{byte(n), byte(size)})
	data := make([]byte, size/2)
	var objects []manifest.Object
	for i := range n {
		if _, err := random.Read(data); err != nil {
			t.Fatal(err)
		}
		objects = append(objects, object(t, "ConfigMap", fmt.Sprintf("noise-%d", i), hex.EncodeToString(data)))
	}
	return objects
}

func refs(objects []manifest.Object) []manifest.Ref {
	out := make([]manifest.Ref, len(objects))
	for i, o := range objects {
		out[i] = o.Ref
	}
	return out
}

// chunked returns a store whose records hold n bytes, so that small objects have many chunks.
func chunked(s *Store, n int) *Store {
	s.chunkBytes = n
	return s
}

// mustHave fails unless the pack of the objects has exactly their bytes.
func mustHave(t testing.TB, s *Store, objects []manifest.Object) {
	t.Helper()
	want := map[manifest.Digest]string{}
	for _, o := range objects {
		want[o.Digest] = string(o.JSON)
	}
	bodies, err := s.Read(t.Context(), Root(refs(objects)))
	if err != nil {
		t.Fatalf("reading what was put: %v", err)
	}
	got := map[manifest.Digest]string{}
	for digest, body := range bodies {
		got[digest] = string(body)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("other bytes than were put (-want +got):\n%s", diff)
	}
}

func dump(t testing.TB, kv clientv3.KV, prefix string) map[string]string {
	t.Helper()
	response, err := kv.Get(t.Context(), prefix, clientv3.WithPrefix())
	if err != nil {
		t.Fatalf("reading %s: %v", prefix, err)
	}
	out := map[string]string{}
	for _, kv := range response.Kvs {
		out[string(kv.Key)] = string(kv.Value)
	}
	return out
}
