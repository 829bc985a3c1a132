package storetest

import (
	"context"
	"errors"
	"sync"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// ErrCrash is the answer of a crashed KV.
var ErrCrash = errors.New("crashed by the test")

// Crash is a kind of failure of a write.
type Crash string

const (
	// BeforeWrite loses the write: etcd never saw it.
	BeforeWrite Crash = "before the write"
	// AfterWrite loses the answer: etcd has done it.
	AfterWrite Crash = "after the write"
	// WriteLost and AnswerLost are the same failures, once, for a process that survives. It cannot
	// distinguish them.
	WriteLost  Crash = "the write is lost"
	AnswerLost Crash = "the answer is lost"
	// Disturbed calls Disturb before that write, once, and passes it on.
	Disturbed Crash = "the write is disturbed"
)

// CrashingKV passes writes on, up to a chosen one. That one crashes, and nothing
// works any more behind it, as for a process that was killed, unless it lives on. A transaction
// counts as a write when one of its branches writes.
type CrashingKV struct {
	clientv3.KV
	// Disturb is called before a write that is Disturbed.
	Disturb func()

	lease clientv3.Lease
	how   Crash

	mu      sync.Mutex
	left    int
	crashed bool
	// spent is set when the one failure of a process that lives on has been.
	spent bool
}

var _ clientv3.KV = &CrashingKV{}

// NewCrashingKV crashes at the write behind the first n.
func NewCrashingKV(client *clientv3.Client, n int, how Crash) *CrashingKV {
	return &CrashingKV{KV: client, lease: client, left: n, how: how}
}

// Crashed reports whether the failure happened.
func (c *CrashingKV) Crashed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.crashed
}

// Failed reports whether a write failed, of a process that lives on too.
func (c *CrashingKV) Failed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.crashed || c.spent
}

// write counts a write. It returns whether to pass it on, and the error to
// answer with.
func (c *CrashingKV) write() (bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.crashed {
		return false, ErrCrash
	}
	switch {
	case c.spent:
		return true, nil
	case c.left > 0:
		c.left--
		return true, nil
	case c.how == Disturbed:
		c.spent = true
		c.Disturb()
		return true, nil
	case c.how == WriteLost || c.how == AnswerLost:
		c.spent = true
		return c.how == AnswerLost, ErrCrash
	}
	c.crashed = true
	return c.how == AfterWrite, ErrCrash
}

// Get fails once crashed.
func (c *CrashingKV) Get(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	if c.Crashed() {
		return nil, ErrCrash
	}
	return c.KV.Get(ctx, key, opts...)
}

// Put is a write.
func (c *CrashingKV) Put(ctx context.Context, key, value string, opts ...clientv3.OpOption) (*clientv3.PutResponse, error) {
	return passOn(c, func() (*clientv3.PutResponse, error) { return c.KV.Put(ctx, key, value, opts...) })
}

// Delete is a write.
func (c *CrashingKV) Delete(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.DeleteResponse, error) {
	return passOn(c, func() (*clientv3.DeleteResponse, error) { return c.KV.Delete(ctx, key, opts...) })
}

// Grant is a write.
func (c *CrashingKV) Grant(ctx context.Context, seconds int64) (*clientv3.LeaseGrantResponse, error) {
	return passOn(c, func() (*clientv3.LeaseGrantResponse, error) { return c.lease.Grant(ctx, seconds) })
}

// Do is a write unless it gets. A transaction is better made by Txn.
func (c *CrashingKV) Do(ctx context.Context, op clientv3.Op) (clientv3.OpResponse, error) {
	do := func() (clientv3.OpResponse, error) { return c.KV.Do(ctx, op) }
	if !op.IsGet() {
		return passOn(c, do)
	}
	if c.Crashed() {
		return clientv3.OpResponse{}, ErrCrash
	}
	return do()
}

// Txn is a write when one of its branches writes.
func (c *CrashingKV) Txn(ctx context.Context) clientv3.Txn {
	return &crashingTxn{Txn: c.KV.Txn(ctx), kv: c}
}

func passOn[T any](c *CrashingKV, do func() (T, error)) (T, error) {
	var none T
	pass, crash := c.write()
	if !pass {
		return none, crash
	}
	response, err := do()
	if crash != nil {
		return none, errors.Join(crash, err)
	}
	return response, err
}

type crashingTxn struct {
	clientv3.Txn
	kv     *CrashingKV
	writes bool
}

func (t *crashingTxn) If(cmps ...clientv3.Cmp) clientv3.Txn {
	t.Txn = t.Txn.If(cmps...)
	return t
}

func (t *crashingTxn) Then(ops ...clientv3.Op) clientv3.Txn {
	t.note(ops)
	t.Txn = t.Txn.Then(ops...)
	return t
}

func (t *crashingTxn) Else(ops ...clientv3.Op) clientv3.Txn {
	t.note(ops)
	t.Txn = t.Txn.Else(ops...)
	return t
}

func (t *crashingTxn) note(ops []clientv3.Op) {
	for _, op := range ops {
		t.writes = t.writes || !op.IsGet()
	}
}

func (t *crashingTxn) Commit() (*clientv3.TxnResponse, error) {
	if t.writes {
		return passOn(t.kv, t.Txn.Commit)
	}
	if t.kv.Crashed() {
		return nil, ErrCrash
	}
	return t.Txn.Commit()
}
