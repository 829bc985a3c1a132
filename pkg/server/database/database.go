// Package database provides the etcd of the store: embedded, as a second process, or external.
package database

import (
	"context"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/klog/v2"

	"github.com/penstock-project/penstock/pkg/server/etcd"
	"github.com/penstock-project/penstock/pkg/store/etcdclient"
)

// DefaultQuota is the database size at which the embedded etcd takes no more writes.
const DefaultQuota = "4Gi"

// maxMessage bounds one message of etcd, in bytes. A listing of many records exceeds gRPC's default
// of 4 MiB.
const maxMessage = 64 << 20

// Database is the etcd of the store: embedded or external.
type Database struct {
	Client *clientv3.Client
	// Embedded is nil for an external etcd.
	Embedded *etcd.Process
}

// Prefix is the prefix of all Penstock keys in etcd. The generic API server appends group and
// resource to the keys of its objects.
const Prefix = "/penstock"

// Config selects the etcd.
type Config struct {
	// DataDir and QuotaBytes configure the embedded etcd. It runs if DataDir is set; see
	// etcd.Config.
	DataDir    string
	QuotaBytes int64
	// Transport is the connection to an external etcd. For the embedded etcd, Open sets its address
	// here.
	Transport *storagebackend.TransportConfig
}

// Open starts the embedded etcd, or connects to the external one.
func Open(ctx context.Context, c Config) (*Database, error) {
	db := &Database{}
	if c.DataDir != "" {
		command, err := childCommand()
		if err != nil {
			return nil, err
		}
		embedded, err := etcd.StartProcess(ctx, etcd.Config{
			DataDir:    c.DataDir,
			QuotaBytes: c.QuotaBytes,
			Log:        klog.FromContext(ctx).WithName("etcd"),
		}, command...)
		if err != nil {
			return nil, err
		}
		db.Embedded = embedded
		c.Transport.ServerList = []string{embedded.Endpoint()}
	}
	client, err := etcdclient.New(*c.Transport, maxMessage)
	if err != nil {
		db.Close()
		return nil, err
	}
	db.Client = client
	return db, nil
}

// Close ends the embedded etcd, and closes the connection.
func (d *Database) Close() {
	if d.Client != nil {
		// An error does not matter: the connection is closed either way.
		_ = d.Client.Close()
	}
	if d.Embedded != nil {
		d.Embedded.Close()
	}
}
