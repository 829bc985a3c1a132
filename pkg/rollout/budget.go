package rollout

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/rollout/budget"
)

// Budget bounds the loss of objects that no user asked for: a revision may omit many objects by
// mistake.
type Budget struct {
	// Explicit holds the numbers of revisions that a user is deleting. Deletions of their objects
	// do not count.
	Explicit map[int64]bool
	// Acknowledged holds the users' answers to Report.Acknowledge.
	Acknowledged map[string]bool
	// Listed returns the objects of a revision that is not a layer, and whether they are known.
	// With a nil Listed, no object counts as replaced.
	Listed func(revision int64) ([]manifest.ID, bool)
	// Undone reports whether only a failed upgrade had added an object: the revision of its content
	// never succeeded, an earlier revision did, and no revision with the object did. Its deletion
	// does not count, unless it contains other objects or data. If Undone is nil, no object is
	// undone.
	Undone func(id manifest.ID, revision int64) bool
	// Reviewed reports whether a user named the deletion of an object before resuming a later
	// revision. If Reviewed is nil, no deletion is reviewed.
	Reviewed func(id manifest.ID, revision int64) bool
}

// Deletion is one charge of the budget.
type Deletion struct {
	At time.Time
	// Objects is the number of lost objects: deleted objects that no new object of the same kind
	// replaces.
	Objects int
}

// chargeBudget returns the objects whose deletion is allowed. It charges the budget before
// the first deletion, so that a crash cannot lose the charge. Objects whose deletion needs
// an acknowledgement stay, and status asks for it.
func (p *pass) chargeBudget(ctx context.Context, objects []*object) ([]*object, leaving, error) {
	if p.Budget == nil {
		return objects, leaving{}, nil
	}
	empty, err := p.emptyDefinitions(ctx, objects)
	if err != nil {
		return nil, leaving{}, err
	}
	charged := slices.DeleteFunc(slices.Clone(objects), func(o *object) bool { return o.isFree(empty) })
	if len(charged) == 0 {
		return objects, leaving{}, nil
	}
	now := p.engine.Clock.Now()
	recent, spent := p.inventory.recent(now)
	judged := p.judge(charged, spent, empty)
	isAsked := func(o *object) bool { return judged.Asks[o.step.ID] != "" }
	asking := slices.DeleteFunc(slices.Clone(charged), func(o *object) bool { return !isAsked(o) })
	token := tokenOf(asking)
	var asked leaving
	switch {
	case len(asking) == 0:
	case p.Budget.Acknowledged[token]:
		p.acknowledge(asking[0], fmt.Sprintf("%d objects", len(asking)), token)
	default:
		asked = ask(asking, judged, spent, token)
		if judged.Asks[asking[0].step.ID] == budget.Many && judged.Loss <= judged.Limit {
			p.again(recent[0].At.Add(budget.Window).Sub(now))
		}
		objects, charged = slices.DeleteFunc(slices.Clone(objects), isAsked), slices.DeleteFunc(charged, isAsked)
	}
	if len(charged) == 0 {
		return objects, asked, nil
	}
	if judged.Charge > 0 {
		recent = append(recent, Deletion{At: now.UTC().Truncate(time.Second), Objects: judged.Charge})
	}
	p.charge(recent)
	p.doom(slices.DeleteFunc(charged, func(o *object) bool {
		return empty[o.step.ID] && !isAsked(o) // it is judged again until it is deleted
	}))
	return objects, asked, p.save(ctx)
}

// acknowledge reports an event: a user acknowledged the deletion of objects.
func (p *pass) acknowledge(first *object, what, token string) {
	event := first.event("Acknowledged", "the deletion of %s was acknowledged as %s", what, token)
	event.Warning = true
	p.events = append(p.events, event)
}

// emptyDefinitions returns the CustomResourceDefinitions among objects whose deletion would need an
// acknowledgement and that have no instances. It caches for a while that instances exist.
func (p *pass) emptyDefinitions(ctx context.Context, objects []*object) (map[manifest.ID]bool, error) {
	empty := map[manifest.ID]bool{}
	now := p.engine.Clock.Now()
	for _, o := range objects {
		id := o.step.ID
		if !id.IsDefinition() || o.isFree(nil) {
			continue
		}
		known := p.memory.inside[id]
		if known.full == "" || !now.Before(known.next) {
			instances, err := o.instances(ctx, nil)
			if ctx.Err() != nil {
				return nil, fmt.Errorf("looking for instances of %s: %w", id.Name, ctx.Err())
			}
			if err == nil && len(instances) == 0 {
				delete(p.memory.inside, id)
				empty[id] = true
				continue
			}
			known = known.again("has instances", now, p.engine.Jitter)
			p.memory.inside[id] = known
		}
		p.due(known.next)
	}
	return empty, nil
}

// isFree reports whether the deletion of an object does not count: it was charged before, a user
// deletes the revision, the object is released instead, or its existence is unknown.
func (o *object) isFree(empty map[manifest.ID]bool) bool {
	id := o.step.ID
	return o.memo.Doomed || o.memo.Intent() || o.Budget.Explicit[o.revision] || o.Orphan[o.revision] || o.leaves() ||
		id.IsDefinition() && o.AllowCRDDeletion[id.Name] ||
		o.Budget.Undone != nil && (!budget.Keeps(id) || empty[id]) && o.Budget.Undone(id, o.revision) ||
		o.Budget.Reviewed != nil && o.Budget.Reviewed(id, o.revision)
}

// judge applies the budget's rule to objects that are to be deleted.
func (p *pass) judge(charged []*object, spent int, empty map[manifest.ID]bool) budget.Decision {
	g := budget.Pending{Objects: make(map[manifest.ID]int64, len(charged)), Emptied: true, Listed: p.Budget.Listed, Spent: spent, Empty: empty}
	for _, o := range charged {
		g.Objects[o.step.ID] = o.revision
	}
	kept := map[manifest.ID]bool{}
	for _, stg := range p.stages() {
		for _, step := range stg.Steps {
			g.Emptied = false
			if p.exists(step.ID) && !kept[step.ID] {
				kept[step.ID], g.Kept = true, append(g.Kept, step.ID)
			}
		}
	}
	return g.Judge()
}

// ask reports the objects whose deletion a user must acknowledge.
func ask(asking []*object, judged budget.Decision, spent int, token string) leaving {
	asked := leaving{acknowledge: token}
	for _, o := range asking {
		var why string
		switch judged.Asks[o.step.ID] {
		case budget.Emptied:
			why = fmt.Sprintf("is one of %d objects that would be deleted although nobody deletes their revision, and nothing would be left of the extension", len(asking))
		case budget.Many:
			why = fmt.Sprintf("is one of %d objects that would be deleted although nobody deletes their revision; %d would be lost, at most %d may be lost within %s, and %d were lost already",
				len(asking), judged.Loss, judged.Limit, budget.Window, spent)
		case budget.LastWorkload:
			why = "would be deleted although nobody deletes its revision, and no workload would be left of the extension"
		default:
			why = fmt.Sprintf("would be deleted although nobody deletes its revision, and the contents of a %s are deleted with it", o.step.Kind)
		}
		asked.failures = append(asked.failures, o.question(ReasonBudget, why, token))
	}
	return asked
}

// question returns the failure of an object whose deletion waits for the acknowledgement of a
// token.
func (o *object) question(reason, why, token string) Failure {
	failure := o.leave(reason, true, fmt.Sprintf("%s: acknowledge it as %s", why, token))
	failure.Acknowledge = token
	return failure
}

// tokenOf returns a token for a set of objects, from their uids and revisions. If a later revision
// lists an object again and then drops it, its deletion needs a new acknowledgement.
func tokenOf(objects []*object) string {
	ids, marks := make([]manifest.ID, len(objects)), make(map[manifest.ID]string, len(objects))
	for i, o := range objects {
		ids[i], marks[o.step.ID] = o.step.ID, fmt.Sprintf("%s %d", o.memo.UID, o.revision)
	}
	return budget.Token(ids, func(id manifest.ID) string { return marks[id] })
}

// recent returns the deletions that still count, oldest first, and the sum of their objects.
func (i Inventory) recent(now time.Time) ([]Deletion, int) {
	var recent []Deletion
	spent := 0
	for _, d := range i.Deletions {
		if now.Sub(d.At) < budget.Window {
			recent, spent = append(recent, d), spent+d.Objects
		}
	}
	return recent, spent
}
