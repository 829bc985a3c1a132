// Package run records the executions of plans: one row for each run, by the plan's name. The rows
// outlive the plan, because they record the approvers.
package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/penstock-project/penstock/pkg/store"
)

const (
	// MaxRows bounds the kept executions of a name; the oldest are deleted first.
	MaxRows = 50
	// maxBytes bounds a record. Above it, the oldest rows are removed, but at least one row stays.
	maxBytes = 1 << 20
	// maxRecordBytes bounds a record of one row. It is below the 1.5 MiB limit of a request to
	// etcd.
	maxRecordBytes = 1400 << 10
	// namesPage bounds the names in one read.
	namesPage = 500
)

// Row is one execution.
type Row struct {
	// Plan is the uid of the plan, because a name may be used again.
	Plan string `json:"plan"`
	// Number is the number of the execution in its plan, from 1.
	Number int64 `json:"number"`
	// Body is the row's content, in JSON.
	Body json.RawMessage `json:"body"`
}

// Runs reads and writes rows.
type Runs struct {
	kv   clientv3.KV
	keys store.Keys
	// unreadable collects unreadable rows; nil collects none.
	unreadable *store.Unreadable
}

// New returns the rows below an etcd prefix.
func New(kv clientv3.KV, prefix string) *Runs {
	return &Runs{kv: kv, keys: store.NewKeys(prefix)}
}

// Noting sets the collection of unreadable rows. It returns r.
func (r *Runs) Noting(unreadable *store.Unreadable) *Runs {
	r.unreadable = unreadable
	return r
}

func format() store.Format {
	return store.Format{Kind: "runs of a plan", Magic: "PKR", Version: 1, Limit: maxRecordBytes}
}

// List returns the rows of a name, newest first.
func (r *Runs) List(ctx context.Context, name string) ([]Row, error) {
	rows, _, err := r.load(ctx, name)
	return rows, err
}

// Names returns the names that have rows, sorted. It reads no rows.
func (r *Runs) Names(ctx context.Context) ([]string, error) {
	var names []string
	keys := store.Below(r.keys.Plans())
	keys.Most, keys.KeysOnly = namesPage, true
	err := keys.Each(ctx, r.kv, func(found *mvccpb.KeyValue) error {
		if name, ok := r.keys.RunsOf(string(found.Key)); ok {
			names = append(names, name)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading the names of runs: %w", err)
	}
	return names, nil
}

// Put stores a row, and replaces a row with the same plan and number. Other rows stay, even with
// concurrent writers. A row that alone is too large is a *store.TooLargeError.
//
// A new row refers to the given packs. If a pack was collected, the row is not written, and the
// error is a *store.CollectedError.
func (r *Runs) Put(ctx context.Context, name string, row Row, packs ...string) error {
	if name == "" || row.Plan == "" || row.Number <= 0 {
		return errors.New("a run needs a plan's name and uid, and a number from 1")
	}
	for {
		rows, modRevision, err := r.load(ctx, name)
		if err != nil {
			return err
		}
		refers := packs
		if slices.ContainsFunc(rows, row.replaces) {
			refers = nil
		}
		record, err := encode(insert(rows, row))
		if err != nil {
			return fmt.Errorf("writing the runs of plan %q: %w", name, err)
		}
		_, done, err := store.Swap(ctx, r.kv, r.keys.Runs(name), record, modRevision, store.Referable(r.keys, refers...)...)
		if err != nil || done {
			return err
		}
		if err := store.StillReferable(ctx, r.kv, r.keys, refers...); err != nil {
			return fmt.Errorf("writing the runs of plan %q: %w", name, err)
		}
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("writing the runs of plan %q: %w", name, err)
		}
	}
}

// replaces reports whether both rows belong to the same run.
func (r Row) replaces(other Row) bool { return r.Plan == other.Plan && r.Number == other.Number }

// insert replaces the row of the same run, or adds the row as the newest.
func insert(rows []Row, row Row) []Row {
	for i := range rows {
		if row.replaces(rows[i]) {
			rows[i] = row
			return rows
		}
	}
	rows = append([]Row{row}, rows...)
	return rows[:min(len(rows), MaxRows)]
}

func encode(rows []Row) ([]byte, error) {
	for {
		raw, err := json.Marshal(rows)
		if err != nil {
			return nil, err
		}
		if len(raw) <= maxBytes || len(rows) <= 1 {
			return format().Wrap(raw)
		}
		rows = rows[:len(rows)-1]
	}
}

func (r *Runs) load(ctx context.Context, name string) ([]Row, int64, error) {
	key := r.keys.Runs(name)
	stored, err := store.Get(ctx, r.kv, key)
	if err != nil || !stored.Exists() {
		return nil, 0, err
	}
	rows, err := Decode(key, stored.Bytes)
	if err != nil {
		return nil, 0, r.unreadable.Told(key, stored.Bytes, err)
	}
	return rows, stored.ModRevision, nil
}

// Damaged returns the error for unreadable rows.
func Damaged(key string, err error) error { return format().Damaged(key, err) }

// Decode returns the rows of a record, newest first.
func Decode(key string, record []byte) ([]Row, error) {
	raw, err := format().Unwrap(key, record)
	if err != nil {
		return nil, err
	}
	var rows []Row
	if err := json.Unmarshal(raw, &rows); err != nil {
		return nil, format().Damaged(key, err)
	}
	return rows, nil
}
