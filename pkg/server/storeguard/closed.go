package storeguard

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/server/options"
	serverstorage "k8s.io/apiserver/pkg/server/storage"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	"k8s.io/client-go/tools/cache"
)

// ClosedStorage provides all endpoints, for discovery, over storage that is closed.
type ClosedStorage struct {
	open   generic.RESTOptionsGetter
	reason string
}

// NewClosedStorage returns the endpoints of the etcd options, closed for a reason. It connects to
// nothing.
func NewClosedStorage(etcd *options.EtcdOptions, reason string) ClosedStorage {
	factory := &options.SimpleStorageFactory{StorageConfig: etcd.StorageConfig}
	return ClosedStorage{open: etcd.CreateRESTOptionsGetter(serverstorage.StorageFactory(factory), nil), reason: reason}
}

// GetRESTOptions implements generic.RESTOptionsGetter.
func (c ClosedStorage) GetRESTOptions(resource schema.GroupResource, example runtime.Object) (generic.RESTOptions, error) {
	found, err := c.open.GetRESTOptions(resource, example)
	if err != nil {
		return generic.RESTOptions{}, err
	}
	found.Decorator = func(*storagebackend.ConfigForResource, string, func(runtime.Object) (string, error), func() runtime.Object, func() runtime.Object,
		storage.AttrFunc, storage.IndexerFuncs, *cache.Indexers) (storage.Interface, factory.DestroyFunc, error) {
		return closed{reason: c.reason}, func() {}, nil
	}
	// Nothing reads the number of records.
	found.CountMetricPollPeriod = 0
	return found, nil
}

// closed is storage that returns the reason why it is closed. No request should reach it (see
// WithDegraded). If one does, the answer must not be "not found".
type closed struct{ reason string }

var _ storage.Interface = closed{}

func (c closed) err() error { return apierrors.NewServiceUnavailable(c.reason) }

// Versioner implements storage.Interface.
func (c closed) Versioner() storage.Versioner { return storage.APIObjectVersioner{} }

// Create implements storage.Interface.
func (c closed) Create(context.Context, string, runtime.Object, runtime.Object, uint64) error {
	return c.err()
}

// Delete implements storage.Interface.
func (c closed) Delete(context.Context, string, runtime.Object, *storage.Preconditions, storage.ValidateObjectFunc, runtime.Object, storage.DeleteOptions) error {
	return c.err()
}

// Watch implements storage.Interface.
func (c closed) Watch(context.Context, string, storage.ListOptions) (watch.Interface, error) {
	return nil, c.err()
}

// Get implements storage.Interface.
func (c closed) Get(context.Context, string, storage.GetOptions, runtime.Object) error {
	return c.err()
}

// GetList implements storage.Interface.
func (c closed) GetList(context.Context, string, storage.ListOptions, runtime.Object) error {
	return c.err()
}

// GuaranteedUpdate implements storage.Interface.
func (c closed) GuaranteedUpdate(context.Context, string, runtime.Object, bool, *storage.Preconditions, storage.UpdateFunc, runtime.Object) error {
	return c.err()
}

// Stats implements storage.Interface.
func (c closed) Stats(context.Context) (storage.Stats, error) { return storage.Stats{}, c.err() }

// ReadinessCheck implements storage.Interface. The check of the store's identity reports that the
// store is closed.
func (c closed) ReadinessCheck() error { return nil }

// RequestWatchProgress implements storage.Interface.
func (c closed) RequestWatchProgress(context.Context) error { return c.err() }

// GetCurrentResourceVersion implements storage.Interface.
func (c closed) GetCurrentResourceVersion(context.Context) (uint64, error) { return 0, c.err() }

// EnableResourceSizeEstimation implements storage.Interface.
func (c closed) EnableResourceSizeEstimation(storage.KeysFunc) error { return nil }

// CompactRevision implements storage.Interface.
func (c closed) CompactRevision() int64 { return 0 }
