package storetest

import (
	"context"
	"errors"
	"sync"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// ErrCrash is the error of a crashed KV.
var ErrCrash = errors.New("crashed by the test")

// Crash is a kind of failure of a write.
type Crash string

const (
	// BeforeWrite loses the write: etcd never receives it.
	BeforeWrite Crash = "before the write"
	// AfterWrite loses the answer: etcd has executed the write.
	AfterWrite Crash = "after the write"
	// WriteLost and AnswerLost are the same failures, once, for a process that continues. The
	// process cannot distinguish them.
	WriteLost  Crash = "the write is lost"
	AnswerLost Crash = "the answer is lost"
	// Disturbed calls Disturb once before the write, and then executes the write.
	Disturbed Crash = "the write is disturbed"
)

// CrashingKV executes writes, up to a chosen write, which crashes. Afterwards every operation
// fails, as in a killed process, unless the process continues. A transaction is a write if a branch
// of it writes.
type CrashingKV struct {
	clientv3.KV
	// Disturb is called before a Disturbed write.
	Disturb func()

	lease clientv3.Lease
	how   Crash

	mu      sync.Mutex
	left    int
	crashed bool
	// spent is set after the single failure of a process that continues.
	spent bool
}

var _ clientv3.KV = &CrashingKV{}

// NewCrashingKV returns a KV that crashes at the write after the first n writes.
func NewCrashingKV(client *clientv3.Client, n int, how Crash) *CrashingKV {
	return &CrashingKV{KV: client, lease: client, left: n, how: how}
}

// Crashed reports whether the crash happened.
func (c *CrashingKV) Crashed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.crashed
}

// Failed reports whether a write failed, also in a process that continues.
func (c *CrashingKV) Failed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.crashed || c.spent
}

// write counts a write. It returns whether to execute it, and the error to return.
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

// Get returns ErrCrash after the crash.
func (c *CrashingKV) Get(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	if c.Crashed() {
		return nil, ErrCrash
	}
	return c.KV.Get(ctx, key, opts...)
}

// Put counts as a write.
func (c *CrashingKV) Put(ctx context.Context, key, value string, opts ...clientv3.OpOption) (*clientv3.PutResponse, error) {
	return passOn(c, func() (*clientv3.PutResponse, error) { return c.KV.Put(ctx, key, value, opts...) })
}

// Delete counts as a write.
func (c *CrashingKV) Delete(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.DeleteResponse, error) {
	return passOn(c, func() (*clientv3.DeleteResponse, error) { return c.KV.Delete(ctx, key, opts...) })
}

// Grant counts as a write.
func (c *CrashingKV) Grant(ctx context.Context, seconds int64) (*clientv3.LeaseGrantResponse, error) {
	return passOn(c, func() (*clientv3.LeaseGrantResponse, error) { return c.lease.Grant(ctx, seconds) })
}

// Do counts as a write unless it is a read. Use Txn for transactions.
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

// Txn counts as a write if one of its branches writes.
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
