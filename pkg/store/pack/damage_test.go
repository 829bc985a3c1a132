package pack

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/store"
	"github.com/penstock-project/penstock/pkg/store/storetest"
)

// damage is a damage to a pack of three objects with several chunks, with the results of Read and
// Put.
type damage struct {
	reason string
	do     func(t *testing.T, kv clientv3.KV, s *Store, root string)
	read   func(error) bool
	// healed is true if Put repairs the pack.
	healed bool
	put    func(error) bool
}

func damages() map[string]damage {
	isMissing := func(err error) bool { var e *MissingError; return errors.As(err, &e) }
	isCorrupt := func(err error) bool { var e *CorruptError; return errors.As(err, &e) }
	isNewer := func(err error) bool { var e *store.FormatError; return errors.As(err, &e) && !isCorrupt(err) }
	return map[string]damage{
		"RecordGone": {
			reason: "chunks without their record are no pack: a crash leaves them",
			do:     func(t *testing.T, kv clientv3.KV, s *Store, root string) { remove(t, kv, s.keys.Pack(root)) },
			read:   isMissing, healed: true,
		},
		"ChunkGone": {
			reason: "nothing contradicts the digests, so what is missing is filled in",
			do:     func(t *testing.T, kv clientv3.KV, s *Store, root string) { remove(t, kv, chunkKeys(t, kv, s, root)[0]) },
			read:   isMissing, healed: true,
		},
		"AllChunksGone": {
			reason: "as with one",
			do: func(t *testing.T, kv clientv3.KV, s *Store, root string) {
				for _, key := range chunkKeys(t, kv, s, root) {
					remove(t, kv, key)
				}
			},
			read: isMissing, healed: true,
		},
		"ChunkFlipped": {
			reason: "one bit of a chunk",
			do: func(t *testing.T, kv clientv3.KV, s *Store, root string) {
				flip(t, kv, chunkKeys(t, kv, s, root)[1], 10)
			},
			read: func(err error) bool { return isCorrupt(err) && strings.Contains(err.Error(), "/chunks/") },
			put:  isCorrupt,
		},
		"OrphanFlipped": {
			reason: "a chunk that a crash left behind has other bytes than its name says",
			do: func(t *testing.T, kv clientv3.KV, s *Store, root string) {
				flip(t, kv, chunkKeys(t, kv, s, root)[1], 10)
				remove(t, kv, s.keys.Pack(root))
			},
			read: isMissing, put: isCorrupt,
		},
		"RecordFlipped": {
			reason: "one bit of the frame's checksum",
			do:     func(t *testing.T, kv clientv3.KV, s *Store, root string) { flip(t, kv, s.keys.Pack(root), 5) },
			read:   isCorrupt, put: isCorrupt,
		},
		"MagicFlipped": {
			reason: "not a record of a pack at all",
			do:     func(t *testing.T, kv clientv3.KV, s *Store, root string) { flip(t, kv, s.keys.Pack(root), 0) },
			read:   isCorrupt, put: isCorrupt,
		},
		"RecordCut": {
			reason: "the last chunk is not named completely",
			do: func(t *testing.T, kv clientv3.KV, s *Store, root string) {
				value := dump(t, kv, s.keys.Pack(root))[s.keys.Pack(root)]
				write(t, kv, s.keys.Pack(root), value[:len(value)-1])
			},
			read: isCorrupt, put: isCorrupt,
		},
		"RecordEmpty": {
			reason: "an empty value is there, and is no pack",
			do:     func(t *testing.T, kv clientv3.KV, s *Store, root string) { write(t, kv, s.keys.Pack(root), "") },
			read:   isCorrupt, put: isCorrupt,
		},
		"NewerFormat": {
			reason: "what a newer Penstock wrote is neither corrupt nor to be overwritten",
			do: func(t *testing.T, kv clientv3.KV, s *Store, root string) {
				value := []byte(dump(t, kv, s.keys.Pack(root))[s.keys.Pack(root)])
				value[3] = 9
				write(t, kv, s.keys.Pack(root), string(value))
			},
			read: isNewer, put: isNewer,
		},
		"OtherPack": {
			reason: "a whole and valid pack below another's name is a substitute",
			do: func(t *testing.T, kv clientv3.KV, s *Store, root string) {
				other := New(kv, "/other", digester())
				got, err := other.Put(t.Context(), []manifest.Object{object(t, "ConfigMap", "other", "1")})
				if err != nil {
					t.Fatal(err)
				}
				write(t, kv, s.keys.Pack(root), dump(t, kv, "/other")[other.keys.Pack(got)])
			},
			read: isCorrupt, put: isCorrupt,
		},
		"OtherBody": {
			reason: "the index is right, the frame is right, and a body is another one",
			do: func(t *testing.T, kv clientv3.KV, s *Store, root string) {
				objects, err := s.Objects(t.Context(), root)
				if err != nil {
					t.Fatal(err)
				}
				_, content, err := s.encode(objects)
				if err != nil {
					t.Fatal(err)
				}
				content[len(content)-5] ^= 1
				forged, err := seal(content, ChunkBytes)
				if err != nil {
					t.Fatal(err)
				}
				write(t, kv, s.keys.Pack(root), string(forged.record))
			},
			read: func(err error) bool { var e *CorruptError; return errors.As(err, &e) && e.Digest != "" },
			put:  isCorrupt,
		},
	}
}

func TestDamage(t *testing.T) {
	client := storetest.Client(t)
	objects := append(noise(t, 2, 900), object(t, "Secret", "s", "1"))
	for name, tc := range damages() {
		t.Run(name, func(t *testing.T) {
			s := chunked(New(client, "/"+name, digester()), 400)
			root, err := s.Put(t.Context(), objects)
			if err != nil {
				t.Fatalf("put: %v", err)
			}
			tc.do(t, client, s, root)
			damaged := dump(t, client, "/"+name)

			if bodies, err := s.Read(t.Context(), root); !tc.read(err) || bodies != nil {
				t.Errorf("%s: read returned %d bodies and error %v", tc.reason, len(bodies), err)
			}
			_, err = s.Put(t.Context(), objects)
			if tc.healed {
				if err != nil {
					t.Fatalf("%s: putting it again: %v", tc.reason, err)
				}
				mustHave(t, s, objects)
				return
			}
			if !tc.put(err) {
				t.Errorf("%s: putting it again: got error %v", tc.reason, err)
			}
			if diff := cmp.Diff(damaged, dump(t, client, "/"+name)); diff != "" {
				t.Errorf("%s: put changed the evidence:\n%s", tc.reason, diff)
			}
		})
	}
}

func remove(t *testing.T, kv clientv3.KV, key string) {
	t.Helper()
	if response, err := kv.Delete(t.Context(), key); err != nil || response.Deleted != 1 {
		t.Fatalf("deleting %s: error %v", key, err)
	}
}

func write(t *testing.T, kv clientv3.KV, key, value string) {
	t.Helper()
	if _, err := kv.Put(t.Context(), key, value); err != nil {
		t.Fatalf("writing %s: %v", key, err)
	}
}

func flip(t *testing.T, kv clientv3.KV, key string, at int) {
	t.Helper()
	value := []byte(dump(t, kv, key)[key])
	value[at] ^= 1
	write(t, kv, key, string(value))
}

func chunkKeys(t *testing.T, kv clientv3.KV, s *Store, root string) []string {
	t.Helper()
	var keys []string
	for key := range dump(t, kv, s.keys.Packs()) {
		if key != s.keys.Pack(root) {
			keys = append(keys, key)
		}
	}
	if len(keys) < 2 {
		t.Fatalf("the pack has %d chunks: this test needs several", len(keys))
	}
	slices.Sort(keys)
	return keys
}
