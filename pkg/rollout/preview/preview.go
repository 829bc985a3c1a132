// Package preview computes the effect of a rollout on a cluster as it is now, without a write.
//
// A preview
//
//  1. lists every object of some work once: those of the layers, and those that are in no layer any
//     more;
//  2. asks the caller about the allowed access to each of them;
//  3. reads each object, decides with the engine's own rule (rollout.Decide), and asks the server
//     by dry-run about the result of each write;
//  4. withdraws refusals that only mean that the same rollout first defines the object's kind anew.
//
// It watches nothing, keeps nothing and writes nothing.
package preview

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/rollout"
	"github.com/penstock-project/penstock/pkg/rollout/managedfields"
	"github.com/penstock-project/penstock/pkg/rollout/observe"
	"github.com/penstock-project/penstock/pkg/rollout/stage"
	"github.com/penstock-project/penstock/pkg/rollout/targetclient"
)

// Actions that only a preview names: what becomes of an object that is in no
// layer.
const (
	// Delete the object.
	Delete rollout.Action = "Delete"
	// Release the object from the chain and leave it.
	Release rollout.Action = "Release"
	// Leave the object alone: it is somebody else's by now.
	Leave rollout.Action = "Leave"
)

// Preview has the effects of a rollout on the cluster as it is now.
type Preview struct {
	// Items are the objects that were looked at: those of the layers in their
	// order, each once, then those that are in no layer, in the order in which
	// they would go.
	Items []Item
}

// Item is the effect of a rollout on one object.
type Item struct {
	manifest.Ref
	// Action is that of rollout.Decide for the object as it is, or Delete, Release or
	// Leave; Idle also where the server found that nothing would change.
	Action rollout.Action
	// Message says why, for Adopt, Collision, Deferred, Leave and an Idle create-only object.
	Message string
	// Before and After are the object as it is and as the server says that it
	// would be: JSON without status and without what changes with every write.
	// Before is nil where there is none; both are nil where nothing changes.
	Before, After []byte
	// Exists is true when the object was found.
	Exists bool
	// Unread is true when the server failed to read the object: whether it exists
	// is not known, and Failure says why.
	Unread bool
	// Overtaken is true when another client changed the object during every attempt, so that the
	// effect of a rollout is not known.
	Overtaken bool
	// Tried is true when the server was asked what it would make of the object.
	Tried bool
	// Drifted is true when the object was given the content of the layer and
	// somebody has changed or deleted it since.
	Drifted bool
	// Fingerprint of a shared object as it was found (see rollout.Fingerprint).
	Fingerprint string
	// Taken are fields that other managers have and the rollout would take.
	Taken []managedfields.Taken
	// Failure is why the object could not be written, or read; Err is what it was
	// made from, and may quote the object.
	Failure *rollout.Failure
	Err     error
}

// Subject is an object that a preview may look at.
type Subject struct {
	manifest.Ref
	// Leaving objects are in no layer: the inventory has them. They are read,
	// never tried.
	Leaving bool
}

// Grant is how far a preview may go with one object.
type Grant struct {
	// Read allows to read it, and to try to write it if it exists. Without it
	// there is no request for the object, and nothing of it in the preview.
	Read bool
	// Create allows to try to create it if it does not exist. Without it the
	// object is a Create that was not tried.
	Create bool
}

// Permit says how far a preview may go with each of the objects; it is asked once,
// before anything is read. A nil Permit allows everything.
type Permit func(ctx context.Context, subjects []Subject) ([]Grant, error)

// Options of a previewer; all but Parallel are required.
type Options struct {
	Reader rollout.Reader
	Trier  rollout.Trier
	// Names are the label, annotation and field managers that mark our objects.
	Names observe.Names
	// Parallel bounds the requests of one preview at a time; the default is 8.
	Parallel int
}

// Previewer makes previews. It may be used by several goroutines.
type Previewer struct{ options Options }

// New returns a previewer.
func New(options Options) *Previewer {
	if options.Parallel <= 0 {
		options.Parallel = 8
	}
	return &Previewer{options}
}

// Preview says what a rollout of all layers of some work would do now, whatever
// stage they have reached, if nothing else happened meanwhile. It changes nothing:
// it costs one read and at most one dry-run for each object (one more of each for
// an object that changes in between). Of the work it uses the owner, the layers, the
// inventory, the bodies and which revisions' objects are released.
//
// Objects that would be refused are in the result. An error means that there is
// none: a Permit that could not tell, an object that could not be read, a server
// that does not answer, the end of the context. It wraps what the server said.
func (p *Previewer) Preview(ctx context.Context, work rollout.Work, permit Permit) (Preview, error) {
	items, err := p.items(ctx, work, permit)
	if err != nil {
		return Preview{}, fmt.Errorf("previewing %s: %w", work.Owner, err)
	}
	return Preview{Items: items}, nil
}

func (p *Previewer) items(ctx context.Context, work rollout.Work, permit Permit) ([]Item, error) {
	// 1. Every object once.
	objects := collect(work)
	// 2. Those that may be looked at.
	objects, err := narrow(ctx, objects, permit)
	if err != nil {
		return nil, err
	}
	// 3. The action for each of them.
	items, err := p.judge(ctx, work, objects)
	if err != nil {
		return nil, err
	}
	// 4. Refusals that the server could not know of.
	tolerate(items)
	return items, nil
}

// object is one that a preview looks at.
type object struct {
	Subject
	Grant
	// step of an object that is in a layer.
	step stage.Step
}

// collect lists every object once: the newest layer's step counts.
func collect(work rollout.Work) []object {
	var objects []object
	listed := map[manifest.ID]bool{}
	for _, layer := range work.Layers {
		for _, stg := range layer.Stages {
			for _, step := range stg.Steps {
				if listed[step.ID] {
					continue
				}
				listed[step.ID] = true
				objects = append(objects, object{Subject: Subject{Ref: step.Ref}, step: step})
			}
		}
	}
	for _, id := range work.Inventory.Unlisted(work.Layers) {
		objects = append(objects, object{Subject: Subject{Ref: work.Inventory.Ref(id), Leaving: true}})
	}
	return objects
}

// narrow leaves out what must not be looked at.
func narrow(ctx context.Context, objects []object, permit Permit) ([]object, error) {
	if permit == nil {
		for i := range objects {
			objects[i].Grant = Grant{Read: true, Create: true}
		}
		return objects, nil
	}
	subjects := make([]Subject, len(objects))
	for i := range objects {
		subjects[i] = objects[i].Subject
	}
	grants, err := permit(ctx, subjects)
	if err != nil {
		return nil, err
	}
	if len(grants) != len(objects) {
		return nil, fmt.Errorf("%d grants for %d objects", len(grants), len(objects))
	}
	for i := range objects {
		objects[i].Grant = grants[i]
	}
	return slices.DeleteFunc(objects, func(o object) bool { return !o.Read }), nil
}

// judge looks at the objects, some at a time.
func (p *Previewer) judge(ctx context.Context, work rollout.Work, objects []object) ([]Item, error) {
	who := rollout.Identity{Chain: work.Owner, Manager: p.options.Names.ManagerPrefix + work.Owner}
	j := &judge{
		options: p.options, work: work, objects: objects, who: who,
		manifests: rollout.Manifests{Bodies: work.Bodies, Kinds: p.options.Reader, Names: p.options.Names, Chain: who.Chain},
	}
	items := make([]Item, len(objects))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(p.options.Parallel)
	for i := range objects {
		group.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			var err error
			items[i], err = j.item(ctx, objects[i])
			return err
		})
	}
	return items, group.Wait()
}

// tolerate turns refusals into waiting where the definition of a kind changes in the
// same rollout: the server judged by the one that is there now.
func tolerate(items []Item) {
	for i := range items {
		item := &items[i]
		if item.Failure == nil || !item.Tried {
			continue
		}
		for j := range items {
			if other := &items[j]; other.DefinesKindsOf(item.Group) && (other.Action == rollout.Create || other.After != nil) {
				item.Action, item.Failure, item.Err = rollout.Deferred, nil, nil
				item.Message = "the same rollout changes the definition of its kind; how the server answers then is not known"
				break
			}
		}
	}
}

// unread tells a read that failed on the server's side, as of an object whose
// conversion webhook is away, from one that says that there cannot be such an
// object.
func unread(err error) bool {
	var scope *targetclient.ScopeError
	return !errors.As(err, &scope) && !meta.IsNoMatchError(err)
}

// silent tells an error that says nothing about the object from an answer about
// it: the server was not reached, is busy, or does not know us.
func silent(err error) bool {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		switch code := status.Status().Code; code {
		case http.StatusUnauthorized, http.StatusTooManyRequests, http.StatusRequestTimeout,
			http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
			return true
		default:
			return false
		}
	}
	var scope *targetclient.ScopeError
	return !errors.As(err, &scope) && !meta.IsNoMatchError(err)
}
