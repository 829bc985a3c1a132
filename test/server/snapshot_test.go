//go:build integration

package server_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/penstock-project/penstock/pkg/server/database"
	"github.com/penstock-project/penstock/pkg/server/etcd"
	"github.com/penstock-project/penstock/test/framework/cluster"
)

// snapshot has the store of a release and its objects in the host.
type snapshot struct {
	// Store has every record of the store. Host has the keys in the host's etcd that a clean
	// cluster lacks.
	Store, Host contents
}

// contents is the keys of an etcd, and its revision.
type contents struct {
	Revision int64
	Writes   []written
}

// written is a transaction: its etcd revision, and the values that it left.
type written struct {
	Revision int64
	Values   map[string][]byte
}

// readContents returns the keys of an etcd, except the keys for which skip returns true.
func readContents(t *testing.T, client *clientv3.Client, skip func(key string) bool) contents {
	t.Helper()
	all, err := client.Get(t.Context(), "", clientv3.WithPrefix())
	if err != nil {
		t.Fatal(err)
	}
	values := map[int64]map[string][]byte{}
	for _, kv := range all.Kvs {
		if skip(string(kv.Key)) {
			continue
		}
		if values[kv.ModRevision] == nil {
			values[kv.ModRevision] = map[string][]byte{}
		}
		values[kv.ModRevision][string(kv.Key)] = kv.Value
	}
	found := contents{Revision: all.Header.Revision}
	for _, revision := range slices.Sorted(maps.Keys(values)) {
		found.Writes = append(found.Writes, written{revision, values[revision]})
	}
	return found
}

// storeRevisions writes the values at their original etcd revisions. These are the resource
// versions in the API, and the host's witness records the highest.
func (c contents) storeRevisions(t *testing.T, client *clientv3.Client) {
	t.Helper()
	at := int64(1)
	for _, one := range c.Writes {
		advance(t, client, at, one.Revision-1)
		at = putAll(t, client, one.Values)
		if at != one.Revision {
			t.Fatalf("revision %d of etcd was written as %d", one.Revision, at)
		}
	}
	advance(t, client, at, c.Revision)
}

// hostObjects writes the values while a kube-apiserver runs, at revisions above their original
// ones.
func (c contents) hostObjects(t *testing.T, client *clientv3.Client) {
	t.Helper()
	advance(t, client, 0, c.Revision)
	for _, one := range c.Writes {
		putAll(t, client, one.Values)
	}
}

// advance writes to etcd until it has a given revision.
func advance(t *testing.T, client *clientv3.Client, at, until int64) int64 {
	t.Helper()
	for at < until {
		at = putAll(t, client, map[string][]byte{"/nothing": nil})
	}
	return at
}

func putAll(t *testing.T, client *clientv3.Client, values map[string][]byte) int64 {
	t.Helper()
	var puts []clientv3.Op
	for key, value := range values {
		puts = append(puts, clientv3.OpPut(key, string(value)))
	}
	done, err := client.Txn(t.Context()).Then(puts...).Commit()
	if err != nil {
		t.Fatal(err)
	}
	return done.Header.Revision
}

// values returns all values by key.
func (c contents) values() map[string][]byte {
	all := map[string][]byte{}
	for _, one := range c.Writes {
		maps.Copy(all, one.Values)
	}
	return all
}

// hostEtcd returns a client of the host's etcd.
func hostEtcd(t *testing.T, c *cluster.Cluster) *clientv3.Client {
	t.Helper()
	return etcdAt(t, "unix://"+filepath.Join(c.Plane().Dir(), "etcd.sock"))
}

// withStore runs etcd on a data directory that no Penstock serves.
func withStore(t *testing.T, dir string, do func(client *clientv3.Client)) {
	t.Helper()
	running, err := etcd.Start(t.Context(), etcd.Config{DataDir: dir, QuotaBytes: 64 << 20, Log: logr.Discard(), Fleeting: true})
	if err != nil {
		t.Fatal(err)
	}
	defer running.Close()
	do(etcdAt(t, running.Endpoint()))
}

// storeIn returns the records of a data directory that no Penstock serves.
func storeIn(t *testing.T, dir string) (found contents) {
	t.Helper()
	withStore(t, dir, func(client *clientv3.Client) {
		found = readContents(t, client, func(key string) bool { return !strings.HasPrefix(key, database.Prefix) })
	})
	return found
}

func readSnapshot(t *testing.T, file string) (found snapshot) {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	plain, err := gzip.NewReader(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(json.NewDecoder(plain).Decode(&found), plain.Close()); err != nil {
		t.Fatalf("reading %s: %v", file, err)
	}
	return found
}

func (s snapshot) write(t *testing.T, file string) {
	t.Helper()
	var packed bytes.Buffer
	into, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	err = errors.Join(json.NewEncoder(into).Encode(s), into.Close(), os.MkdirAll(filepath.Dir(file), 0o755))
	if err := errors.Join(err, os.WriteFile(file, packed.Bytes(), 0o644)); err != nil {
		t.Fatal(err)
	}
	t.Logf("%s has %d bytes", file, packed.Len())
}
