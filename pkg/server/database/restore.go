package database

import (
	"context"
	"os"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/klog/v2"

	"github.com/penstock-project/penstock/pkg/server/etcd"
	"github.com/penstock-project/penstock/pkg/server/storeguard"
	"github.com/penstock-project/penstock/pkg/store/etcdclient"
)

// quotaFor returns a quota that leaves room for writes to a database of the size of a file. The
// --data-quota of the former server is unknown here.
func quotaFor(file string) int64 {
	quota := resource.MustParse(DefaultQuota)
	found, err := os.Stat(file)
	if err != nil {
		return quota.Value() // the process that opens the file reports the error
	}
	return max(quota.Value(), 2*found.Size())
}

// Restore creates the store of a data directory from a snapshot, see storeguard.Restore.
func Restore(ctx context.Context, snapshot, dataDir string) (storeguard.Restored, error) {
	config := etcd.Config{DataDir: dataDir, QuotaBytes: quotaFor(snapshot), Log: klog.FromContext(ctx).WithName("etcd")}
	return storeguard.Restore(ctx, snapshot, config, Prefix, func(endpoint string) (*clientv3.Client, error) {
		return etcdclient.New(storagebackend.TransportConfig{ServerList: []string{endpoint}}, maxMessage)
	})
}
