package storeguard

import (
	"context"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/server/etcd"
	"github.com/penstock-project/penstock/pkg/store/identity"
)

const restoreTimeout = time.Minute

// Restored describes a restored store.
type Restored struct {
	// StoreID identifies the store.
	StoreID string
	// Revisions is the number of ClusterExtensionRevisions in the store.
	Revisions int64
}

// Restore creates the store of a data directory from a snapshot. The directory must not have a
// store. The restored store has a new epoch: it is served only after an administrator has accepted
// that the cluster is ahead of it (see Options.Accept). After an error there is no store. Records
// are under prefix; connect returns a client for an endpoint.
func Restore(ctx context.Context, snapshot string, config etcd.Config, prefix string, connect func(endpoint string) (*clientv3.Client, error)) (Restored, error) {
	var restored Restored
	err := etcd.Restore(ctx, snapshot, config, func(ctx context.Context, endpoint string) error {
		client, err := connect(endpoint)
		if err != nil {
			return err
		}
		// An error does not matter: the connection is closed either way.
		defer func() { _ = client.Close() }()
		restored, err = beginEpoch(ctx, client, prefix)
		return err
	})
	return restored, err
}

func beginEpoch(ctx context.Context, client *clientv3.Client, prefix string) (Restored, error) {
	ctx, cancel := context.WithTimeout(ctx, restoreTimeout)
	defer cancel()
	present, err := identity.NewStore(client, prefix).BeginEpoch(ctx)
	if err != nil {
		return Restored{}, fmt.Errorf("it has no store of Penstock: %w", err)
	}
	revisions := prefix + "/" + olm.GroupName + "/clusterextensionrevisions/"
	found, err := client.Get(ctx, revisions, clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err != nil {
		return Restored{}, fmt.Errorf("counting the revisions: %w", err)
	}
	return Restored{StoreID: present.ID, Revisions: found.Count}, nil
}
