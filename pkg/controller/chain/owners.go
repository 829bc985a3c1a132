package chain

import (
	"context"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"

	"github.com/penstock-project/penstock/pkg/apis/olm"
)

// OwnerWatch watches ClusterExtensions of the host by name, those whose chains are
// held and no other: most of the time it watches nothing.
type OwnerWatch struct {
	client metadata.Interface
	notify func(chain string)

	mu     sync.Mutex
	owners map[string]*watched
	// ended is true when nothing is watched any more.
	ended bool
}

var _ Owners = &OwnerWatch{}

// watched is one owner.
type watched struct {
	reference metav1.OwnerReference
	stop      context.CancelFunc
	seen      *Owner
}

// NewOwnerWatch returns a watch that ends with the context. notify is called with
// a chain when its owner has changed.
func NewOwnerWatch(ctx context.Context, client metadata.Interface, notify func(chain string)) *OwnerWatch {
	o := &OwnerWatch{client: client, notify: notify, owners: map[string]*watched{}}
	context.AfterFunc(ctx, o.end)
	return o
}

// end stops all watches, for ever.
func (o *OwnerWatch) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ended = true
	for _, current := range o.owners {
		current.stop()
	}
}

// Follow watches the owner of a chain from now on. Of owners that are no
// ClusterExtensions nothing is ever seen: what their generation means is not known.
func (o *OwnerWatch) Follow(chain string, owner metav1.OwnerReference) (Owner, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	current := o.owners[chain]
	if current == nil || current.reference.Name != owner.Name || current.reference.APIVersion != owner.APIVersion || current.reference.Kind != owner.Kind {
		if current != nil {
			current.stop()
		}
		current = o.start(chain, owner)
		o.owners[chain] = current
	}
	if current.seen == nil {
		return Owner{}, false
	}
	return *current.seen, true
}

// Unfollow ends the watch for a chain, if there is one.
func (o *OwnerWatch) Unfollow(chain string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if current := o.owners[chain]; current != nil {
		current.stop()
		delete(o.owners, chain)
	}
}

// start begins to watch. The caller holds the lock.
func (o *OwnerWatch) start(chain string, owner metav1.OwnerReference) *watched {
	// It lasts longer than the pass that asks for it.
	ctx, stop := context.WithCancel(context.Background())
	current := &watched{reference: owner, stop: stop}
	version, err := schema.ParseGroupVersion(owner.APIVersion)
	if err != nil || version.Group != olm.GroupName || owner.Kind != "ClusterExtension" {
		return current
	}
	one := func(options *metav1.ListOptions) {
		options.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, owner.Name).String()
	}
	informer := metadatainformer.NewFilteredMetadataInformer(o.client, version.WithResource("clusterextensions"), "", 0, cache.Indexers{}, one).Informer()
	saw := func(object any) {
		if found, ok := object.(*metav1.PartialObjectMetadata); ok && found.Name == owner.Name {
			o.saw(ctx, chain, current, Owner{UID: found.UID, Generation: found.Generation})
		}
	}
	// An owner that is deleted takes its revisions with it; until then the last
	// that was seen of it stays. An informer that has not run takes any handler.
	_, _ = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: saw, UpdateFunc: func(_, now any) { saw(now) }})
	if !o.ended {
		go informer.RunWithContext(ctx)
	}
	return current
}

func (o *OwnerWatch) saw(ctx context.Context, chain string, current *watched, now Owner) {
	o.mu.Lock()
	news := ctx.Err() == nil && (current.seen == nil || *current.seen != now)
	if news {
		current.seen = &now
	}
	o.mu.Unlock()
	if news {
		o.notify(chain)
	}
}
