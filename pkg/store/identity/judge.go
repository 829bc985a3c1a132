package identity

import "fmt"

// State is the state of the store, compared with its witness.
type State string

const (
	// FirstStart means that neither store nor witness exists. The server creates both.
	FirstStart State = "FirstStart"
	// Healthy means that the store matches its witness and is not behind it.
	Healthy State = "Healthy"
	// Empty means that the store is empty, although the host has a witness.
	Empty State = "Empty"
	// Foreign means that the store has another identity than the witness, or records without an
	// identity.
	Foreign State = "Foreign"
	// Older means the right store at an earlier time, such as a backup.
	Older State = "Older"
	// Restored means the right store at an earlier time, from penstock restore: etcd's revision is
	// higher than the witness, but the content is older.
	Restored State = "Restored"
	// NewerFormat means that a newer Penstock wrote the store.
	NewerFormat State = "NewerFormat"
)

// Observed holds the facts about a store that Judge needs.
type Observed struct {
	// Found is true if the store has an identity.
	Found bool
	// ID is the id of the store. It is empty if this Format cannot read it.
	ID string
	// Format is the layout of the store.
	Format int
	// Revision is etcd's current revision. It never decreases within one history of an etcd.
	Revision int64
	// Epoch is the number of restores of the store.
	Epoch int
	// HighWater is the revision of the newest record of the store, or 0.
	HighWater int64
}

// Verdict is the decision whether a store may be served.
type Verdict struct {
	State State
	// Reason explains the state to users, in one sentence.
	Reason string
}

// Serve reports whether the store may be served. All other states wait for a user to decide.
func (v Verdict) Serve() bool {
	return v.State == FirstStart || v.State == Healthy
}

// rule is one line of Judge's table.
type rule struct {
	state   State
	applies func(Observed, *Mark) bool
	reason  func(Observed, *Mark) string
}

// Judge compares a store with its witness; mark is nil if the host has no witness. It checks
// formats first, because records in an unknown format cannot be compared.
//
// Older depends on etcd's revision. It does not depend on the revision of the newest record, which
// decreases when that record is deleted.
func Judge(o Observed, mark *Mark) Verdict {
	for _, r := range rules() {
		if r.applies(o, mark) {
			return Verdict{State: r.state, Reason: r.reason(o, mark)}
		}
	}
	return Verdict{State: Healthy, Reason: fmt.Sprintf("the store is %s, as witnessed", o.ID)}
}

// rules returns the rules in order: the first that applies decides.
func rules() []rule {
	return []rule{
		{NewerFormat,
			func(o Observed, _ *Mark) bool { return o.Found && o.Format > Format },
			func(o Observed, _ *Mark) string {
				return fmt.Sprintf("the store has format %d, written by a newer Penstock; this one knows formats up to %d: run the newer one", o.Format, Format)
			}},
		{NewerFormat,
			func(_ Observed, m *Mark) bool { return m != nil && m.Format > Format },
			func(_ Observed, m *Mark) string {
				return fmt.Sprintf("the witness says that the store %s has format %d, written by a newer Penstock; this one knows formats up to %d: run the newer one", m.StoreID, m.Format, Format)
			}},
		{FirstStart,
			func(o Observed, m *Mark) bool { return !o.Found && o.HighWater == 0 && m == nil },
			func(Observed, *Mark) string {
				return "there is no store and no witness of one: this is the first start"
			}},
		{Foreign,
			func(o Observed, _ *Mark) bool { return !o.Found && o.HighWater > 0 },
			func(o Observed, _ *Mark) string {
				return fmt.Sprintf("the store has records (the newest at etcd revision %d) but no identity: it is not known which cluster they belong to", o.HighWater)
			}},
		{Empty,
			func(o Observed, _ *Mark) bool { return !o.Found },
			func(_ Observed, m *Mark) string {
				return fmt.Sprintf("the store is empty, and the host cluster has seen store %s at etcd revision %d: its data is lost, or this is not its data directory", m.StoreID, m.HighWater)
			}},
		{Restored,
			func(o Observed, m *Mark) bool { return m == nil && o.Epoch > 0 },
			func(o Observed, _ *Mark) string {
				return fmt.Sprintf("the store %s was restored from a snapshot, and the host cluster has no witness of it: it is not known what has changed in the cluster since", o.ID)
			}},
		{Healthy,
			func(_ Observed, m *Mark) bool { return m == nil },
			func(o Observed, _ *Mark) string {
				return fmt.Sprintf("the store is %s; the host cluster has no witness of it yet", o.ID)
			}},
		{Foreign,
			func(o Observed, m *Mark) bool { return o.ID != m.StoreID },
			func(o Observed, m *Mark) string {
				return fmt.Sprintf("the store is %s, and the host cluster has seen store %s: it belongs to another cluster, or was created again", o.ID, m.StoreID)
			}},
		{Restored,
			func(o Observed, m *Mark) bool { return o.Epoch > m.Epoch },
			func(o Observed, m *Mark) string {
				return fmt.Sprintf("the store %s was restored from a snapshot, and the host cluster has seen it at etcd revision %d before: what happened after the snapshot is not in it", o.ID, m.HighWater)
			}},
		{Older,
			func(o Observed, m *Mark) bool { return o.Epoch < m.Epoch },
			func(o Observed, _ *Mark) string {
				return fmt.Sprintf("the store %s is a copy from before it was restored from a snapshot", o.ID)
			}},
		{Older,
			func(o Observed, m *Mark) bool { return o.Revision < m.HighWater },
			func(o Observed, m *Mark) string {
				return fmt.Sprintf("the store %s is at etcd revision %d, and the host cluster has seen it at %d: it is an older copy, such as a backup", o.ID, o.Revision, m.HighWater)
			}},
		{Older,
			func(o Observed, m *Mark) bool { return o.Format < m.Format },
			func(o Observed, m *Mark) string {
				return fmt.Sprintf("the store %s has format %d, and the host cluster has seen it with format %d: it is an older copy, such as a backup", o.ID, o.Format, m.Format)
			}},
	}
}
