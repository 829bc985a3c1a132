package outbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/penstock-project/penstock/pkg/store"
	"github.com/penstock-project/penstock/pkg/store/storetest"
)

const prefix = "/p"

func begin(t *testing.T, kv clientv3.KV) *Outbox {
	t.Helper()
	o := New(kv, prefix)
	if _, err := o.Begin(t.Context(), time.Unix(100, 0)); err != nil {
		t.Fatal(err)
	}
	return o
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func body(n int) json.RawMessage { return json.RawMessage(fmt.Sprintf(`{"n":%d}`, n)) }

func numbers(entries []Entry) []int64 {
	var out []int64
	for _, entry := range entries {
		out = append(out, entry.Number)
	}
	return out
}

// TestRestart: cursors, marks and entries are the same in the next process, which continues the numbers.
func TestRestart(t *testing.T) {
	kv := storetest.NewMemory()
	o := begin(t, kv)
	must(t, o.Receivers(t.Context(), []string{"chat", "pager"}))
	marks := []Mark{{Key: "Failed/Deadline", Since: 7, At: 9}}
	must(t, o.Append(t.Context(), "uid-1", marks, body(1), body(2)))
	must(t, o.Move(t.Context(), "chat", Cursor{Next: 2, Greeted: true}))

	again := New(kv, prefix)
	since, err := again.Begin(t.Context(), time.Unix(200, 0))
	must(t, err)
	if since.Unix() != 100 {
		t.Errorf("recording began at %d, want that of the first process", since.Unix())
	}
	if diff := cmp.Diff(marks, again.Marks("uid-1")); diff != "" {
		t.Error(diff)
	}
	cursor, entries, _ := again.Pending("chat")
	if diff := cmp.Diff(Cursor{Next: 2, Greeted: true}, cursor); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]Entry{{Number: 2, Body: body(2)}}, entries); diff != "" {
		t.Error(diff)
	}
	must(t, again.Append(t.Context(), "uid-2", nil, body(3)))
	if _, entries, _ = again.Pending("pager"); !cmp.Equal(numbers(entries), []int64{1, 2, 3}) {
		t.Errorf("pager waits for %v", numbers(entries))
	}
}

// TestFormerLeader: a process that wrongly believes that it is the leader records nothing.
func TestFormerLeader(t *testing.T) {
	kv := storetest.NewMemory()
	former := begin(t, kv)
	must(t, former.Receivers(t.Context(), []string{"chat"}))
	begin(t, kv)
	for name, do := range map[string]func() error{
		"append":    func() error { return former.Append(t.Context(), "uid", nil, body(1)) },
		"move":      func() error { return former.Move(t.Context(), "chat", Cursor{Next: 9}) },
		"receivers": func() error { return former.Receivers(t.Context(), []string{"other"}) },
	} {
		if err := do(); !errors.Is(err, ErrOvertaken) {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, entries, _ := begin(t, kv).Pending("chat")
	if len(entries) > 0 {
		t.Errorf("it has recorded %v", entries)
	}
}

// TestBounded: the log keeps at most MaxEntries entries, also in the store. The cursor shows how
// many entries are missing.
func TestBounded(t *testing.T) {
	kv := storetest.NewMemory()
	o := begin(t, kv)
	must(t, o.Receivers(t.Context(), []string{"down"}))
	for i := range MaxEntries + 7 {
		must(t, o.Append(t.Context(), "uid", nil, body(i)))
	}
	for name, box := range map[string]*Outbox{"this process": o, "the next one": begin(t, kv)} {
		cursor, entries, _ := box.Pending("down")
		if len(entries) != MaxEntries || cursor.Next != 1 || entries[0].Number != 8 {
			t.Errorf("%s: %d entries from %d on, cursor %d", name, len(entries), entries[0].Number, cursor.Next)
		}
	}
}

// TestTrimmed: only entries that all receivers have taken are deleted.
func TestTrimmed(t *testing.T) {
	kv := storetest.NewMemory()
	o := begin(t, kv)
	must(t, o.Receivers(t.Context(), []string{"a", "b"}))
	must(t, o.Append(t.Context(), "uid", nil, body(1), body(2)))
	must(t, o.Move(t.Context(), "a", Cursor{Next: 3}))
	if _, entries, _ := o.Pending("b"); len(entries) != 2 {
		t.Fatalf("b waits for %v", entries)
	}
	must(t, o.Receivers(t.Context(), []string{"a"}))
	left, err := kv.Get(t.Context(), store.NewKeys(prefix).Notifications()+"log/", clientv3.WithPrefix())
	must(t, err)
	if len(left.Kvs) > 0 {
		t.Errorf("%d entries are left that nobody waits for", len(left.Kvs))
	}
	// This process and the next process continue the numbers.
	for _, box := range []*Outbox{o, begin(t, kv)} {
		if cursor, _, _ := box.Pending("a"); cursor.Next != 3 {
			t.Errorf("the cursor is %d", cursor.Next)
		}
	}
	next := begin(t, kv)
	must(t, next.Append(t.Context(), "uid", nil, body(3)))
	if _, entries, _ := next.Pending("a"); !cmp.Equal(numbers(entries), []int64{3}) {
		t.Errorf("a waits for %v", numbers(entries))
	}
}

// TestNothingAtRest: without receivers nothing is stored.
func TestNothingAtRest(t *testing.T) {
	kv := storetest.NewMemory()
	o := begin(t, kv)
	must(t, o.Receivers(t.Context(), []string{"a"}))
	must(t, o.Append(t.Context(), "uid", []Mark{{Key: "Failed"}}, body(1)))
	must(t, o.Clear(t.Context()))
	left, err := kv.Get(t.Context(), store.NewKeys(prefix).Notifications(), clientv3.WithPrefix())
	must(t, err)
	if len(left.Kvs) > 0 || len(o.Marked()) > 0 {
		t.Errorf("%d records are left", len(left.Kvs))
	}
}

// TestForget: the marks of a deleted object are deleted, and its entries are kept.
func TestForget(t *testing.T) {
	kv := storetest.NewMemory()
	o := begin(t, kv)
	must(t, o.Receivers(t.Context(), []string{"a"}))
	must(t, o.Append(t.Context(), "uid", []Mark{{Key: "Failed"}}, body(1)))
	must(t, o.Forget(t.Context(), "uid"))
	next := begin(t, kv)
	if _, entries, _ := next.Pending("a"); len(entries) != 1 || len(next.Marked()) > 0 {
		t.Errorf("entries %v, marks of %v", entries, next.Marked())
	}
}

// TestUnreadable: an unreadable record is reported, and affects no other record.
func TestUnreadable(t *testing.T) {
	kv := storetest.NewMemory()
	keys := store.NewKeys(prefix)
	o := begin(t, kv)
	must(t, o.Receivers(t.Context(), []string{"a"}))
	must(t, o.Append(t.Context(), "uid", []Mark{{Key: "Failed"}}, body(1), body(2)))
	for _, key := range []string{keys.Notification(kindLog, numbered(2)), keys.Notification(kindTold, "uid")} {
		if Verify(key, []byte("?")) == nil {
			t.Errorf("%s: nothing is wrong with it", key)
		}
		_, err := kv.Put(t.Context(), key, "?")
		must(t, err)
	}
	unreadable := store.NewUnreadable(kv)
	next := New(kv, prefix).Noting(unreadable)
	_, err := next.Begin(t.Context(), time.Unix(1, 0))
	must(t, err)
	if found := unreadable.List(t.Context()); len(found) != 2 {
		t.Errorf("noted: %v", found)
	}
	must(t, next.Append(t.Context(), "uid", nil, body(3)))
	if _, entries, _ := next.Pending("a"); !cmp.Equal(numbers(entries), []int64{1, 3}) {
		t.Errorf("a waits for %v: the number of the damaged one must not be used again", numbers(entries))
	}
}

// TestCrash: if the process ends at any point, an entry is recorded with its mark or not at all.
func TestCrash(t *testing.T) {
	kv := storetest.NewMemory()
	o := begin(t, kv)
	must(t, o.Receivers(t.Context(), []string{"a"}))
	lost := errors.New("the connection is lost")
	failing := New(&answerLost{KV: kv, err: lost}, prefix)
	_, err := failing.Begin(t.Context(), time.Unix(1, 0))
	must(t, err)
	if err := failing.Append(t.Context(), "uid", []Mark{{Key: "Failed"}}, body(1)); !errors.Is(err, lost) {
		t.Fatal(err)
	}
	next := begin(t, kv)
	if _, entries, _ := next.Pending("a"); len(entries) != len(next.Marks("uid")) {
		t.Errorf("%d entries, %d marks", len(entries), len(next.Marks("uid")))
	}
}

// answerLost executes transactions that append entries, and loses their answers.
type answerLost struct {
	clientv3.KV
	err error
}

func (a *answerLost) Txn(ctx context.Context) clientv3.Txn {
	return &lostTxn{Txn: a.KV.Txn(ctx), err: a.err}
}

type lostTxn struct {
	clientv3.Txn
	err  error
	lose bool
}

func (l *lostTxn) If(c ...clientv3.Cmp) clientv3.Txn { l.Txn = l.Txn.If(c...); return l }
func (l *lostTxn) Then(ops ...clientv3.Op) clientv3.Txn {
	l.lose = len(ops) > 1
	l.Txn = l.Txn.Then(ops...)
	return l
}
func (l *lostTxn) Else(ops ...clientv3.Op) clientv3.Txn { l.Txn = l.Txn.Else(ops...); return l }
func (l *lostTxn) Commit() (*clientv3.TxnResponse, error) {
	done, err := l.Txn.Commit()
	if l.lose {
		return nil, l.err
	}
	return done, err
}
