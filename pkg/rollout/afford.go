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

// afford returns those of the leaving objects that may go, and charges the budget
// with them before any of them goes: a crash must not make us forget it. What somebody
// has to answer for stays, and is asked for.
func (r *removal) afford(ctx context.Context, leaving []manifest.ID) ([]manifest.ID, error) {
	if r.Budget == nil {
		return leaving, nil
	}
	empty, err := r.emptyDefinitions(ctx, leaving)
	if err != nil {
		return nil, err
	}
	charged := slices.DeleteFunc(slices.Clone(leaving), func(id manifest.ID) bool { return r.isFree(id, empty) })
	if len(charged) == 0 {
		return leaving, nil
	}
	now := r.engine.Clock.Now()
	recent, spent := r.inventory.recent(now)
	judged := r.judge(charged, spent, empty)
	asking := slices.DeleteFunc(slices.Clone(charged), func(id manifest.ID) bool { return judged.asks[id] == "" })
	token := DeletionToken(asking, r.mark)
	switch {
	case len(asking) == 0:
	case r.Budget.Acknowledged[token]:
		r.events = append(r.events, Event{
			Revision: r.inventory.Entries[asking[0]].Revision, Warning: true, Reason: "Acknowledged",
			Message: fmt.Sprintf("the deletion of %d objects was acknowledged as %s", len(asking), token),
		})
	default:
		r.ask(asking, judged, spent, token)
		if judged.asks[asking[0]] == becauseMany && judged.loss <= judged.limit {
			r.again(recent[0].At.Add(budgetWindow).Sub(now))
		}
		isAsked := func(id manifest.ID) bool { return judged.asks[id] != "" }
		leaving, charged = slices.DeleteFunc(slices.Clone(leaving), isAsked), slices.DeleteFunc(charged, isAsked)
	}
	if len(charged) == 0 {
		return leaving, nil
	}
	if judged.charge > 0 {
		recent = append(recent, Deletion{At: now.UTC().Truncate(time.Second), Objects: judged.charge})
	}
	r.inventory.Deletions = recent
	for _, id := range charged {
		if empty[id] && judged.asks[id] == "" {
			continue // it is judged again until it is gone
		}
		entry := r.inventory.Entries[id]
		entry.Doomed = true
		r.inventory.Entries[id] = entry
	}
	return leaving, r.save(ctx)
}

// emptyDefinitions are the definitions among objects that would be asked for, and that have no instance at
// all. Each is looked at before it is deleted; that one has instances is believed for a while.
func (r *removal) emptyDefinitions(ctx context.Context, leaving []manifest.ID) (map[manifest.ID]bool, error) {
	empty := map[manifest.ID]bool{}
	now := r.engine.Clock.Now()
	for _, id := range leaving {
		if !id.IsDefinition() || r.isFree(id, nil) {
			continue
		}
		known := r.memory.inside[id]
		if known.full == "" || !now.Before(known.next) {
			instances, err := r.instances(ctx, id, nil)
			if ctx.Err() != nil {
				return nil, fmt.Errorf("looking for instances of %s: %w", id.Name, ctx.Err())
			}
			if err == nil && len(instances) == 0 {
				delete(r.memory.inside, id)
				empty[id] = true
				continue
			}
			known.wait = min(longestInside, max(settleFallback, 2*known.wait))
			known.full, known.next = "has instances", now.Add(r.engine.Jitter(known.wait))
			r.memory.inside[id] = known
		}
		r.due(known.next)
	}
	return empty, nil
}

// mark tells an object from another one of its name, and from itself at another time: what
// a later revision wanted again is asked for anew.
func (r *removal) mark(id manifest.ID) string {
	entry := r.inventory.Entries[id]
	return fmt.Sprintf("%s %d", entry.UID, entry.Revision)
}

// isFree is true for an object whose deletion does not count: it may go already, nobody
// knows whether it exists, somebody asked for its deletion, or it is left.
func (r *removal) isFree(id manifest.ID, empty map[manifest.ID]bool) bool {
	entry := r.inventory.Entries[id]
	return entry.Doomed || entry.Intent() || r.Budget.Explicit[entry.Revision] || r.Orphan[entry.Revision] || r.leaves(entry) ||
		id.IsDefinition() && r.AllowCRDDeletion[id.Name] ||
		r.Budget.Undone != nil && (!keeps(id) || empty[id]) && r.Budget.Undone(id, entry.Revision) ||
		r.Budget.Reviewed != nil && r.Budget.Reviewed(id, entry.Revision)
}

// judge puts the rule to objects that are to go.
func (r *removal) judge(charged []manifest.ID, spent int, empty map[manifest.ID]bool) ruling {
	g := going{objects: make(map[manifest.ID]int64, len(charged)), emptied: true, listed: r.Budget.Listed, spent: spent, empty: empty}
	for _, id := range charged {
		g.objects[id] = r.inventory.Entries[id].Revision
	}
	kept := map[manifest.ID]bool{}
	for _, stg := range r.stages() {
		for _, step := range stg.Steps {
			g.emptied = false
			if entry := r.inventory.Entry(step.ID); entry != nil && !entry.Intent() && !kept[step.ID] {
				kept[step.ID], g.kept = true, append(g.kept, step.ID)
			}
		}
	}
	return g.judge()
}

// ask reports objects that somebody has to answer for.
func (r *removal) ask(asking []manifest.ID, judged ruling, spent int, token string) {
	r.found.acknowledge = token
	for _, id := range asking {
		var why string
		switch judged.asks[id] {
		case becauseEmptied:
			why = fmt.Sprintf("is one of %d objects that would be deleted although nobody deletes their revision, and nothing would be left of the extension", len(asking))
		case becauseMany:
			why = fmt.Sprintf("is one of %d objects that would be deleted although nobody deletes their revision; %d would be lost, at most %d may be lost within %s, and %d were lost already",
				len(asking), judged.loss, judged.limit, budgetWindow, spent)
		case becauseLastWorkload:
			why = "would be deleted although nobody deletes its revision, and no workload would be left of the extension"
		default:
			why = fmt.Sprintf("would be deleted although nobody deletes its revision, and what is in a %s goes with it", id.Kind)
		}
		r.leave(id, ReasonBudget, true, fmt.Sprintf("%s: acknowledge it as %s", why, token))
		r.found.failures[len(r.found.failures)-1].Acknowledge = token
	}
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

// DeletionToken names a set of objects that are to go: an answer counts for these and no
// others. The mark of each counts too, such as its uid.
func DeletionToken(ids []manifest.ID, mark func(manifest.ID) string) string {
	sorted := slices.SortedFunc(slices.Values(ids), compareIDs)
	hash := sha256.New()
	for _, id := range sorted {
		fmt.Fprintf(hash, "%s %s\n", id, mark(id))
	}
	return fmt.Sprintf("%d-%s", len(ids), hex.EncodeToString(hash.Sum(nil)[:5]))
}
