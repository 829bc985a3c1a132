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
	var watching *objectwatch.Watch[*metav1.PartialObjectMetadata]
	// An owner that is deleted takes its revisions with it; until then the last
	// that was seen of it stays.
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
