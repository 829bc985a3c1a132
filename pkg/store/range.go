package store

import (
	"context"
	"fmt"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

const (
	// defaultPage bounds the records in one read. A client accepts messages of 64 MiB, and a record
	// may have 1.5 MiB.
	defaultPage = 40
	// FirstPage is the number of records in the first read. Pages grow while they have few bytes
	// (see NextPage), so that many small records are read fast, and large records take little
	// memory.
	FirstPage = 8
	pageBytes = 4 << 20
)

// Range selects the records with keys from From up to, but not including, End.
type Range struct {
	From, End string
	// Revision is the revision of etcd to read. If it is 0, each page is read at the current
	// revision. The range then includes every record that exists during the whole read, even if
	// etcd compacts meanwhile.
	Revision int64
	// Most bounds the records in one read. The default is 40: this many records of any size fit
	// into one message.
	Most int64
	// KeysOnly omits the values.
	KeysOnly bool
}

// Below returns the range of keys with a prefix.
func Below(prefix string) Range {
	return Range{From: prefix, End: clientv3.GetPrefixRangeEnd(prefix)}
}

// Each calls a function with every record, sorted by key. It ends at the first error.
func (r Range) Each(ctx context.Context, kv clientv3.KV, do func(*mvccpb.KeyValue) error) error {
	if r.Most == 0 {
		r.Most = defaultPage
	}
	for limit := min(r.Most, FirstPage); ; {
		options := []clientv3.OpOption{clientv3.WithRange(r.End), clientv3.WithRev(r.Revision), clientv3.WithLimit(limit)}
		if r.KeysOnly {
			options = append(options, clientv3.WithKeysOnly())
		}
		found, err := kv.Get(ctx, r.From, options...)
		if err != nil {
			if r.Revision == 0 {
				return fmt.Errorf("reading records from %s on: %w", r.From, err)
			}
			return fmt.Errorf("reading records from %s on, as they were at etcd revision %d: %w", r.From, r.Revision, err)
		}
		bytes := 0
		for _, record := range found.Kvs {
			if err := do(record); err != nil {
				return err
			}
			bytes += len(record.Value)
			r.From = string(record.Key) + "\x00"
		}
		if !found.More || len(found.Kvs) == 0 {
			return nil
		}
		limit = NextPage(limit, r.Most, bytes)
	}
}

// NextPage returns the number of records for the next read. The last read had limit records with
// the given number of bytes.
func NextPage[N int | int64](limit, most N, bytes int) N {
	switch {
	case bytes > pageBytes:
		return max(1, limit/2)
	case bytes < pageBytes/4:
		return min(most, limit*4)
	default:
		return limit
	}
}
