package store

import (
	"context"
	"fmt"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Several records share packs, and a pack without references is deleted. So every new reference to
// a pack is written in a transaction with these conditions, and the collector keeps an order (see
// package gc). If the two race, one of them succeeds:
//
//   - The collector writes the candidate key of a pack before it searches for references to the
//     pack. It sees earlier writes, and later writes fail.
//   - A create that stores the pack again deletes the candidate key. The collector deletes the pack
//     only if its own candidate key is unchanged.

// Referable returns the conditions under which a record may refer to packs: each pack exists and is
// no candidate for deletion.
func Referable(keys Keys, roots ...string) []clientv3.Cmp {
	var conditions []clientv3.Cmp
	for _, root := range roots {
		conditions = append(conditions,
			clientv3.Compare(clientv3.CreateRevision(keys.Pack(root)), ">", 0),
			clientv3.Compare(clientv3.CreateRevision(keys.Candidate(root)), "=", 0))
	}
	return conditions
}

// LookReferable returns reads for WasReferable, which determines whether a condition of Referable
// failed.
func LookReferable(keys Keys, roots ...string) []clientv3.Op {
	var reads []clientv3.Op
	for _, root := range roots {
		reads = append(reads, clientv3.OpGet(keys.Pack(root), clientv3.WithKeysOnly()), clientv3.OpGet(keys.Candidate(root), clientv3.WithKeysOnly()))
	}
	return reads
}

// WasReferable returns a *CollectedError with the roots whose conditions failed, or nil. found are
// the results of LookReferable.
func WasReferable(found []*pb.ResponseOp, roots ...string) error {
	var collected []string
	for i, root := range roots {
		pack, candidate := found[2*i].GetResponseRange(), found[2*i+1].GetResponseRange()
		if len(pack.Kvs) == 0 || len(candidate.Kvs) > 0 {
			collected = append(collected, root)
		}
	}
	if len(collected) == 0 {
		return nil
	}
	return &CollectedError{Roots: collected}
}

// StillReferable reads whether the conditions of Referable hold now, and returns a *CollectedError
// if not. It is for failed transactions whose cause is unknown.
func StillReferable(ctx context.Context, kv clientv3.KV, keys Keys, roots ...string) error {
	if len(roots) == 0 {
		return nil
	}
	done, err := kv.Txn(ctx).Then(LookReferable(keys, roots...)...).Commit()
	if err != nil {
		return fmt.Errorf("reading whether packs were collected: %w", err)
	}
	return WasReferable(done.Responses, roots...)
}

// CollectedError reports that nothing was written, because a referenced pack was collected or is
// about to be. The pack must be stored again.
type CollectedError struct{ Roots []string }

func (e *CollectedError) Error() string {
	return fmt.Sprintf("the manifests (%v) were collected before anything referred to them", e.Roots)
}
