package rollout

import (
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/rollout/observe"
)

// scratch is temporary memory of a pass. It is reused, because most passes find nothing to do and
// should not allocate.
type scratch struct {
	wanted    map[manifest.ID]observe.Interest
	interests []observe.Interest
}

// borrow returns an empty scratch, for exclusive use until recycle.
func (e *Engine) borrow() *scratch {
	if used, ok := e.scratches.Get().(*scratch); ok {
		return used
	}
	return &scratch{wanted: map[manifest.ID]observe.Interest{}}
}

// recycle returns a scratch to the pool. The caller must not use it, or memory of it, any more.
func (e *Engine) recycle(used *scratch) {
	clear(used.wanted)
	clear(used.interests)
	used.interests = used.interests[:0]
	e.scratches.Put(used)
}
