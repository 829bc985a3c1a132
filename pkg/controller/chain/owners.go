package chain

import (
	"context"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"

	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/objectwatch"
)

// OwnerWatch watches ClusterExtensions of the host by name, but only while their chains are held.
// Most of the time it watches nothing.
type OwnerWatch struct {
	client metadata.Interface
	notify func(chain string)

	mu     sync.Mutex
	owners map[string]*watched
	// ended is true after all watches have stopped for good.
	ended bool
}

var _ Owners = &OwnerWatch{}

type watched struct {
	reference metav1.OwnerReference
	stop      context.CancelFunc
	seen      *Owner
}

// NewOwnerWatch returns an OwnerWatch that stops when ctx ends. It calls notify with a chain when
// its owner has changed.
func NewOwnerWatch(ctx context.Context, client metadata.Interface, notify func(chain string)) *OwnerWatch {
	o := &OwnerWatch{client: client, notify: notify, owners: map[string]*watched{}}
	context.AfterFunc(ctx, o.end)
	return o
}

func (o *OwnerWatch) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ended = true
	for _, current := range o.owners {
		current.stop()
	}
}

// Follow watches the owner of a chain from now on. It does not watch owners that are no
// ClusterExtensions, because the meaning of their generation is unknown.
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

// Unfollow ends the watch for a chain, if it exists.
func (o *OwnerWatch) Unfollow(chain string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if current := o.owners[chain]; current != nil {
		current.stop()
		delete(o.owners, chain)
	}
}

func (o *OwnerWatch) start(chain string, owner metav1.OwnerReference) *watched {
	// The watch outlives the pass that needs it.
	ctx, stop := context.WithCancel(context.Background())
	current := &watched{reference: owner, stop: stop}
	version, err := schema.ParseGroupVersion(owner.APIVersion)
	if err != nil || version.Group != olm.GroupName || owner.Kind != "ClusterExtension" {
		return current
	}
	var watching *objectwatch.Watch[*metav1.PartialObjectMetadata]
	// The deletion of an owner deletes its revisions, too. Until then the last observed state
	// stays.
	look := func() {
		if found, err := watching.Get(); err == nil && found != nil {
			o.saw(ctx, chain, current, Owner{UID: found.UID, Generation: found.Generation})
		}
	}
	watching = objectwatch.New(o.client, o.client.Resource(version.WithResource("clusterextensions")), &metav1.PartialObjectMetadata{},
		objectwatch.Options{Name: owner.Name, Changed: look})
	if !o.ended {
		go watching.Run(ctx)
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
