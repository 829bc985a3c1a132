package rollout

import (
	"time"

	"github.com/penstock-project/penstock/pkg/manifest"
)

const (
	// contestAllowance is the number of immediate repairs of an object within contestWindow. After
	// that, each repair waits twice as long as the previous one.
	contestAllowance = 5
	contestWindow    = 10 * time.Minute
)

// patience returns how long the repair of a contested object waits. An object is contested if
// another writer changes it after each repair.
func (r repairs) patience(now time.Time) time.Duration {
	if r.count < contestAllowance || now.Sub(r.last) > contestWindow {
		return 0
	}
	return max(0, r.last.Add(backoff(r.count-contestAllowance+2)).Sub(now))
}

// looked counts a read (and perhaps a repair) of a changed object.
func (m *memory) looked(id manifest.ID, now time.Time) {
	r := m.repairs[id]
	if now.Sub(r.last) > contestWindow {
		r = repairs{}
	}
	r.count, r.last = r.count+1, now
	m.repairs[id] = r
}

// lost records the values that another writer had changed in an object.
func (m *memory) lost(id manifest.ID, what string) {
	r := m.repairs[id]
	r.lost = what
	m.repairs[id] = r
}
