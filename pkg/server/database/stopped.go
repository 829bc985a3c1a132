package database

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/klog/v2"

	"github.com/penstock-project/penstock/pkg/server/etcd"
	"github.com/penstock-project/penstock/pkg/store/etcdclient"
)

// Stopped is the store of a data directory that no process serves. No process can serve it until
// Close.
type Stopped struct {
	Client *clientv3.Client
	server *etcd.Server
}

// OpenStopped starts the etcd of a data directory. It returns an error if another process serves
// the directory.
func OpenStopped(ctx context.Context, dataDir string) (*Stopped, error) {
	server, err := startStopped(ctx, dataDir)
	if etcd.InUse(err) {
		return nil, fmt.Errorf("penstock serve still runs: stop it, then run the command again: %w", err)
	}
	if err != nil {
		return nil, err
	}
	client, err := etcdclient.New(storagebackend.TransportConfig{ServerList: []string{server.Endpoint()}}, maxMessage)
	if err != nil {
		server.Close()
		return nil, err
	}
	return &Stopped{Client: client, server: server}, nil
}

// Save writes the store to a file, which appears only when it is complete.
func (s *Stopped) Save(ctx context.Context, path string) error { return s.server.Save(ctx, path) }

// Close releases the data directory.
func (s *Stopped) Close() {
	// An error does not matter: the connection is closed either way.
	_ = s.Client.Close()
	s.server.Close()
}

func startStopped(ctx context.Context, dataDir string) (*etcd.Server, error) {
	store := storeDir(dataDir)
	if _, err := os.Stat(store); err != nil {
		return nil, fmt.Errorf("data directory %s has no store: %w", dataDir, err)
	}
	return etcd.Start(ctx, etcd.Config{DataDir: dataDir, QuotaBytes: quotaFor(filepath.Join(store, "member", "snap", "db")), Log: klog.FromContext(ctx).WithName("etcd")})
}

// Discard removes the store of a data directory. The store must be empty and not in use.
func Discard(dataDir string) error { return os.RemoveAll(storeDir(dataDir)) }

func storeDir(dataDir string) string { return filepath.Join(dataDir, "etcd") }
