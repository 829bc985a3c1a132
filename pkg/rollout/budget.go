package rollout

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	"github.com/penstock-project/penstock/pkg/manifest"
)

// The deletion budget of a chain: this many objects, or this share of its inventory if
// that is more, within a window of time.
const (
	budgetObjects = 20
	budgetPercent = 10
	budgetWindow  = 10 * time.Minute
)

// Freeze is why nothing is to be written to the cluster, whoever asks.
type Freeze struct {
	// Author and Reason in words for people.
	Author, Reason string
}

// String is "frozen by alice: the year ends".
func (f Freeze) String() string { return fmt.Sprintf("frozen by %s: %s", f.Author, f.Reason) }

// Budget bounds what is deleted without a person having asked for that: what a
// revision does not list any more may be much by mistake.
type Budget struct {
	// Explicit holds the numbers of revisions that are being deleted. Whoever does
	// that wants their objects gone, and these do not count.
	Explicit map[int64]bool
	// Acknowledged holds what people answered to Report.Acknowledge.
	Acknowledged map[string]bool
}

// Deletion counts objects that the budget was charged with.
type Deletion struct {
	At      time.Time
	Objects int
}

// afford returns those of the leaving objects that may go, and charges the budget
// with them before any of them goes: a crash must not make us forget it. What is
// beyond the budget stays as a whole, and is asked for.
func (r *removal) afford(ctx context.Context, leaving []manifest.ID) ([]manifest.ID, error) {
	if r.Budget == nil {
		return leaving, nil
	}
	charged := slices.DeleteFunc(slices.Clone(leaving), func(id manifest.ID) bool {
		entry := r.inventory.Entries[id]
		return entry.Doomed || entry.Intent() || r.Budget.Explicit[entry.Revision] || r.Orphan[entry.Revision]
	})
	if len(charged) == 0 {
		return leaving, nil
	}
	now := r.engine.Clock.Now()
	recent, spent := r.inventory.recent(now)
	limit := max(budgetObjects, len(r.inventory.Entries)*budgetPercent/100)
	token := r.token(charged)
	switch {
	case r.Budget.Acknowledged[token]:
		r.events = append(r.events, Event{
			Revision: r.inventory.Entries[charged[0]].Revision, Warning: true, Reason: "Acknowledged",
			Message: fmt.Sprintf("the deletion of %d objects was acknowledged as %s", len(charged), token),
		})
	case spent+len(charged) > limit:
		r.found.acknowledge = token
		for _, id := range charged {
			r.leave(id, ReasonBudget, true, fmt.Sprintf(
				"is one of %d objects that would be deleted although nobody deletes their revision; %d may go within %s, and %d did: acknowledge it as %s",
				len(charged), limit, budgetWindow, spent, token))
		}
		if len(charged) <= limit {
			r.again(recent[0].At.Add(budgetWindow).Sub(now))
		}
		return slices.DeleteFunc(leaving, func(id manifest.ID) bool { return slices.Contains(charged, id) }), nil
	default:
		recent = append(recent, Deletion{At: now.UTC().Truncate(time.Second), Objects: len(charged)})
	}
	r.inventory.Deletions = recent
	for _, id := range charged {
		entry := r.inventory.Entries[id]
		entry.Doomed = true
		r.inventory.Entries[id] = entry
	}
	return leaving, r.save(ctx)
}

// recent are the deletions that still count, oldest first, and their sum.
func (i Inventory) recent(now time.Time) ([]Deletion, int) {
	var recent []Deletion
	spent := 0
	for _, d := range i.Deletions {
		if now.Sub(d.At) < budgetWindow {
			recent, spent = append(recent, d), spent+d.Objects
		}
	}
	return recent, spent
}

// token names a set of objects: an answer counts for these and no others.
func (r *removal) token(ids []manifest.ID) string {
	sorted := slices.SortedFunc(slices.Values(ids), compareIDs)
	hash := sha256.New()
	for _, id := range sorted {
		fmt.Fprintf(hash, "%s %s\n", id, r.inventory.Entries[id].UID)
	}
	return fmt.Sprintf("%d-%s", len(ids), hex.EncodeToString(hash.Sum(nil)[:5]))
}
