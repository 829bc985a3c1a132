package database

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apiserver/pkg/storage/storagebackend"

	"github.com/penstock-project/penstock/pkg/server/etcd"
	"github.com/penstock-project/penstock/pkg/store"
	"github.com/penstock-project/penstock/pkg/store/etcdclient"
	"github.com/penstock-project/penstock/pkg/store/fsck"
	"github.com/penstock-project/penstock/pkg/store/gc"
	"github.com/penstock-project/penstock/pkg/store/identity"
)

// Fsck checks a whole store.
type Fsck struct {
	// DataDir is the directory of an embedded store. The check uses the running etcd of a server,
	// or starts etcd for the check.
	DataDir string
	// Transport is the connection to an external etcd, without a DataDir.
	Transport storagebackend.TransportConfig
	// Repair collects unreferenced records before the check.
	Repair bool
}

// Run checks the store. With Repair it also returns the collected records.
func (f Fsck) Run(ctx context.Context) (fsck.Report, gc.Result, error) {
	transport := f.Transport
	if f.DataDir != "" {
		endpoint, stop, err := f.embedded(ctx)
		if err != nil {
			return fsck.Report{}, gc.Result{}, err
		}
		defer stop()
		transport = storagebackend.TransportConfig{ServerList: []string{endpoint}}
	}
	client, err := etcdclient.New(transport, maxMessage)
	if err != nil {
		return fsck.Report{}, gc.Result{}, err
	}
	db := &Database{Client: client}
	defer db.Close()
	present, found, err := identity.NewStore(client, Prefix).Read(ctx)
	var damaged *store.DamagedError
	switch {
	case errors.As(err, &damaged):
		// The check reports the damage. Without the identity, digests of Secrets cannot be
		// compared.
	case err != nil:
		return fsck.Report{}, gc.Result{}, fmt.Errorf("reading the identity of the store: %w", err)
	case !found:
		return fsck.Report{}, gc.Result{}, errors.New("there is no store: it has no identity")
	}
	upkeep := db.Records(present, nil).Upkeep
	var collected gc.Result
	if f.Repair {
		if damaged == nil && present.Format < identity.Format {
			// An earlier Penstock may be about to refer to a record that has no reference yet. It
			// does not detect that the record was deleted meanwhile.
			return fsck.Report{}, gc.Result{}, fmt.Errorf("repairing: the store has format %d, so an earlier Penstock may be serving it, and nothing may be deleted meanwhile: "+
				"start this Penstock on it, which raises the format to %d, or check without --repair", present.Format, identity.Format)
		}
		if damaged != nil {
			return fsck.Report{}, gc.Result{}, fmt.Errorf("repairing: whether anything may be deleted is not known; check without --repair: %w", damaged)
		}
		collector := upkeep.Collector()
		err := collector.Begin(ctx)
		if err == nil {
			collected, err = collector.Collect(ctx)
		}
		// With an unreadable record the collector deletes nothing. The check names the record.
		if held := (*gc.HeldError)(nil); err != nil && !errors.As(err, &held) {
			return fsck.Report{}, collected, fmt.Errorf("repairing: %w", err)
		}
	}
	report, err := upkeep.Check(ctx, nil)
	return report, collected, err
}

// embedded returns the address of the etcd of the data directory, and a function that stops it if
// it was started here.
func (f Fsck) embedded(ctx context.Context) (endpoint string, stop func(), err error) {
	server, err := startStopped(ctx, f.DataDir)
	if err == nil {
		return server.Endpoint(), server.Close, nil
	}
	if !etcd.InUse(err) {
		return "", nil, err
	}
	endpoint, err = etcd.EndpointOf(f.DataDir)
	return endpoint, func() {}, err
}
