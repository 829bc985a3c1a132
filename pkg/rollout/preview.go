package rollout

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/rollout/managedfields"
	"github.com/penstock-project/penstock/pkg/rollout/stage"
	"github.com/penstock-project/penstock/pkg/rollout/targetclient"
)

// Actions that only a preview names: what becomes of an object that is in no
// layer.
const (
	// Delete the object.
	Delete Action = "Delete"
	// Release the object from the chain and leave it.
	Release Action = "Release"
	// Leave the object alone: it is somebody else's by now.
	Leave Action = "Leave"
)

// Trier asks what an apply would make of an object, and stores nothing (see
// package targetclient).
type Trier interface {
	Try(ctx context.Context, ref manifest.Ref, body []byte, options targetclient.TryOptions) (*unstructured.Unstructured, error)
}

// Preview is what a rollout would do to the cluster as it is now.
type Preview struct {
	// Items are the objects that were looked at: those of the layers in their
	// order, each once, then those that are in no layer, in the order in which
	// they would go.
	Items []PreviewItem
}

// PreviewItem is what a rollout would do to one object.
type PreviewItem struct {
	manifest.Ref
	// Action is that of Decide for the object as it is, or Delete, Release or
	// Leave; Idle also where the server found that nothing would change.
	Action Action
	// Message says why, for Adopt, Collision, Deferred and Leave.
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
	// Tried is true when the server was asked what it would make of the object.
	Tried bool
	// Drifted is true when the object was given the content of the layer and
	// somebody has changed or deleted it since.
	Drifted bool
	// Fingerprint of a shared object as it was found (see Fingerprint).
	Fingerprint string
	// Taken are fields that other managers have and the rollout would take.
	Taken []managedfields.Taken
	// Failure is why the object could not be written, or read; Err is what it was
	// made from, and may quote the object.
	Failure *Failure
	Err     error
}

// PreviewSubject is an object that a preview may look at.
type PreviewSubject struct {
	manifest.Ref
	// Leaving objects are in no layer: the inventory has them. They are read,
	// never tried.
	Leaving bool
}

// Grant is how far a preview may go with one object.
type Grant struct {
	// Look allows to read it, and to try to write it if it exists. Without it
	// there is no request for the object, and nothing of it in the preview.
	Look bool
	// Create allows to try to create it if it does not exist. Without it the
	// object is a Create that was not tried.
	Create bool
}

// Permit says how far a preview may go with each of the objects; it is asked once,
// before anything is read. A nil Permit allows everything.
type Permit func(ctx context.Context, subjects []PreviewSubject) ([]Grant, error)

// Preview says what a rollout of all layers of some work would do now, whatever
// stage they have reached, if nothing else happened meanwhile. It changes nothing:
// it costs one read and at most one dry-run for each object (one more of each for
// an object that changes in between). It needs the Reader and the Trier of the
// engine, and none of the work's functions but Bodies.
//
// Objects that would be refused are in the result. An error means that there is
// none: a Permit that could not tell, an object that could not be read, a server
// that does not answer, the end of the context. It wraps what the server said.
func (e *Engine) Preview(ctx context.Context, work Work, permit Permit) (Preview, error) {
	if e.Trier == nil {
		return Preview{}, errors.New("previewing: the engine has no Trier")
	}
	p := &previewer{pass: pass{engine: e, Work: work, who: e.Identity(work.Owner), inventory: work.Inventory}}
	p.collect()
	if err := p.narrow(ctx, permit); err != nil {
		return Preview{}, fmt.Errorf("previewing %s: %w", work.Owner, err)
	}
	items := make([]PreviewItem, len(p.subjects))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(e.Parallel)
	for i := range p.subjects {
		group.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			var err error
			items[i], err = p.item(ctx, i)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return Preview{}, fmt.Errorf("previewing %s: %w", work.Owner, err)
	}
	p.excuse(items)
	return Preview{Items: items}, nil
}

// previewer is the state of one Preview. Of pass it uses what is a function of
// the work alone.
type previewer struct {
	pass
	subjects []PreviewSubject
	// steps of the subjects that are in a layer, and grants, by index.
	steps  []stage.Step
	grants []Grant
}

// collect lists every object once: the newest layer's step counts.
func (p *previewer) collect() {
	listed := map[manifest.ID]bool{}
	for _, layer := range p.Layers {
		for _, stg := range layer.Stages {
			for _, step := range stg.Steps {
				if listed[step.ID] {
					continue
				}
				listed[step.ID] = true
				p.subjects = append(p.subjects, PreviewSubject{Ref: step.Ref})
				p.steps = append(p.steps, step)
			}
		}
	}
	for _, id := range p.unclaimed() {
		p.subjects = append(p.subjects, PreviewSubject{Ref: p.ref(id), Leaving: true})
		p.steps = append(p.steps, stage.Step{Ref: p.ref(id)})
	}
}

// narrow leaves out what must not be looked at.
func (p *previewer) narrow(ctx context.Context, permit Permit) error {
	if permit == nil {
		for range p.subjects {
			p.grants = append(p.grants, Grant{Look: true, Create: true})
		}
		return nil
	}
	grants, err := permit(ctx, p.subjects)
	if err != nil {
		return err
	}
	if len(grants) != len(p.subjects) {
		return fmt.Errorf("%d grants for %d objects", len(grants), len(p.subjects))
	}
	subjects, steps := p.subjects, p.steps
	p.subjects, p.steps = nil, nil
	for i, grant := range grants {
		if grant.Look {
			p.subjects, p.steps, p.grants = append(p.subjects, subjects[i]), append(p.steps, steps[i]), append(p.grants, grant)
		}
	}
	return nil
}

// excuse turns refusals into waiting where the definition of a kind changes in the
// same rollout: the server judged by the one that is there now.
func (p *previewer) excuse(items []PreviewItem) {
	for i := range items {
		item := &items[i]
		if item.Failure == nil || !item.Tried {
			continue
		}
		isDefinition := isCRDOf(item.Group)
		for j := range items {
			if other := &items[j]; isDefinition(other.ID) && (other.Action == Create || other.After != nil) {
				item.Action, item.Failure, item.Err = Deferred, nil, nil
				item.Message = "its kind is defined anew by the same rollout; what the server will say then cannot be told"
				break
			}
		}
	}
}

// provides tells whether a layer has an object that matches. Those that must not be
// looked at do not count: the answer would tell of them.
func (p *previewer) provides(match func(manifest.ID) bool) bool {
	for _, subject := range p.subjects {
		if !subject.Leaving && match(subject.ID) {
			return true
		}
	}
	return false
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
