package rollout

import (
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/rollout/observe"
)

// scratch is memory for what a step of a pass finds out and forgets again. Passes
// come one after the other and mostly find nothing to do: what each of them would
// throw away is used again instead.
type scratch struct {
	wanted    map[manifest.ID]observe.Interest
	interests []observe.Interest
}

// borrow returns an empty scratch, which nobody else uses until giveBack.
func (e *Engine) borrow() *scratch {
	if used, ok := e.scratches.Get().(*scratch); ok {
		return used
	}
	return &scratch{wanted: map[manifest.ID]observe.Interest{}}
}

// giveBack takes a scratch of which nothing is referred to any more.
func (e *Engine) giveBack(used *scratch) {
	clear(used.wanted)
	clear(used.interests)
	used.interests = used.interests[:0]
	e.scratches.Put(used)
}
