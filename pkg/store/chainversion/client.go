package chainversion

import (
	"context"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/kubernetes"

	"github.com/penstock-project/penstock/pkg/store"
)

// Client writes records of revisions as the API server's storage does. If the context has a
// Precondition, it also writes the chain version in the same transaction.
type Client struct {
	kubernetes.Interface
	kv   clientv3.KV
	keys store.Keys
}

var _ kubernetes.Interface = &Client{}

// NewClient wraps the client of the storage. kv is a client of the same etcd.
func NewClient(client kubernetes.Interface, kv clientv3.KV, prefix string) *Client {
	return &Client{Interface: client, kv: kv, keys: store.NewKeys(prefix)}
}

// OptimisticPut writes a record if the record and its chain are unchanged since the check.
//
// If only the chain has changed, it reports a changed record, with the current record. The storage
// then calls the update function again, which checks again. A create has no such function, so its
// error is a *ChangedError.
func (c *Client) OptimisticPut(ctx context.Context, key string, value []byte, expected int64, options kubernetes.PutOptions) (kubernetes.PutResponse, error) {
	p := From(ctx)
	if p == nil {
		return c.Interface.OptimisticPut(ctx, key, value, expected, options)
	}
	done, err := c.write(ctx, p, key, expected, clientv3.OpPut(key, string(value), clientv3.WithLease(options.LeaseID)))
	if err != nil {
		return kubernetes.PutResponse{}, err
	}
	if !options.GetOnFailure && !done.succeeded && done.asExpected {
		return kubernetes.PutResponse{}, &ChangedError{Chain: done.chain}
	}
	return kubernetes.PutResponse{KV: done.found, Succeeded: done.succeeded, Revision: done.revision}, nil
}

// OptimisticDelete deletes a record if the record and its chain are unchanged since the check. See
// OptimisticPut.
func (c *Client) OptimisticDelete(ctx context.Context, key string, expected int64, options kubernetes.DeleteOptions) (kubernetes.DeleteResponse, error) {
	p := From(ctx)
	if p == nil {
		return c.Interface.OptimisticDelete(ctx, key, expected, options)
	}
	done, err := c.write(ctx, p, key, expected, clientv3.OpDelete(key))
	if err != nil {
		return kubernetes.DeleteResponse{}, err
	}
	return kubernetes.DeleteResponse{KV: done.found, Succeeded: done.succeeded, Revision: done.revision}, nil
}

type outcome struct {
	chain     string
	succeeded bool
	// asExpected is true if the record was as expected, so the transaction failed because of the
	// chain version.
	asExpected bool
	// asJudged is true if the record and the chain version were as checked, so the transaction
	// failed for another reason.
	asJudged bool
	// found is the current record, if nothing was written.
	found    *mvccpb.KeyValue
	revision int64
}

// write runs one transaction. It compares the record, the chain version, the packs of the record,
// and the companion record. It then writes all changes together. A missing pack is always a
// *store.CollectedError. If only the companion record has changed, write tries again.
func (c *Client) write(ctx context.Context, p *Precondition, key string, expected int64, change clientv3.Op) (outcome, error) {
	on, err := p.begin()
	if err != nil {
		return outcome{}, err
	}
	var part store.Part
	if on.beside != nil {
		if part, err = on.beside.Beginning(ctx, c.kv); err != nil {
			return outcome{}, err
		}
	}
	for {
		done, beside, err := c.try(ctx, p, on, part, key, expected, change)
		if on.beside != nil && err == nil {
			if done.succeeded {
				on.beside.Wrote(part, done.revision)
			} else {
				on.beside.Saw(beside)
			}
		}
		if err != nil || done.succeeded || !done.asJudged || on.beside == nil || part.Holds(beside) {
			return done, err
		}
		if part, err = on.beside.Onto(beside); err != nil {
			return outcome{}, err
		}
	}
}

// try makes one attempt of write. If nothing was written, it also returns the current companion
// record.
func (c *Client) try(ctx context.Context, p *Precondition, on basis, part store.Part, key string, expected int64, change clientv3.Op) (outcome, store.Value, error) {
	mark := c.keys.ChainVersion(on.chain)
	conditions := []clientv3.Cmp{clientv3.Compare(clientv3.ModRevision(key), "=", expected)}
	if on.compare {
		conditions = append(conditions, clientv3.Compare(clientv3.ModRevision(mark), "=", on.at))
	}
	changes := []clientv3.Op{change}
	if !on.apart {
		changes = append(changes, clientv3.OpPut(mark, store.ChainVersionRecord()))
	}
	looks := []clientv3.Op{clientv3.OpGet(key), clientv3.OpGet(mark, clientv3.WithKeysOnly())}
	if on.beside != nil {
		conditions, changes, looks = append(conditions, part.If()), append(changes, part.Then()...), append(looks, part.Else())
	}
	response, err := c.kv.Txn(ctx).
		If(append(conditions, store.Referable(c.keys, on.packs...)...)...).
		Then(changes...).
		Else(append(looks, store.LookReferable(c.keys, on.packs...)...)...).
		Commit()
	if err != nil {
		p.spend() // whether it was written is unknown
		return outcome{}, store.Value{}, err
	}
	done := outcome{chain: on.chain, succeeded: response.Succeeded, revision: response.Header.Revision}
	if done.succeeded {
		p.spend()
		return done, store.Value{}, nil
	}
	if collected := store.WasReferable(response.Responses[len(looks):], on.packs...); collected != nil {
		p.spend()
		return outcome{}, store.Value{}, collected
	}
	done.found = found(response.Responses[0])
	done.asExpected = revisionOf(done.found) == expected
	done.asJudged = done.asExpected
	if on.compare && revisionOf(found(response.Responses[1])) != on.at {
		p.spend()
		done.asJudged = false
	}
	var beside store.Value
	if on.beside != nil {
		if kv := found(response.Responses[2]); kv != nil {
			beside = store.Value{Bytes: kv.Value, ModRevision: kv.ModRevision}
		}
	}
	return done, beside, nil
}

// found returns the record from an etcd read, or nil.
func found(response *etcdserverpb.ResponseOp) *mvccpb.KeyValue {
	kvs := response.GetResponseRange().Kvs
	if len(kvs) == 0 {
		return nil
	}
	return kvs[0]
}

// revisionOf returns etcd's revision of the last write of a record, or 0 for a missing record.
func revisionOf(kv *mvccpb.KeyValue) int64 {
	if kv == nil {
		return 0
	}
	return kv.ModRevision
}
