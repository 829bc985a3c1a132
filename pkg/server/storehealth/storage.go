package storehealth

import (
	"context"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	"k8s.io/client-go/tools/cache"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/server/filters"
	"github.com/penstock-project/penstock/pkg/store"
)

// WithRoom answers writes of the groups with 507 while the store is full, and creates while its
// volume lacks room. Dry-runs pass.
func WithRoom(next http.Handler, health *Health, groups sets.Set[string], codecs runtime.NegotiatedSerializer) http.Handler {
	writes := sets.New("create", "update", "patch", "delete", "deletecollection")
	return filters.WithRefusal(next, groups, codecs, func(info *request.RequestInfo, r *http.Request) error {
		if !writes.Has(info.Verb) || r.URL.Query().Get("dryRun") == metav1.DryRunAll {
			return nil
		}
		if health.Full() {
			return health.answer()
		}
		// Other writes may be deletions, or lead to them (see space.guarded).
		if info.Verb == "create" {
			if refused := health.space.refuse(r.ContentLength); refused != nil {
				return refused
			}
		}
		return nil
	})
}

// Refusal returns the answer to any write while etcd does not run or is full; otherwise nil.
func (h *Health) Refusal() error {
	switch {
	case h.CutOff():
		return cutOff()
	case h.Full():
		return h.answer()
	default:
		return nil
	}
}

// Limited wraps endpoints so that writes to a full store return the store's own error. The library
// would turn etcd's error into an internal error.
func (h *Health) Limited(getter generic.RESTOptionsGetter) generic.RESTOptionsGetter {
	return limitedStorage{getter, h}
}

type limitedStorage struct {
	generic.RESTOptionsGetter
	health *Health
}

// GetRESTOptions implements generic.RESTOptionsGetter.
func (l limitedStorage) GetRESTOptions(resource schema.GroupResource, example runtime.Object) (generic.RESTOptions, error) {
	found, err := l.RESTOptionsGetter.GetRESTOptions(resource, example)
	if err != nil {
		return generic.RESTOptions{}, err
	}
	decorate := found.Decorator
	found.Decorator = func(config *storagebackend.ConfigForResource, prefix string, key func(runtime.Object) (string, error),
		newFunc, newList func() runtime.Object, attrs storage.AttrFunc, triggers storage.IndexerFuncs, indexers *cache.Indexers) (storage.Interface, factory.DestroyFunc, error) {
		open, destroy, err := decorate(config, prefix, key, newFunc, newList, attrs, triggers, indexers)
		return limited{Interface: open, health: l.health}, destroy, err
	}
	return found, nil
}

// limited is storage whose writes can fail for lack of space.
type limited struct {
	storage.Interface
	health *Health
}

func (l limited) explain(err error) error {
	if !store.IsFull(err) {
		return err
	}
	l.health.refused()
	return l.health.answer()
}

// Create implements storage.Interface.
func (l limited) Create(ctx context.Context, key string, obj, out runtime.Object, ttl uint64) error {
	if refused := l.health.space.refuse(0); refused != nil {
		return refused
	}
	return l.explain(l.Interface.Create(ctx, key, obj, out, ttl))
}

// Delete implements storage.Interface.
func (l limited) Delete(ctx context.Context, key string, out runtime.Object, preconditions *storage.Preconditions,
	validate storage.ValidateObjectFunc, cached runtime.Object, options storage.DeleteOptions) error {
	return l.explain(l.Interface.Delete(ctx, key, out, preconditions, validate, cached, options))
}

// GuaranteedUpdate implements storage.Interface.
func (l limited) GuaranteedUpdate(ctx context.Context, key string, out runtime.Object, ignoreNotFound bool, preconditions *storage.Preconditions,
	update storage.UpdateFunc, cached runtime.Object) error {
	return l.explain(l.Interface.GuaranteedUpdate(ctx, key, out, ignoreNotFound, preconditions, l.health.space.guarded(ctx, update), cached))
}

// Bodies stores manifests, as a *pack.Store does.
type Bodies interface {
	PutInChain(ctx context.Context, objects []manifest.Object, chain []string) (root string, err error)
	Read(ctx context.Context, root string) (map[manifest.Digest][]byte, error)
}

// LimitedBodies returns bodies that refuse writes while the store has no space. Manifests are
// stored before their revision, even if a patch creates that revision.
func (h *Health) LimitedBodies(bodies Bodies) Bodies { return limitedBodies{bodies, h.space} }

type limitedBodies struct {
	Bodies
	space *space
}

// PutInChain implements Bodies.
func (l limitedBodies) PutInChain(ctx context.Context, objects []manifest.Object, chain []string) (string, error) {
	bytes := 0
	for _, object := range objects {
		bytes += len(object.JSON)
	}
	if refused := l.space.refuse(int64(bytes)); refused != nil {
		return "", refused
	}
	return l.Bodies.PutInChain(ctx, objects, chain)
}
