// Package preview computes the effect of a rollout on a cluster as it is now, without a write.
//
// A preview
//
//  1. lists every object of some work once: the objects of the layers, and the objects that are
//     in no layer any more;
//  2. asks the caller about the allowed access to each object;
//  3. reads each object, decides with the engine's own rule (rollout.Decide), and asks the server by
//     dry-run for the result of each write;
//  4. withdraws refusals that only mean that the same rollout first changes the definition of the
//     object's kind.
//
// It watches no object, caches nothing and writes nothing.
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

// Actions that only a preview uses, for objects that are in no layer.
const (
	// Delete the object.
	Delete rollout.Action = "Delete"
	// Release removes the object from the chain and keeps it in the cluster.
	Release rollout.Action = "Release"
	// Leave means that the object has another owner now, and is not changed.
	Leave rollout.Action = "Leave"
)

// Preview holds the effects of a rollout on the present cluster.
type Preview struct {
	// Items are the examined objects. The objects of the layers come first, in order and each once.
	// The objects in no layer follow in the order of their deletion.
	Items []Item
}

// Item is the effect of a rollout on one object.
type Item struct {
	manifest.Ref
	// Action is the action of rollout.Decide for the present object, or Delete, Release or Leave.
	// It is also Idle if the server found no change.
	Action rollout.Action
	// Message explains Adopt, Collision, Deferred, Leave and an Idle create-only object.
	Message string
	// Before is the present object, and After the object that the server would store: JSON without
	// status and without fields that change at every write. Before is nil for an absent object.
	// Both are nil if nothing changes.
	Before, After []byte
	Exists        bool
	// Unread is true if the server failed to read the object. Then its existence is unknown, and
	// Failure has the reason.
	Unread bool
	// Overtaken is true when another client changed the object during every attempt, so that the
	// effect is unknown.
	Overtaken bool
	// Tried is true if the write was sent as a dry-run.
	Tried bool
	// Drifted is true if another writer changed or deleted the object after it got the content of
	// the layer.
	Drifted bool
	// Fingerprint is the fingerprint of the present shared object (see rollout.Fingerprint).
	Fingerprint string
	// Taken are fields that the rollout would take from other managers.
	Taken []managedfields.Taken
	// Failure is the reason why the object could not be written or read. Err is its cause, and may
	// quote the object.
	Failure *rollout.Failure
	Err     error
}

// Subject is an object that a preview may examine.
type Subject struct {
	manifest.Ref
	// Leaving is true for an object of the inventory that is in no layer. It is read, and never
	// tried.
	Leaving bool
}

// Grant limits the requests of a preview for one object.
type Grant struct {
	// Read allows reading the object, and a dry-run of its update. Without it no request is sent,
	// and the preview has no details of the object.
	Read bool
	// Create allows a dry-run of the object's creation if it does not exist. Without it, the action
	// Create is reported without a dry-run.
	Create bool
}

// Permit returns the allowed access to each of the objects. It is called once, before the first
// read. A nil Permit allows all access.
type Permit func(ctx context.Context, subjects []Subject) ([]Grant, error)

// Options of a previewer. All fields but Parallel are required.
type Options struct {
	Reader rollout.Reader
	Trier  rollout.Trier
	// Names are the label, annotation and field managers that mark the chain's objects.
	Names observe.Names
	// Parallel is the number of concurrent requests of one preview; the default is 8.
	Parallel int
}

// Previewer makes previews. Several goroutines may use it.
type Previewer struct{ options Options }

// New returns a previewer.
func New(options Options) *Previewer {
	if options.Parallel <= 0 {
		options.Parallel = 8
	}
	return &Previewer{options}
}

// Preview returns the effect of a rollout of all layers now, including stages that are not reached.
// It sends one read and at most one dry-run per object, and repeats them for an object that changes
// meanwhile. It uses the owner, layers, inventory and bodies of the work, and the revisions whose
// objects are released.
//
// Refused objects are in the result. It fails if the Permit fails, an object cannot be read, the
// server does not answer, or ctx ends. The error wraps the server's answer.
func (p *Previewer) Preview(ctx context.Context, work rollout.Work, permit Permit) (Preview, error) {
	items, err := p.items(ctx, work, permit)
	if err != nil {
		return Preview{}, fmt.Errorf("previewing %s: %w", work.Owner, err)
	}
	return Preview{Items: items}, nil
}

func (p *Previewer) items(ctx context.Context, work rollout.Work, permit Permit) ([]Item, error) {
	// 1. List every object once.
	objects := collect(work)
	// 2. Keep the objects that may be read.
	objects, err := narrow(ctx, objects, permit)
	if err != nil {
		return nil, err
	}
	// 3. Find the action for each object.
	items, err := p.judge(ctx, work, objects)
	if err != nil {
		return nil, err
	}
	// 4. Withdraw refusals that a changed definition explains.
	tolerate(items)
	return items, nil
}

// object is an object to examine, with its grant.
type object struct {
	Subject
	Grant
	// step of an object that is in a layer.
	step stage.Step
}

// collect lists every object once, with the step of the newest layer.
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

// narrow sets the grants and omits objects that must not be read.
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

// judge examines the objects, several at a time.
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

// tolerate changes a refusal to Deferred if the same rollout changes the definition of the object's
// kind: the server used the present definition.
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

// unread reports whether the server failed to read an object, for example because a conversion
// webhook is unavailable. It returns false if the error proves that the object cannot exist.
func unread(err error) bool {
	var scope *targetclient.ScopeError
	return !errors.As(err, &scope) && !meta.IsNoMatchError(err)
}

// silent reports whether an error says nothing about the object: the server was not reached, is
// busy, or did not authenticate the client.
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
