package rollout

import (
	"time"

	"github.com/penstock-project/penstock/pkg/manifest"
)

// patience returns how long to leave an object alone that changes all the time.
func (m *memory) patience(id manifest.ID, now time.Time) time.Duration {
	r := m.repairs[id]
	if r.count < fightAllowance || now.Sub(r.last) > fightWindow {
		return 0
	}
	return max(0, r.last.Add(backoff(r.count-fightAllowance+2)).Sub(now))
}

// looked counts a look at (and perhaps a repair of) an object that had changed.
func (m *memory) looked(id manifest.ID, now time.Time) {
	r := m.repairs[id]
	if now.Sub(r.last) > fightWindow {
		r = repairs{}
	}
	r.count, r.last = r.count+1, now
	m.repairs[id] = r
}

// lost notes what had been changed in an object.
func (m *memory) lost(id manifest.ID, what string) {
	r := m.repairs[id]
	r.lost = what
	m.repairs[id] = r
}

// backoff doubles from firstRetry to lastRetry.
func backoff(count int) time.Duration {
	wait := firstRetry
	for range count {
		if wait *= 2; wait >= lastRetry {
			return lastRetry
		}
	}
	return wait
}
