// Package outbox keeps notifications until each receiver has taken them. It has a log of bounded
// length, a cursor for each receiver, and the marks of recorded facts.
//
// outbox.go has the functions for callers, records.go the stored form. Only one process writes at a
// time, the leader. Begin fences off earlier leaders: their writes fail with ErrOvertaken.
package outbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/penstock-project/penstock/pkg/store"
)

// MaxEntries bounds the entries of the log. The oldest are deleted first.
const MaxEntries = 1000

// Mark records that a fact of an object was written to the log.
type Mark struct {
	// Key names the fact within its object, such as Halted/BudgetExceeded.
	Key string `json:"key"`
	// Since is the time at which the fact became true, in Unix seconds. At is the time at which it
	// was recorded.
	Since int64 `json:"since"`
	At    int64 `json:"at"`
}

// Entry is one record of the log.
type Entry struct {
	// Number is the number of the entry in this store. Numbers have no gaps.
	Number int64
	// Body is the content to send, in JSON.
	Body json.RawMessage
}

// Cursor is the position of one receiver.
type Cursor struct {
	// Next is the number of the first entry that the receiver has not taken.
	Next int64 `json:"next"`
	// Until is the end of a summary that the receiver has not taken. So a repeated summary has the
	// same id. It is 0 without such a summary.
	Until int64 `json:"until,omitempty"`
	// Greeted is true after the receiver has answered once.
	Greeted bool `json:"greeted,omitempty"`
}

// ErrOvertaken reports that another process has begun since: this process must load and begin
// again.
var ErrOvertaken = errors.New("another process has begun to record notifications")

// Outbox stores notifications. It is safe for concurrent use.
type Outbox struct {
	kv   clientv3.KV
	keys store.Keys
	// unreadable collects unreadable records; nil collects none.
	unreadable *store.Unreadable

	mu sync.Mutex
	// fence is etcd's revision of the record that Begin wrote.
	fence   int64
	entries []Entry
	// next is the number of the next entry.
	next    int64
	cursors map[string]Cursor
	marks   map[string][]Mark
}

// New returns the outbox below an etcd prefix. The caller must call Begin first.
func New(kv clientv3.KV, prefix string) *Outbox {
	o := &Outbox{kv: kv, keys: store.NewKeys(prefix)}
	o.reset()
	return o
}

// Noting sets the collection of unreadable records. It returns the same outbox.
func (o *Outbox) Noting(unreadable *store.Unreadable) *Outbox {
	o.unreadable = unreadable
	return o
}

// Begin begins recording for this process, and returns the time since which facts are recorded:
//
//  1. It fences off other processes.
//  2. It reads the stored records.
func (o *Outbox) Begin(ctx context.Context, now time.Time) (time.Time, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.reset()
	found, err := store.Get(ctx, o.kv, o.fenced())
	if err != nil {
		return time.Time{}, err
	}
	at := now.Unix()
	if raw, err := format().Unwrap(o.fenced(), found.Bytes); found.Exists() && err == nil {
		_ = json.Unmarshal(raw, &at) // an unreadable record is written again
		at = min(at, now.Unix())     // a clock may have been ahead
	}
	record, err := wrap(at)
	if err != nil {
		return time.Time{}, err
	}
	var done bool
	if o.fence, done, err = store.Swap(ctx, o.kv, o.fenced(), record, found.ModRevision); err != nil {
		return time.Time{}, err
	}
	if !done {
		return time.Time{}, ErrOvertaken
	}
	return time.Unix(at, 0), o.load(ctx)
}

// Clear deletes all stored notifications, if there is no receiver.
func (o *Outbox) Clear(ctx context.Context) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.reset()
	any, err := o.kv.Get(ctx, o.keys.Notifications(), clientv3.WithPrefix(), clientv3.WithLimit(1), clientv3.WithKeysOnly())
	if err == nil && len(any.Kvs) > 0 {
		_, err = o.kv.Delete(ctx, o.keys.Notifications(), clientv3.WithPrefix())
	}
	if err != nil {
		return fmt.Errorf("deleting notifications: %w", err)
	}
	return nil
}

func (o *Outbox) fenced() string { return o.keys.Notification(kindBegun, "at") }

// Marks returns the recorded facts of an object.
func (o *Outbox) Marks(object string) []Mark {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.marks[object])
}

// Marked returns the objects with recorded facts, and the time of the latest.
func (o *Outbox) Marked() map[string]time.Time {
	o.mu.Lock()
	defer o.mu.Unlock()
	out := make(map[string]time.Time, len(o.marks))
	for object, marks := range o.marks {
		latest := int64(0)
		for _, mark := range marks {
			latest = max(latest, mark.At)
		}
		out[object] = time.Unix(latest, 0)
	}
	return out
}

// Append adds entries to the log and writes the marks of their object, in one transaction. So no
// entry lacks its mark, and no fact is recorded twice.
func (o *Outbox) Append(ctx context.Context, object string, marks []Mark, bodies ...json.RawMessage) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	record, err := wrap(marks)
	if err != nil {
		return err
	}
	then := []clientv3.Op{clientv3.OpPut(o.keys.Notification(kindTold, object), string(record))}
	added := make([]Entry, 0, len(bodies))
	for i, body := range bodies {
		entry := Entry{Number: o.next + int64(i), Body: body}
		if record, err = format().Wrap(body); err != nil {
			return err
		}
		then = append(then, clientv3.OpPut(o.keys.Notification(kindLog, numbered(entry.Number)), string(record)))
		added = append(added, entry)
	}
	entries := append(slices.Clip(o.entries), added...)
	left := max(0, len(entries)-MaxEntries)
	for _, entry := range entries[:left] {
		if entry.Number < o.next { // a transaction may write a key only once
			then = append(then, clientv3.OpDelete(o.keys.Notification(kindLog, numbered(entry.Number))))
		}
	}
	if err := o.commit(ctx, then...); err != nil {
		return fmt.Errorf("recording notifications of %s: %w", object, err)
	}
	o.entries, o.next = slices.Clone(entries[left:]), o.next+int64(len(added))
	o.marks[object] = slices.Clone(marks)
	return nil
}

// Forget deletes the marks of a deleted object. Its entries stay.
func (o *Outbox) Forget(ctx context.Context, object string) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, marked := o.marks[object]; !marked {
		return nil
	}
	if err := o.commit(ctx, clientv3.OpDelete(o.keys.Notification(kindTold, object))); err != nil {
		return fmt.Errorf("forgetting notifications of %s: %w", object, err)
	}
	delete(o.marks, object)
	return nil
}

// Receivers sets the receivers, by uid. A new receiver begins at the end of the log. Cursors of
// other receivers are deleted.
func (o *Outbox) Receivers(ctx context.Context, uids []string) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	var then []clientv3.Op
	cursors := map[string]Cursor{}
	for _, uid := range uids {
		cursor, known := o.cursors[uid]
		if !known {
			cursor = Cursor{Next: o.next}
			record, err := wrap(cursor)
			if err != nil {
				return err
			}
			then = append(then, clientv3.OpPut(o.keys.Notification(kindReceivers, uid), string(record)))
		}
		cursors[uid] = cursor
	}
	for uid := range o.cursors {
		if _, named := cursors[uid]; !named {
			then = append(then, clientv3.OpDelete(o.keys.Notification(kindReceivers, uid)))
		}
	}
	if len(then) == 0 {
		return nil
	}
	if err := o.commit(ctx, then...); err != nil {
		return fmt.Errorf("recording the receivers of notifications: %w", err)
	}
	o.cursors = cursors
	return o.trim(ctx)
}

// Pending returns the cursor of a receiver and the entries that it has not taken, oldest first.
// Entries between the cursor and the first returned entry were deleted from the log. known is false
// for a receiver without a cursor.
func (o *Outbox) Pending(uid string) (cursor Cursor, entries []Entry, known bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if cursor, known = o.cursors[uid]; !known {
		return Cursor{}, nil, false
	}
	from := slices.IndexFunc(o.entries, func(e Entry) bool { return e.Number >= cursor.Next })
	if from < 0 {
		return cursor, nil, true
	}
	return cursor, slices.Clone(o.entries[from:]), true
}

// Move writes the cursor of a receiver, and deletes the entries that all receivers have taken. It
// does nothing for an unknown receiver.
func (o *Outbox) Move(ctx context.Context, uid string, cursor Cursor) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, known := o.cursors[uid]; !known {
		return nil
	}
	if err := o.put(ctx, o.keys.Notification(kindReceivers, uid), cursor); err != nil {
		return err
	}
	o.cursors[uid] = cursor
	return o.trim(ctx)
}

// trim deletes the entries that all receivers have taken.
func (o *Outbox) trim(ctx context.Context) error {
	oldest := o.next
	for _, cursor := range o.cursors {
		oldest = min(oldest, cursor.Next)
	}
	if len(o.entries) == 0 || o.entries[0].Number >= oldest {
		return nil
	}
	from, to := o.keys.Notification(kindLog, numbered(0)), o.keys.Notification(kindLog, numbered(oldest))
	if err := o.commit(ctx, clientv3.OpDelete(from, clientv3.WithRange(to))); err != nil {
		return fmt.Errorf("deleting notifications that were taken: %w", err)
	}
	o.entries = slices.DeleteFunc(o.entries, func(e Entry) bool { return e.Number < oldest })
	return nil
}

func (o *Outbox) put(ctx context.Context, key string, content any) error {
	record, err := wrap(content)
	if err != nil {
		return err
	}
	return o.commit(ctx, clientv3.OpPut(key, string(record)))
}

// commit writes if no other process has begun since. A fence of 0 means that no process has begun.
func (o *Outbox) commit(ctx context.Context, then ...clientv3.Op) error {
	response, err := o.kv.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(o.fenced()), "=", o.fence)).Then(then...).Commit()
	if err != nil {
		return fmt.Errorf("writing below %s: %w", o.keys.Notifications(), err)
	}
	if !response.Succeeded {
		return ErrOvertaken
	}
	return nil
}
