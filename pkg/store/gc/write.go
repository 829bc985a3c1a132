package gc

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/penstock-project/penstock/pkg/store/pack"
)

// change is a write with its conditions.
type change struct {
	conditions []clientv3.Cmp
	ops        []clientv3.Op
}

func unchanged(key string, at int64) clientv3.Cmp {
	return clientv3.Compare(clientv3.ModRevision(key), "=", at)
}

// write writes changes, in transactions of at most batch changes, and returns the number of written
// changes. If a condition of a transaction does not hold, it writes each change in a separate
// transaction.
func (c *Collector) write(ctx context.Context, doing string, changes []change) (int, error) {
	written := 0
	for some := range slices.Chunk(changes, batch) {
		done, err := c.commit(ctx, doing, some...)
		if err != nil {
			return written, err
		}
		if done {
			written += len(some)
			continue
		}
		for _, one := range some {
			done, err := c.commit(ctx, doing, one)
			if err != nil {
				return written, err
			}
			if done {
				written++
			}
		}
	}
	return written, nil
}

// commit writes changes in one transaction, if this is still the current collector. It returns
// false if a condition of a change does not hold.
func (c *Collector) commit(ctx context.Context, doing string, changes ...change) (bool, error) {
	conditions, ops := []clientv3.Cmp{unchanged(c.keys.Collector(), c.term)}, []clientv3.Op(nil)
	for _, one := range changes {
		conditions, ops = append(conditions, one.conditions...), append(ops, one.ops...)
	}
	done, err := c.kv.Txn(ctx).If(conditions...).Then(ops...).
		Else(clientv3.OpGet(c.keys.Collector(), clientv3.WithKeysOnly())).Commit()
	if err != nil {
		return false, fmt.Errorf("%s: %w", doing, err)
	}
	if done.Succeeded {
		return true, nil
	}
	if found := done.Responses[0].GetResponseRange().Kvs; len(found) == 0 || found[0].ModRevision != c.term {
		return false, fmt.Errorf("%s: %w", doing, ErrSuperseded)
	}
	return false, nil
}

// name writes the candidate keys of packs.
func (c *Collector) name(ctx context.Context, s state, roots []string) error {
	var changes []change
	for _, root := range roots {
		one := s.packs[root]
		// This takes over a candidate that another collector has left.
		changes = append(changes, change{
			conditions: []clientv3.Cmp{unchanged(c.keys.Pack(root), one.pack), unchanged(c.keys.Candidate(root), one.candidate)},
			ops:        []clientv3.Op{clientv3.OpPut(c.keys.Candidate(root), "")},
		})
	}
	_, err := c.write(ctx, "naming the packs that may be collected", changes)
	return err
}

// delete deletes the named packs that still have no references, and returns their number.
func (c *Collector) delete(ctx context.Context, s state, named []string) (int, error) {
	var changes []change
	for _, root := range named {
		one := s.packs[root]
		if one == nil || one.pack == 0 || one.candidate == 0 || s.kept[root] {
			continue
		}
		// A reservation that was made meanwhile stays, for the pack that is stored next.
		chunks := clientv3.OpDelete(c.keys.PackRecords(root)+"chunks/", clientv3.WithPrefix())
		changes = append(changes, change{
			conditions: []clientv3.Cmp{unchanged(c.keys.Pack(root), one.pack), unchanged(c.keys.Candidate(root), one.candidate)},
			ops:        []clientv3.Op{clientv3.OpDelete(c.keys.Pack(root)), clientv3.OpDelete(c.keys.Candidate(root)), chunks},
		})
	}
	return c.write(ctx, "deleting packs that nothing refers to", changes)
}

// tidy deletes parts that belong to no pack, and candidate keys of packs that stay. It returns the
// number of deleted parts.
func (c *Collector) tidy(ctx context.Context, s state) (int, error) {
	var parts, candidates []change
	for _, root := range slices.Sorted(maps.Keys(s.packs)) {
		one := s.packs[root]
		if one.candidate != 0 && (s.kept[root] || one.pack == 0) {
			key := c.keys.Candidate(root)
			candidates = append(candidates, change{conditions: []clientv3.Cmp{unchanged(key, one.candidate)}, ops: []clientv3.Op{clientv3.OpDelete(key)}})
		}
		if one.Reserved || one.pack != 0 && (!s.kept[root] || one.named == nil) {
			continue // it is being stored, was deleted with its parts, or its parts are unknown
		}
		for _, key := range slices.Sorted(maps.Keys(one.chunks)) {
			if !one.named[key] {
				parts = append(parts, change{
					// A writer of the pack compares its parts with the written parts.
					conditions: []clientv3.Cmp{unchanged(c.keys.Pack(root), one.pack), unchanged(key, one.chunks[key])},
					ops:        []clientv3.Op{clientv3.OpDelete(key)},
				})
			}
		}
	}
	if _, err := c.write(ctx, "releasing packs that something refers to", candidates); err != nil {
		return 0, err
	}
	return c.write(ctx, "deleting parts of packs that were never finished", parts)
}

// rebaseLast rebases packs whose base has no other references onto a newer base. If only one pack
// still needs the base, it makes that pack whole. A base that two or more packs need stays, because
// making one of them whole would take as much space as the base. It returns the numbers of rebased
// and of postponed packs.
func (c *Collector) rebaseLast(ctx context.Context, s state) (rebased, putOff int, err error) {
	if c.rebase == nil {
		return 0, 0, nil
	}
	maps.DeleteFunc(c.tried, func(root, _ string) bool { return s.packs[root] == nil })
	needs := map[string][]string{}
	for _, root := range slices.Sorted(maps.Keys(s.packs)) {
		if base := s.packs[root].Base; base != "" {
			needs[base] = append(needs[base], root)
		}
	}
	newest := newestWhole(s)
	for _, base := range slices.Sorted(maps.Keys(needs)) {
		if one := s.packs[base]; one == nil || len(s.referred[base]) > 0 || one.Reserved {
			continue
		}
		if c.mayRebase <= 0 {
			putOff += len(needs[base])
			continue
		}
		left, err := c.rebaseOnto(ctx, s, needs[base], newest)
		if err != nil {
			return rebased, putOff, fmt.Errorf("making packs independent of %s: %w", base, err)
		}
		rebased += len(needs[base]) - len(left)
		if len(left) != 1 || !s.kept[left[0]] {
			continue
		}
		done, err := c.rebase.Rebase(ctx, left[0])
		if err != nil && !isDamage(err) {
			return rebased, putOff, fmt.Errorf("making pack %s whole, which alone needs %s: %w", left[0], base, err)
		}
		if done {
			// The whole pack takes about as much space as the base.
			c.mayRebase -= s.packs[base].bytes
			rebased++
		}
	}
	return rebased, putOff, nil
}

// isDamage reports whether a pack is unreadable. Such a pack stays unchanged, and its base stays
// too.
func isDamage(err error) bool {
	return errors.As(err, new(*pack.MissingError)) || errors.As(err, new(*pack.CorruptError))
}
