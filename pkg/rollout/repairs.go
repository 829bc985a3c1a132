package rollout

import (
	"slices"
	"time"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/text"
)

const (
	// maxRepairs limits the repairs in an inventory. The oldest repair is dropped first.
	maxRepairs   = 50
	maxLostBytes = 512
	// lostObject is RepairRecord.Lost of an object that was created again.
	lostObject = "someone had deleted it"
)

// RepairRecord is a repaired change by another writer, with the number of its repetitions.
type RepairRecord struct {
	ID manifest.ID
	// Revision is the revision whose content the repair restored.
	Revision int64
	// Manager is the field manager of the change; empty when unknown.
	Manager string
	// Lost names the changed fields and their manager, without values of Secrets.
	Lost string
	// Count is the number of repairs. First and Last are the times of the first and the last
	// repair, in UTC, rounded to seconds.
	Count       int
	First, Last time.Time
}

// repaired adds a repair. A repeated repair of the same change increases the count of its record.
func (l *ledger) repaired(repair RepairRecord, now time.Time) {
	repair.Lost = text.Clip(repair.Lost, maxLostBytes)
	repair.Last = now.UTC().Truncate(time.Second)
	repair.Count, repair.First = 1, repair.Last
	all := l.inventory.Repairs
	if n := slices.IndexFunc(all, repair.isSameChange); n >= 0 {
		repair.Count, repair.First = all[n].Count+1, all[n].First
		all = slices.Delete(all, n, n+1)
	}
	all = append(all, repair)
	l.inventory.Repairs = all[max(0, len(all)-maxRepairs):]
}

// isSameChange reports whether earlier is a repair of the same change.
func (r RepairRecord) isSameChange(earlier RepairRecord) bool {
	return r.ID == earlier.ID && r.Manager == earlier.Manager && r.Lost == earlier.Lost
}
