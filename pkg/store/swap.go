package store

import (
	"context"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Value is a record of etcd.
type Value struct {
	Bytes []byte
	// ModRevision is etcd's revision of the last write of the record, or 0 if the record does not
	// exist.
	ModRevision int64
}

// Exists reports whether the record exists.
func (v Value) Exists() bool { return v.ModRevision != 0 }

// Get reads a record after all acknowledged writes (linearizable). A missing record is no error.
func Get(ctx context.Context, kv clientv3.KV, key string) (Value, error) {
	response, err := kv.Get(ctx, key)
	if err != nil {
		return Value{}, fmt.Errorf("reading %s: %w", key, err)
	}
	if len(response.Kvs) == 0 {
		return Value{}, nil
	}
	return Value{Bytes: response.Kvs[0].Value, ModRevision: response.Kvs[0].ModRevision}, nil
}

// Swap is the compare-and-swap of all records in the store. It puts the value if all conditions
// hold and the key was last written at modRevision (0 for a key that must not exist). It returns
// the revision of the key, and whether it put the value.
//
// After an error it is unknown whether the value was put.
func Swap(ctx context.Context, kv clientv3.KV, key string, value []byte, modRevision int64, conditions ...clientv3.Cmp) (int64, bool, error) {
	response, err := kv.Txn(ctx).
		If(append(conditions, clientv3.Compare(clientv3.ModRevision(key), "=", modRevision))...).
		Then(clientv3.OpPut(key, string(value))).
		Else(clientv3.OpGet(key, clientv3.WithKeysOnly())).
		Commit()
	if err != nil {
		return 0, false, fmt.Errorf("writing %s: %w", key, err)
	}
	if response.Succeeded {
		return response.Header.Revision, true, nil
	}
	var found int64
	if kvs := response.Responses[0].GetResponseRange().Kvs; len(kvs) > 0 {
		found = kvs[0].ModRevision
	}
	return found, false, nil
}
