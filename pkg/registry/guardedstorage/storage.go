// Package guardedstorage is the storage of revisions and plans. It is the stock storage of the API
// server library over a client that guards writes. The client writes a record only if its chain is
// unchanged since the check, and if its packs exist (see pkg/store/chainversion).
package guardedstorage

import (
	"sync"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/kubernetes"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/features"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/cacher"
	"k8s.io/apiserver/pkg/storage/etcd3"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	"k8s.io/apiserver/pkg/storage/value/encrypt/identity"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/tools/cache"

	"github.com/penstock-project/penstock/pkg/store/chainversion"
	"github.com/penstock-project/penstock/pkg/store/etcdclient"
)

// WithCacher works like registry.StorageWithCacher, with the storage of this package. The library
// cannot wrap its client of etcd, so WithCacher repeats its setup of the cache.
func WithCacher() generic.StorageDecorator {
	return func(config *storagebackend.ConfigForResource, resourcePrefix string, key func(runtime.Object) (string, error),
		newFunc, newList func() runtime.Object, attrs storage.AttrFunc, triggers storage.IndexerFuncs, indexers *cache.Indexers) (storage.Interface, factory.DestroyFunc, error) {
		raw, destroyRaw, err := dial(config, newFunc, newList, resourcePrefix)
		if err != nil {
			return nil, nil, err
		}
		cached, err := cacher.NewCacherFromConfig(cacher.Config{
			Storage: raw, Versioner: storage.APIObjectVersioner{}, GroupResource: config.GroupResource,
			EventsHistoryWindow: config.EventsHistoryWindow, ResourcePrefix: resourcePrefix, KeyFunc: key,
			NewFunc: newFunc, NewListFunc: newList, GetAttrsFunc: attrs, IndexerFuncs: triggers, Indexers: indexers, Codec: config.Codec,
		})
		if err != nil {
			destroyRaw()
			return nil, nil, err
		}
		delegator := cacher.NewCacheDelegator(cached, raw)
		// Subresources share the storage, and each destroys it.
		return delegator, sync.OnceFunc(func() {
			delegator.Stop()
			cached.Stop()
			destroyRaw()
		}), nil
	}
}

// dial connects to etcd and returns storage without a cache.
func dial(config *storagebackend.ConfigForResource, newFunc, newList func() runtime.Object, resourcePrefix string) (storage.Interface, func(), error) {
	client, err := etcdclient.New(config.Transport, 0)
	if err != nil {
		return nil, nil, err
	}
	client.KV = etcd3.NewETCDLatencyTracker(client.KV)
	var compactor etcd3.Compactor
	stop := func() {}
	if config.CompactionInterval > 0 {
		// etcd decides which process compacts.
		c := etcd3.StartCompactorPerEndpoint(client, config.CompactionInterval)
		compactor, stop = c, c.Stop
	}
	raw, closeRaw, err := Raw(client, compactor, config, newFunc, newList, resourcePrefix)
	if err != nil {
		stop()
		_ = client.Close()
		return nil, nil, err
	}
	return raw, func() {
		stop()
		closeRaw()
		_ = client.Close()
	}, nil
}

// Raw returns the storage of a resource over a client of etcd, without a cache. With a nil
// compactor, it does not compact.
func Raw(client *clientv3.Client, compactor etcd3.Compactor, config *storagebackend.ConfigForResource, newFunc, newList func() runtime.Object, resourcePrefix string) (storage.Interface, func(), error) {
	wrapped := &kubernetes.Client{Client: client}
	wrapped.Kubernetes = chainversion.NewClient(wrapped, client.KV, config.Prefix)
	transformer := config.Transformer
	if transformer == nil {
		transformer = identity.NewEncryptCheckTransformer()
	}
	versioner := storage.APIObjectVersioner{}
	decoder := etcd3.NewDefaultDecoder(config.Codec, versioner)
	unsafeDeletion := utilfeature.DefaultFeatureGate.Enabled(features.AllowUnsafeMalformedObjectDeletion)
	if unsafeDeletion {
		transformer = etcd3.WithCorruptObjErrorHandlingTransformer(transformer)
		decoder = etcd3.WithCorruptObjErrorHandlingDecoder(decoder)
	}
	raw, err := etcd3.New(wrapped, compactor, config.Codec, newFunc, newList, config.Prefix, resourcePrefix, config.GroupResource,
		transformer, config.LeaseManagerConfig, decoder, versioner)
	if err != nil {
		return nil, nil, err
	}
	if unsafeDeletion {
		return etcd3.NewStoreWithUnsafeCorruptObjectDeletion(raw, config.GroupResource), raw.Close, nil
	}
	return raw, raw.Close, nil
}
