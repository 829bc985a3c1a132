package server

import (
	"context"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/klog/v2"

	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/server/etcd"
	"github.com/penstock-project/penstock/pkg/store/identity"
)

// restoreTimeout bounds what is done with the store after the files are there.
const restoreTimeout = time.Minute

// Restored says what came out of a snapshot.
type Restored struct {
	// StoreID of the store.
	StoreID string
	// Revisions counts the ClusterExtensionRevisions in it.
	Revisions int64
}

// Restore makes the store of a data directory, which must not have one, of a
// snapshot. It has a new epoch: it is not served before a person has accepted that
// the cluster is ahead of it (see Options.AcceptIdentity). After an error there is
// no store.
func Restore(ctx context.Context, snapshot, dataDir string) (Restored, error) {
	quota := resource.MustParse(defaultQuota)
	config := etcd.Config{DataDir: dataDir, QuotaBytes: quota.Value(), Log: klog.FromContext(ctx).WithName("etcd")}
	var restored Restored
	err := etcd.Restore(ctx, snapshot, config, func(ctx context.Context, endpoint string) error {
		var err error
		restored, err = beginEpoch(ctx, endpoint)
		return err
	})
	return restored, err
}

// beginEpoch notes in a store that it was restored.
func beginEpoch(ctx context.Context, endpoint string) (Restored, error) {
	ctx, cancel := context.WithTimeout(ctx, restoreTimeout)
	defer cancel()
	client, err := newStoreClient(storagebackend.TransportConfig{ServerList: []string{endpoint}})
	if err != nil {
		return Restored{}, err
	}
	// The connection is gone either way.
	defer func() { _ = client.Close() }()
	present, err := identity.NewStore(client, storagePrefix).BeginEpoch(ctx)
	if err != nil {
		return Restored{}, fmt.Errorf("it has no store of Penstock: %w", err)
	}
	prefix := storagePrefix + "/" + olm.GroupName + "/clusterextensionrevisions/"
	found, err := client.Get(ctx, prefix, clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err != nil {
		return Restored{}, fmt.Errorf("counting the revisions: %w", err)
	}
	return Restored{StoreID: present.ID, Revisions: found.Count}, nil
}
