package database

import (
	"context"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/klog/v2"

	"github.com/penstock-project/penstock/pkg/server/etcd"
	"github.com/penstock-project/penstock/pkg/server/storeguard"
	"github.com/penstock-project/penstock/pkg/store/etcdclient"
)

// Restore makes the store of a data directory of a snapshot, see storeguard.Restore.
func Restore(ctx context.Context, snapshot, dataDir string) (storeguard.Restored, error) {
	quota := resource.MustParse(DefaultQuota)
	config := etcd.Config{DataDir: dataDir, QuotaBytes: quota.Value(), Log: klog.FromContext(ctx).WithName("etcd")}
	return storeguard.Restore(ctx, snapshot, config, Prefix, func(endpoint string) (*clientv3.Client, error) {
		return etcdclient.New(storagebackend.TransportConfig{ServerList: []string{endpoint}}, maxMessage)
	})
}
