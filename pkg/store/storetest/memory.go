package storetest

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Memory is a fake etcd in memory with reads and transactions of the current state, for tests with
// many histories, which must be very fast. Tests with watches, leases or older revisions need
// Client.
type Memory struct {
	// Before is called before each operation, with its context, and without a lock; it may be nil.
	Before func(context.Context)

	mu       sync.Mutex
	revision int64
	kvs      map[string]*mvccpb.KeyValue
}

var _ clientv3.KV = &Memory{}

// NewMemory returns an empty Memory.
func NewMemory() *Memory { return &Memory{revision: 1, kvs: map[string]*mvccpb.KeyValue{}} }

// Clone returns a Memory with the same content.
func (m *Memory) Clone() *Memory {
	m.mu.Lock()
	defer m.mu.Unlock()
	// Records are replaced and never changed in place.
	return &Memory{revision: m.revision, kvs: maps.Clone(m.kvs)}
}

// Reset replaces the content with that of another Memory.
func (m *Memory) Reset(to *Memory) {
	other := to.Clone()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.revision, m.kvs = other.revision, other.kvs
}

// Client returns a client of the Memory, for code that takes no interface.
func (m *Memory) Client(ctx context.Context) *clientv3.Client {
	client := clientv3.NewCtxClient(ctx)
	client.KV = m
	return client
}

var errNoMemory = errors.New("storetest.Memory does not do that")

// Get implements clientv3.KV.
func (m *Memory) Get(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	done, err := m.Do(ctx, clientv3.OpGet(key, opts...))
	return done.Get(), err
}

// Put implements clientv3.KV.
func (m *Memory) Put(ctx context.Context, key, value string, opts ...clientv3.OpOption) (*clientv3.PutResponse, error) {
	done, err := m.Do(ctx, clientv3.OpPut(key, value, opts...))
	return done.Put(), err
}

// Delete implements clientv3.KV.
func (m *Memory) Delete(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.DeleteResponse, error) {
	done, err := m.Do(ctx, clientv3.OpDelete(key, opts...))
	return done.Del(), err
}

// GetStream is not supported, as in an older etcd.
func (*Memory) GetStream(context.Context, string, ...clientv3.OpOption) (clientv3.GetStreamChan, error) {
	return nil, status.Error(codes.Unimplemented, errNoMemory.Error())
}

// Compact is not supported.
func (*Memory) Compact(context.Context, int64, ...clientv3.CompactOption) (*clientv3.CompactResponse, error) {
	return nil, errNoMemory
}

// Do implements clientv3.KV. It runs one operation.
func (m *Memory) Do(ctx context.Context, op clientv3.Op) (clientv3.OpResponse, error) {
	if op.IsTxn() {
		return clientv3.OpResponse{}, errNoMemory
	}
	done, err := m.Txn(ctx).Then(op).Commit()
	if err != nil {
		return clientv3.OpResponse{}, err
	}
	switch response := done.Responses[0]; {
	case op.IsGet():
		found := response.GetResponseRange()
		found.Header = done.Header
		return (*clientv3.GetResponse)(found).OpResponse(), nil
	case op.IsPut():
		return (*clientv3.PutResponse)(&pb.PutResponse{Header: done.Header}).OpResponse(), nil
	default:
		deleted := response.GetResponseDeleteRange()
		deleted.Header = done.Header
		return (*clientv3.DeleteResponse)(deleted).OpResponse(), nil
	}
}

// Txn implements clientv3.KV.
func (m *Memory) Txn(ctx context.Context) clientv3.Txn { return &memoryTxn{memory: m, ctx: ctx} }

// memoryTxn contains its context, like a transaction of etcd's client.
type memoryTxn struct {
	memory *Memory
	ctx    context.Context //nolint:containedctx
	cmps   []clientv3.Cmp
	then   []clientv3.Op
	other  []clientv3.Op
}

// If adds conditions.
func (t *memoryTxn) If(cmps ...clientv3.Cmp) clientv3.Txn { t.cmps = append(t.cmps, cmps...); return t }

// Then sets the operations for fulfilled conditions.
func (t *memoryTxn) Then(ops ...clientv3.Op) clientv3.Txn { t.then = append(t.then, ops...); return t }

// Else sets the operations for unfulfilled conditions.
func (t *memoryTxn) Else(ops ...clientv3.Op) clientv3.Txn {
	t.other = append(t.other, ops...)
	return t
}

// Commit runs the transaction.
func (t *memoryTxn) Commit() (*clientv3.TxnResponse, error) {
	if t.memory.Before != nil {
		t.memory.Before(t.ctx)
	}
	if err := t.ctx.Err(); err != nil {
		return nil, err
	}
	m := t.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	succeeded, ops := m.hold(t.cmps), t.other
	if succeeded {
		ops = t.then
	}
	if slices.ContainsFunc(ops, func(op clientv3.Op) bool { return !op.IsGet() }) {
		m.revision++
	}
	done := &pb.TxnResponse{Succeeded: succeeded, Header: &pb.ResponseHeader{Revision: m.revision}}
	for _, op := range ops {
		done.Responses = append(done.Responses, m.apply(op))
	}
	return (*clientv3.TxnResponse)(done), nil
}

// hold reports whether all conditions hold. The caller holds the lock.
func (m *Memory) hold(cmps []clientv3.Cmp) bool {
	for i := range cmps {
		c := cmps[i].GetCompare()
		present := m.kvs[string(c.Key)]
		var holds bool
		switch target := c.TargetUnion.(type) {
		case *pb.Compare_ModRevision:
			holds = compared(c.Result, present.GetModRevision(), target.ModRevision)
		case *pb.Compare_CreateRevision:
			holds = compared(c.Result, present.GetCreateRevision(), target.CreateRevision)
		case *pb.Compare_Value:
			holds = (present != nil && bytes.Equal(target.Value, present.Value)) == (c.Result == pb.Compare_EQUAL)
		default:
			panic(errNoMemory)
		}
		if !holds {
			return false
		}
	}
	return true
}

func compared(how pb.Compare_CompareResult, found, wanted int64) bool {
	switch how {
	case pb.Compare_EQUAL:
		return found == wanted
	case pb.Compare_GREATER:
		return found > wanted
	case pb.Compare_LESS:
		return found < wanted
	default:
		return found != wanted
	}
}

// apply runs one operation. The caller holds the lock.
func (m *Memory) apply(op clientv3.Op) *pb.ResponseOp {
	key := string(op.KeyBytes())
	switch {
	case op.IsPut():
		created := m.revision
		if before := m.kvs[key]; before != nil {
			created = before.CreateRevision
		}
		m.kvs[key] = &mvccpb.KeyValue{Key: op.KeyBytes(), Value: op.ValueBytes(), CreateRevision: created, ModRevision: m.revision}
		return &pb.ResponseOp{Response: &pb.ResponseOp_ResponsePut{ResponsePut: &pb.PutResponse{}}}
	case op.IsDelete():
		deleted := &pb.DeleteRangeResponse{}
		for _, kv := range m.between(key, string(op.RangeBytes())) {
			delete(m.kvs, string(kv.Key))
			deleted.Deleted++
		}
		return &pb.ResponseOp{Response: &pb.ResponseOp_ResponseDeleteRange{ResponseDeleteRange: deleted}}
	}
	found := m.between(key, string(op.RangeBytes()))
	response := &pb.RangeResponse{Kvs: found, Count: int64(len(found))}
	if limit := op.Limit(); limit > 0 && response.Count > limit {
		response.Kvs, response.More = found[:limit], true
	}
	return &pb.ResponseOp{Response: &pb.ResponseOp_ResponseRange{ResponseRange: response}}
}

// between returns one record, or the records of a range, sorted by key. The caller holds the lock.
func (m *Memory) between(key, end string) []*mvccpb.KeyValue {
	if end == "" {
		if kv := m.kvs[key]; kv != nil {
			return []*mvccpb.KeyValue{kv}
		}
		return nil
	}
	var found []*mvccpb.KeyValue
	for _, at := range slices.Sorted(maps.Keys(m.kvs)) {
		if at >= key && (end == "\x00" || at < end) {
			found = append(found, m.kvs[at])
		}
	}
	return found
}
