package pack

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"
	clientv3 "go.etcd.io/etcd/client/v3"
	"pgregory.net/rapid"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/store"
	"github.com/penstock-project/penstock/pkg/store/storetest"
)

// TestPutThenRead: Read returns exactly the bytes that Put acknowledged, in order, for any size of
// chunks. Putting them again writes nothing.
func TestPutThenRead(t *testing.T) {
	client := storetest.Client(t)
	var packs int
	rapid.Check(t, func(r *rapid.T) {
		packs++
		s := chunked(New(client, fmt.Sprintf("/p%d", packs), digester()), rapid.IntRange(60, 2000).Draw(r, "chunk bytes"))
		var objects []manifest.Object
		for i := range rapid.IntRange(0, 12).Draw(r, "objects") {
			kind := rapid.SampledFrom([]string{"ConfigMap", "Secret"}).Draw(r, "kind")
			objects = append(objects, object(t, kind, fmt.Sprintf("o%d", i%7), rapid.String().Draw(r, "data")))
		}
		root, err := s.Put(t.Context(), objects)
		if err != nil {
			r.Fatalf("put: %v", err)
		}
		if root != Root(refs(objects)) {
			r.Fatalf("put returned root %s, and Root is another", root)
		}
		mustHave(t, s, objects)

		stored, err := s.Objects(t.Context(), root)
		if err != nil {
			r.Fatalf("objects: %v", err)
		}
		if diff := cmp.Diff(distinct(objects), stored); len(objects) > 0 && diff != "" {
			r.Fatalf("other objects, or another order (-put +stored):\n%s", diff)
		}
		before := storetest.Revision(t, client)
		if _, err := s.Put(t.Context(), objects); err != nil {
			r.Fatalf("second put: %v", err)
		}
		if after := storetest.Revision(t, client); after != before {
			r.Fatalf("the second put wrote %d times", after-before)
		}
	})
}

func distinct(objects []manifest.Object) []manifest.Object {
	seen := map[manifest.Digest]bool{}
	return slices.DeleteFunc(slices.Clone(objects), func(o manifest.Object) bool {
		again := seen[o.Digest]
		seen[o.Digest] = true
		return again
	})
}

// TestPutLarge: a pack is larger than one request to etcd, with the real size of chunks.
func TestPutLarge(t *testing.T) {
	client := storetest.Client(t)
	s := New(client, "/p", digester())
	objects := noise(t, 10, 700_000)
	root, err := s.Put(t.Context(), objects)
	if err != nil {
		t.Fatalf("put: %v", err)
	}
	mustHave(t, s, objects)
	keys := dump(t, client, "/p")
	if len(keys) < 4 {
		t.Errorf("7 MB of noise are in %d keys: this test needs several chunks", len(keys))
	}
	for key, value := range keys {
		if len(value) > ChunkBytes {
			t.Errorf("%s has %d bytes, want %d at most", key, len(value), ChunkBytes)
		}
	}
	roots, err := s.Roots(t.Context())
	if diff := cmp.Diff([]string{root}, roots); diff != "" || err != nil {
		t.Errorf("roots, error %v (-want +got):\n%s", err, diff)
	}

	_, err = New(client, "/p", digester(), MaxBytes(1000)).Read(t.Context(), root)
	if !errors.Is(err, store.ErrTooLarge) {
		t.Errorf("a reader with less memory got error %v, want ErrTooLarge", err)
	}
}

// TestReadWithOtherKey: digests of Secrets depend on the key. With another key, Read returns
// nothing of the pack. Without a key, the pack is not reported as corrupt.
func TestReadWithOtherKey(t *testing.T) {
	client := storetest.Client(t)
	root, err := New(client, "/p", digester()).Put(t.Context(), []manifest.Object{object(t, "Secret", "s", "hunter2")})
	if err != nil {
		t.Fatalf("put: %v", err)
	}
	var corrupt *CorruptError
	_, err = New(client, "/p", manifest.Digester{SecretKey: []byte("another")}).Read(t.Context(), root)
	if !errors.As(err, &corrupt) || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("with another key: got error %v", err)
	}
	_, err = New(client, "/p", manifest.Digester{}).Read(t.Context(), root)
	if !errors.Is(err, manifest.ErrNoSecretKey) || errors.As(err, &corrupt) {
		t.Errorf("without a key: got error %v", err)
	}
}

// TestPutKeepsOtherEncoding: a pack that another compressor wrote is the same pack.
func TestPutKeepsOtherEncoding(t *testing.T) {
	client := storetest.Client(t)
	s := New(client, "/p", digester())
	objects := noise(t, 2, 900)
	root, content, err := s.encode(objects)
	if err != nil {
		t.Fatal(err)
	}
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedBestCompression), zstd.WithSingleSegment(true), zstd.WithEncoderCRC(false))
	if err != nil {
		t.Fatal(err)
	}
	frame := encoder.EncodeAll(content, nil)
	h := header{frame: sum(frame), contentLen: len(content), compLen: len(frame)}
	record, err := fullFormat().Wrap(append(h.encode(), frame...))
	if err != nil {
		t.Fatal(err)
	}
	write(t, client, s.keys.Pack(root), string(record))

	before := storetest.Revision(t, client)
	if _, err := s.Put(t.Context(), objects); err != nil {
		t.Fatalf("put: %v", err)
	}
	if after := storetest.Revision(t, client); after != before {
		t.Errorf("put wrote %d times over a pack that was whole", after-before)
	}
	mustHave(t, s, objects)
}

// TestPutConcurrently: two versions of Penstock may cut the same pack differently. Their parts are
// not mixed.
func TestPutConcurrently(t *testing.T) {
	client := storetest.Client(t)
	objects := noise(t, 3, 900)
	for round := range 10 {
		prefix := fmt.Sprintf("/r%d", round)
		var wait sync.WaitGroup
		for writer := range 6 {
			wait.Go(func() {
				s := chunked(New(client, prefix, digester()), 300+50*writer)
				if _, err := s.Put(t.Context(), objects); err != nil {
					t.Errorf("writer %d: %v", writer, err)
				}
			})
		}
		wait.Wait()
		mustHave(t, New(client, prefix, digester()), objects)
	}
}

// sweepingKV deletes a chunk directly after its write, a number of times.
type sweepingKV struct {
	clientv3.KV
	prefix string
	times  int
}

func (s *sweepingKV) Txn(ctx context.Context) clientv3.Txn {
	if s.times > 0 {
		chunks, err := s.KV.Get(ctx, s.prefix, clientv3.WithPrefix(), clientv3.WithLimit(1))
		if err == nil && len(chunks.Kvs) > 0 {
			s.times--
			_, _ = s.KV.Delete(ctx, string(chunks.Kvs[0].Key)) // if the delete fails, the test fails
		}
	}
	return s.KV.Txn(ctx)
}

// TestPutAgainstSweeper: a sweeper of unreferenced chunks cannot cause a pack that lacks chunks.
// Put starts again, and finally returns an error.
func TestPutAgainstSweeper(t *testing.T) {
	client := storetest.Client(t)
	objects := noise(t, 3, 900)
	for name, times := range map[string]int{"Once": 1, "Thrice": 3, "Always": 1 << 20} {
		t.Run(name, func(t *testing.T) {
			kv := &sweepingKV{KV: client, prefix: "/" + name + "/packs/", times: times}
			_, err := chunked(New(kv, "/"+name, digester()), 400).Put(t.Context(), objects)
			s := New(client, "/"+name, digester())
			if name == "Always" {
				var missing *MissingError
				if _, readErr := s.Read(t.Context(), Root(refs(objects))); err == nil || !errors.As(readErr, &missing) {
					t.Errorf("put: error %v, read: error %v", err, readErr)
				}
				return
			}
			if err != nil {
				t.Fatalf("put: %v", err)
			}
			mustHave(t, s, objects)
		})
	}
}

// TestPutCrash: Put is killed at any write, before or after etcd executes it. A reader sees the
// whole pack or none, and the same Put again completes it.
func TestPutCrash(t *testing.T) {
	client := storetest.Client(t)
	objects := noise(t, 3, 900)
	root := Root(refs(objects))
	for _, how := range []storetest.Crash{storetest.BeforeWrite, storetest.AfterWrite} {
		var writes int
		for ; ; writes++ {
			prefix := fmt.Sprintf("/%d-%s", writes, strings.ReplaceAll(string(how), " ", "-"))
			kv := storetest.NewCrashingKV(client, writes, how)
			_, err := chunked(New(kv, prefix, digester()), 400).Put(t.Context(), objects)
			if !kv.Crashed() {
				if err != nil {
					t.Fatalf("put without a crash: %v", err)
				}
				break
			}
			if !errors.Is(err, storetest.ErrCrash) {
				t.Fatalf("crash at write %d %s: put acknowledged what it does not know, error %v", writes, how, err)
			}
			s := chunked(New(client, prefix, digester()), 400)
			var missing *MissingError
			if _, err := s.Read(t.Context(), root); err != nil && !errors.As(err, &missing) {
				t.Errorf("crash at write %d %s: a reader got %v", writes, how, err)
			}
			if _, err := s.Put(t.Context(), objects); err != nil {
				t.Errorf("crash at write %d %s: putting it again: %v", writes, how, err)
			}
			mustHave(t, s, objects)
		}
		if writes < 4 {
			t.Errorf("a put had %d writes: this test needs several chunks", writes)
		}
	}
}

func TestReadRefusesOtherNames(t *testing.T) {
	s := New(nil, "/p", digester())
	for _, root := range []string{"", "x", "sha256:abc", "../identity", "hmac-" + Root(nil)} {
		if _, err := s.Read(t.Context(), root); err == nil {
			t.Errorf("%q passed for the name of a pack", root)
		}
	}
}
