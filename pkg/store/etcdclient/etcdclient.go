// Package etcdclient connects to the etcd of the store.
package etcdclient

import (
	"fmt"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/component-base/tracing"
)

const (
	// The API server library has the same values for its own connections to etcd.
	keepalive        = 30 * time.Second
	keepaliveTimeout = 10 * time.Second
	dialTimeout      = 20 * time.Second
	// retryMost bounds the pause before a client reconnects to etcd. By default, a client may wait
	// up to two minutes after etcd is available again. Clients are kept during an outage (see
	// AfterOutage of pkg/server/database).
	retryMost = 3 * time.Second
)

// New connects to etcd. It returns errors to the caller, and does not log them. maxMessage bounds
// an answer of etcd in bytes; 0 means no limit.
func New(to storagebackend.TransportConfig, maxMessage int) (*clientv3.Client, error) {
	again := backoff.DefaultConfig
	again.MaxDelay = retryMost
	config := clientv3.Config{
		Endpoints:            to.ServerList,
		DialTimeout:          dialTimeout,
		DialKeepAliveTime:    keepalive,
		DialKeepAliveTimeout: keepaliveTimeout,
		MaxCallRecvMsgSize:   maxMessage,
		DialOptions: []grpc.DialOption{
			grpc.WithUserAgent("penstock"),
			grpc.WithConnectParams(grpc.ConnectParams{Backoff: again, MinConnectTimeout: dialTimeout}),
		},
		Logger: zap.NewNop(),
	}
	if to.TracerProvider != nil {
		config.DialOptions = append(config.DialOptions, grpc.WithStatsHandler(otelgrpc.NewClientHandler(
			otelgrpc.WithMessageEvents(otelgrpc.ReceivedEvents, otelgrpc.SentEvents),
			otelgrpc.WithPropagators(tracing.Propagators()),
			otelgrpc.WithTracerProvider(to.TracerProvider),
		)))
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
