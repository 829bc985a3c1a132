package server

import (
	"context"
	"fmt"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/klog/v2"

	"github.com/penstock-project/penstock/pkg/registry/olm/clusterextensionrevision"
	"github.com/penstock-project/penstock/pkg/server/etcd"
	"github.com/penstock-project/penstock/pkg/server/storehealth"
	"github.com/penstock-project/penstock/pkg/server/storehealth/volume"
)

const (
	storeDialTimeout = 20 * time.Second
	storeKeepalive   = 30 * time.Second
	// storeRetryMost is how long a client waits at most before it looks again for an etcd
	// that is gone. By itself it would wait up to two minutes when etcd is back, and
	// this client outlives an outage (see restartAfterOutage).
	storeRetryMost = 3 * time.Second
	// maxStoreMessage bounds what etcd may answer with in one message, in
	// bytes: a listing of many records is larger than gRPC's default of 4 MiB.
	maxStoreMessage = 64 << 20
)

// database is the etcd behind everything: embedded or elsewhere.
type database struct {
	client *clientv3.Client
	// embedded is nil for an etcd elsewhere.
	embedded *etcd.Process
}

// openDatabase starts the embedded etcd, or connects to the external one, and
// tells the generic API server where it is.
func openDatabase(ctx context.Context, o *Options) (*database, error) {
	db := &database{}
	transport := &o.Recommended.Etcd.StorageConfig.Transport
	if !o.external() {
		command, err := storeCommand()
		if err != nil {
			return nil, err
		}
		embedded, err := etcd.StartProcess(ctx, etcd.Config{
			DataDir:    o.DataDir,
			QuotaBytes: o.DataQuota.Value(),
			Log:        klog.FromContext(ctx).WithName("etcd"),
		}, command...)
		if err != nil {
			return nil, err
		}
		db.embedded = embedded
		transport.ServerList = []string{embedded.Endpoint()}
	}
	client, err := newStoreClient(*transport)
	if err != nil {
		db.close()
		return nil, err
	}
	db.client = client
	return db, nil
}

func newStoreClient(to storagebackend.TransportConfig) (*clientv3.Client, error) {
	again := backoff.DefaultConfig
	again.MaxDelay = storeRetryMost
	config := clientv3.Config{
		Endpoints:            to.ServerList,
		DialTimeout:          storeDialTimeout,
		DialKeepAliveTime:    storeKeepalive,
		DialKeepAliveTimeout: storeDialTimeout,
		MaxCallRecvMsgSize:   maxStoreMessage,
		DialOptions:          []grpc.DialOption{grpc.WithUserAgent("penstock"), grpc.WithConnectParams(grpc.ConnectParams{Backoff: again, MinConnectTimeout: storeDialTimeout})},
		// What fails is returned to the caller, who knows what it means.
		Logger: zap.NewNop(),
	}
	if to.CertFile != "" || to.KeyFile != "" || to.TrustedCAFile != "" {
		tls := transport.TLSInfo{CertFile: to.CertFile, KeyFile: to.KeyFile, TrustedCAFile: to.TrustedCAFile}
		var err error
		if config.TLS, err = tls.ClientConfig(); err != nil {
			return nil, fmt.Errorf("reading the certificates for etcd: %w", err)
		}
	}
	client, err := clientv3.New(config)
	if err != nil {
		return nil, fmt.Errorf("connecting to etcd at %v: %w", to.ServerList, err)
	}
	return client, nil
}

func (d *database) close() {
	if d.client != nil {
		// The connection is gone either way.
		_ = d.client.Close()
	}
	if d.embedded != nil {
		d.embedded.Close()
	}
}

// newStoreHealth is told of the database by itself, and by the volume that it is on.
func newStoreHealth(o *Options, db *database) *storehealth.Health {
	options := storehealth.Options{Client: db.client, Full: clusterextensionrevision.StoreFull}
	if db.embedded != nil {
		options.Down, options.Volume = db.down, volume.Of(o.DataDir)
	}
	return storehealth.New(options)
}
