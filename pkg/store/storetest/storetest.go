// Package storetest helps to test stored records. It has a real etcd, a fake etcd, and a KV that
// crashes at a chosen write.
package storetest

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/go-logr/logr"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/penstock-project/penstock/pkg/server/etcd"
)

// Client starts an etcd for one test and returns a client. Both end with the test.
func Client(t testing.TB) *clientv3.Client {
	t.Helper()
	return Clients(t, 1)[0]
}

// Clients returns clients of several processes with one etcd.
func Clients(t testing.TB, n int) []*clientv3.Client {
	t.Helper()
	// The directory is not from t.TempDir, whose path contains the test's name: a unix socket's
	// path has at most 107 bytes.
	dir, err := os.MkdirTemp("", "penstock")
	if err != nil {
		t.Fatalf("making a directory for etcd: %v", err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })

	server, err := etcd.Start(t.Context(), etcd.Config{DataDir: dir, QuotaBytes: 512 << 20, Log: logr.Discard(), Fleeting: true})
	if err != nil {
		t.Fatalf("starting etcd: %v", err)
	}
	t.Cleanup(server.Close)

	clients := make([]*clientv3.Client, n)
	for i := range clients {
		client, err := clientv3.New(clientv3.Config{
			Endpoints:   []string{server.Endpoint()},
			DialTimeout: 10 * time.Second,
			Logger:      zap.NewNop(),
		})
		if err != nil {
			t.Fatalf("connecting to etcd: %v", err)
		}
		t.Cleanup(func() { _ = client.Close() })
		clients[i] = client
	}
	return clients
}

// Revision returns etcd's current revision. Every write increments it.
func Revision(t testing.TB, kv clientv3.KV) int64 {
	t.Helper()
	response, err := kv.Get(context.Background(), "/none")
	if err != nil {
		t.Fatalf("reading etcd's revision: %v", err)
	}
	return response.Header.Revision
}
