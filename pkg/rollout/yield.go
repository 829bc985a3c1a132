package rollout

import (
	"context"
	"encoding/json"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/rollout/managedfields"
	"github.com/penstock-project/penstock/pkg/rollout/stage"
)

// bodyWithout is the manifest with our marks and without fields that are left to
// others. Create-only objects bear no marks: they are not ours.
func (p *pass) bodyWithout(ctx context.Context, step stage.Step, yielded []string) ([]byte, error) {
	ref := step.Ref
	if step.Policy.CreateOnly {
		body, err := p.Bodies.Body(ctx, ref)
		if err != nil {
			return nil, &bodyError{ref, err}
		}
		return body, nil
	}
	if len(yielded) == 0 {
		return p.body(ctx, ref)
	}
	_, wanted, err := p.decoded(ctx, ref)
	if err != nil {
		return nil, err
	}
	managedfields.Cut(wanted, yielded)
	body, err := json.Marshal(wanted)
	if err != nil {
		return nil, &bodyError{ref, err}
	}
	return body, nil
}

// yielded are the fields of an object that are left to others so far.
func (p *pass) yielded(id manifest.ID) []string { return p.inventory.Entries[id].Yielded }

// yieldedNow tells who was left which fields that had been ours before.
func (p *pass) yieldedNow(t task, left managedfields.Yields) []Event {
	for _, known := range p.yielded(t.step.ID) {
		delete(left, known)
	}
	if len(left) == 0 {
		return nil
	}
	return []Event{p.event(t, "Yielded", "left fields of %s: %s", t.step.ID, left)}
}
