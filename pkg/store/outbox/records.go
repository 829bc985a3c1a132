package outbox

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/penstock-project/penstock/pkg/store"
)

// These are the kinds of records.
const (
	kindLog       = "log"
	kindTold      = "told"
	kindReceivers = "receivers"
	kindBegun     = "begun"
)

const (
	// maxRecordBytes bounds a record. A body has at most 64 KiB.
	maxRecordBytes = 128 << 10
	// page bounds the records in one read.
	page = 500
)

func format() store.Format {
	return store.Format{Kind: "notification", Magic: "PKN", Version: 1, Limit: maxRecordBytes}
}

func wrap(content any) ([]byte, error) {
	raw, err := json.Marshal(content)
	if err != nil {
		return nil, fmt.Errorf("encoding a record of notifications: %w", err)
	}
	return format().Wrap(raw)
}

// numbered returns the name of an entry. Names sort like numbers.
func numbered(number int64) string { return fmt.Sprintf("%016x", number) }

// reset makes the outbox empty, as without receivers.
func (o *Outbox) reset() {
	o.fence, o.entries, o.next, o.cursors, o.marks = 0, nil, 1, map[string]Cursor{}, map[string][]Mark{}
}

// load reads the stored records. It reports an unreadable record and skips it. An unreadable entry
// counts as lost. A fact with an unreadable mark is recorded again, with the same id.
func (o *Outbox) load(ctx context.Context) error {
	records := store.Below(o.keys.Notifications())
	records.Most = page
	if err := records.Each(ctx, o.kv, func(kv *mvccpb.KeyValue) error {
		if err := o.take(kv); err != nil {
			_ = o.unreadable.Told(string(kv.Key), kv.Value, err)
		}
		return nil
	}); err != nil {
		return fmt.Errorf("reading notifications: %w", err)
	}
	slices.SortFunc(o.entries, func(a, b Entry) int { return cmp.Compare(a.Number, b.Number) })
	for _, cursor := range o.cursors {
		o.next = max(o.next, cursor.Next)
	}
	return nil
}

// take adds one record to the outbox.
func (o *Outbox) take(kv *mvccpb.KeyValue) error {
	key := string(kv.Key)
	kind, name, _ := o.keys.NotificationOf(key)
	// The number of an unreadable entry stays taken.
	number, _ := strconv.ParseInt(name, 16, 64)
	if kind == kindLog {
		o.next = max(o.next, number+1)
	}
	raw, err := format().Unwrap(key, kv.Value)
	if err != nil {
		return err
	}
	switch kind {
	case kindLog:
		if !json.Valid(raw) {
			return format().Damaged(key, errNotJSON)
		}
		o.entries = append(o.entries, Entry{Number: number, Body: raw})
	case kindTold:
		var marks []Mark
		if err = json.Unmarshal(raw, &marks); err == nil {
			o.marks[name] = marks
		}
	case kindReceivers:
		var cursor Cursor
		if err = json.Unmarshal(raw, &cursor); err == nil {
			o.cursors[name] = cursor
		}
	}
	if err != nil {
		return format().Damaged(key, err)
	}
	return nil
}

var errNotJSON = fmt.Errorf("it is not JSON")

// Verify returns the error of a damaged record of notifications.
func Verify(key string, record []byte) error {
	raw, err := format().Unwrap(key, record)
	if err == nil && !json.Valid(raw) {
		err = format().Damaged(key, errNotJSON)
	}
	return err
}
