// Package identity distinguishes stores. A store may be restored empty or from an old backup, or
// may belong to another cluster. To clients, objects then seem deleted, and garbage collection
// would act on that. So a store has an identity, and the host cluster keeps a witness of it (a
// Mark). Judge decides from both whether the store may be served.
package identity

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/penstock-project/penstock/pkg/store"
)

// Format is the layout of the store that this Penstock writes, and the newest that it reads:
//
//   - 1: every pack is whole, and never deleted.
//   - 2: packs may be deltas, and unreferenced packs are collected. A Penstock that knows only
//     format 1 must not write to such a store: an existing pack may be collected before the new
//     record refers to it.
const Format = 2

// maxBytes bounds the record of an identity, which has about 200 bytes.
const maxBytes = 4 << 10

// Key is the secret of a store: the key of the digests of Secrets. It prints and marshals as a
// placeholder.
type Key [32]byte

const redacted = "[redacted]"

// Format implements fmt.Formatter. It prints the placeholder for every verb.
func (Key) Format(f fmt.State, _ rune) {
	_, _ = io.WriteString(f, redacted)
}

// MarshalText returns the placeholder.
func (Key) MarshalText() ([]byte, error) {
	return []byte(redacted), nil
}

// Identity is the identity of a store.
type Identity struct {
	// ID is a UUID.
	ID string
	// SecretKey is the key of the digests of Secrets.
	SecretKey Key
	// Format is the layout of the store.
	Format int
	// CreatedAt is in UTC, to the second.
	CreatedAt time.Time
	// Epoch is the number of restores from a snapshot. All other fields except Format never change.
	Epoch int
}

// New creates an identity from a source of random bytes.
func New(random io.Reader, now time.Time) (Identity, error) {
	identity := Identity{Format: Format, CreatedAt: now.UTC().Truncate(time.Second)}
	var id [16]byte
	if _, err := io.ReadFull(random, id[:]); err != nil {
		return Identity{}, fmt.Errorf("making up an identity: %w", err)
	}
	if _, err := io.ReadFull(random, identity.SecretKey[:]); err != nil {
		return Identity{}, fmt.Errorf("making up a key: %w", err)
	}
	id[6] = id[6]&0x0f | 0x40 // RFC 9562: version 4,
	id[8] = id[8]&0x3f | 0x80 // and its variant
	identity.ID = fmt.Sprintf("%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
	return identity, nil
}

// stored is an identity in its stored form, after the magic and the format.
type stored struct {
	ID        string    `json:"id"`
	SecretKey []byte    `json:"secretKey"`
	CreatedAt time.Time `json:"createdAt"`
	Epoch     int       `json:"epoch,omitempty"`
}

func recordFormat() store.Format {
	return store.Format{Kind: "store identity", Magic: "PKS", Version: Format, Limit: maxBytes}
}

// encode writes the format of the identity, so that only Raise changes the format.
func encode(identity Identity) ([]byte, error) {
	body, err := json.Marshal(stored{ID: identity.ID, SecretKey: identity.SecretKey[:], CreatedAt: identity.CreatedAt, Epoch: identity.Epoch})
	if err != nil {
		return nil, err
	}
	format := recordFormat()
	if identity.Format < 1 || identity.Format > Format {
		return nil, fmt.Errorf("the store has format %d, and 1 to %d can be written", identity.Format, Format)
	}
	format.Version = byte(identity.Format)
	return format.Wrap(body)
}

func decode(key string, record []byte) (Identity, error) {
	body, err := recordFormat().Unwrap(key, record)
	if err != nil {
		return Identity{}, err
	}
	var s stored
	if err := json.Unmarshal(body, &s); err != nil {
		// The decoder's error might quote the key.
		return Identity{}, recordFormat().Damaged(key, errors.New("it is not JSON of an identity"))
	}
	identity := Identity{ID: s.ID, Format: int(record[len(recordFormat().Magic)]), CreatedAt: s.CreatedAt, Epoch: s.Epoch}
	if s.ID == "" || s.Epoch < 0 || len(s.SecretKey) != len(identity.SecretKey) {
		return Identity{}, recordFormat().Damaged(key, errors.New("it lacks the id or the key, or has a negative epoch"))
	}
	copy(identity.SecretKey[:], s.SecretKey)
	return identity, nil
}

// Verify returns the error of a damaged record of an identity.
func Verify(key string, record []byte) error {
	_, err := decode(key, record)
	return err
}

// Store reads and creates the identity of a store.
type Store struct {
	kv   clientv3.KV
	keys store.Keys

	mu sync.Mutex
	// looked is the last result of HighWater.
	looked look
}

// look is a high-water mark of the store at a revision of etcd.
type look struct{ revision, highWater int64 }

// NewStore returns the identity of the store below an etcd prefix.
func NewStore(kv clientv3.KV, prefix string) *Store {
	return &Store{kv: kv, keys: store.NewKeys(prefix)}
}

// Read returns the identity, and whether the store has one. A store in a newer format is a
// *store.FormatError.
func (s *Store) Read(ctx context.Context) (Identity, bool, error) {
	value, err := store.Get(ctx, s.kv, s.keys.Identity())
	if err != nil || !value.Exists() {
		return Identity{}, false, err
	}
	identity, err := decode(s.keys.Identity(), value.Bytes)
	return identity, err == nil, err
}

// Create stores the identity if the store has none. It returns the stored identity, and whether it
// was created. Replicas that start together all get the same identity. Call Create only after Judge
// returned FirstStart, or after a user accepted an empty store.
func (s *Store) Create(ctx context.Context, identity Identity) (Identity, bool, error) {
	record, err := encode(identity)
	if err != nil {
		return Identity{}, false, fmt.Errorf("creating the identity of the store: %w", err)
	}
	// An unreadable record must not be written.
	if _, err := decode(s.keys.Identity(), record); err != nil {
		return Identity{}, false, fmt.Errorf("creating the identity of the store: %w", err)
	}
	_, created, err := store.Swap(ctx, s.kv, s.keys.Identity(), record, 0)
	if err != nil {
		return Identity{}, false, fmt.Errorf("creating the identity of the store: %w", err)
	}
	present, found, err := s.Read(ctx)
	if err != nil {
		return Identity{}, false, err
	}
	if !found {
		return Identity{}, false, errors.New("the identity of the store was deleted as soon as it was created")
	}
	return present, created, nil
}

// BeginEpoch begins a new epoch after the store was restored from a snapshot, and returns the new
// identity. Its epoch then differs from that of the witness in the host. The revisions of etcd
// alone could not show the restore.
func (s *Store) BeginEpoch(ctx context.Context) (Identity, error) {
	stored, err := store.Get(ctx, s.kv, s.keys.Identity())
	if err != nil {
		return Identity{}, fmt.Errorf("beginning an epoch: %w", err)
	}
	if !stored.Exists() {
		return Identity{}, errors.New("beginning an epoch: the store has no identity")
	}
	identity, err := decode(s.keys.Identity(), stored.Bytes)
	if err != nil {
		return Identity{}, fmt.Errorf("beginning an epoch: %w", err)
	}
	identity.Epoch++
	record, err := encode(identity)
	if err != nil {
		return Identity{}, fmt.Errorf("beginning an epoch: %w", err)
	}
	_, done, err := store.Swap(ctx, s.kv, s.keys.Identity(), record, stored.ModRevision)
	if err == nil && !done {
		err = errors.New("another process has changed the identity")
	}
	if err != nil {
		return Identity{}, fmt.Errorf("beginning an epoch: %w", err)
	}
	return identity, nil
}

// Raise raises the format of a store to Format, and returns its identity. It does not write a store
// that already has this format. Call it only if the store may be served: an older Penstock then
// refuses the store.
func (s *Store) Raise(ctx context.Context) (Identity, error) {
	for range raiseAttempts {
		stored, err := store.Get(ctx, s.kv, s.keys.Identity())
		if err != nil {
			return Identity{}, fmt.Errorf("raising the format of the store: %w", err)
		}
		if !stored.Exists() {
			return Identity{}, errors.New("raising the format of the store: it has no identity")
		}
		identity, err := decode(s.keys.Identity(), stored.Bytes)
		if err != nil {
			return Identity{}, fmt.Errorf("raising the format of the store: %w", err)
		}
		if identity.Format == Format {
			return identity, nil
		}
		identity.Format = Format
		record, err := encode(identity)
		if err != nil {
			return Identity{}, fmt.Errorf("raising the format of the store: %w", err)
		}
		_, done, err := store.Swap(ctx, s.kv, s.keys.Identity(), record, stored.ModRevision)
		if err != nil {
			return Identity{}, fmt.Errorf("raising the format of the store: %w", err)
		}
		if done {
			return identity, nil
		}
	}
	return Identity{}, errors.New("raising the format of the store: another process changed its identity meanwhile; try again")
}

// raiseAttempts bounds the attempts of Raise. Replicas that start together all try to raise the
// format, and only one succeeds.
const raiseAttempts = 5

// Observe reads the facts for Judge at one revision of etcd. A store in a newer format is no error;
// Judge handles it.
func (s *Store) Observe(ctx context.Context) (Observed, error) {
	response, err := s.kv.Txn(ctx).Then(clientv3.OpGet(s.keys.Identity()), s.newest()).Commit()
	if err != nil {
		return Observed{}, fmt.Errorf("observing the store: %w", err)
	}
	observed := Observed{Revision: response.Header.Revision}
	if newest := response.Responses[1].GetResponseRange().Kvs; len(newest) > 0 {
		observed.HighWater = newest[0].ModRevision
	}
	records := response.Responses[0].GetResponseRange().Kvs
	if len(records) == 0 {
		return observed, nil
	}
	observed.Found = true
	identity, err := decode(s.keys.Identity(), records[0].Value)
	var newer *store.FormatError
	switch {
	case errors.As(err, &newer):
		observed.Format = newer.Found
	case err != nil:
		return Observed{}, fmt.Errorf("observing the store: %w", err)
	default:
		observed.ID, observed.Format, observed.Epoch = identity.ID, identity.Format, identity.Epoch
	}
	return observed, nil
}

// HighWater returns the etcd revision of the newest record in the store, or 0 without records. It
// does not change while the store is idle: the API server's compactor writes outside the prefix. It
// can decrease when the newest record is deleted, so a Mark takes only a higher value.
//
// etcd 3.7 answers from its index in memory; older versions read all records. Both visit all keys.
// So HighWater asks etcd only if anything was written since the last call.
func (s *Store) HighWater(ctx context.Context) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	// Every answer contains the current revision of etcd.
	now, err := s.kv.Do(ctx, clientv3.OpGet(s.keys.Identity(), clientv3.WithKeysOnly()))
	if err != nil {
		return 0, fmt.Errorf("reading the revision of etcd: %w", err)
	}
	if now.Get().Header.Revision == s.looked.revision {
		return s.looked.highWater, nil
	}
	response, err := s.kv.Do(ctx, s.newest())
	if err != nil {
		return 0, fmt.Errorf("reading the newest revision of the store: %w", err)
	}
	found := look{revision: response.Get().Header.Revision}
	if kvs := response.Get().Kvs; len(kvs) > 0 {
		found.highWater = kvs[0].ModRevision
	}
	s.looked = found
	return found.highWater, nil
}

// newest returns a read of the key that was written last.
func (s *Store) newest() clientv3.Op {
	return clientv3.OpGet(s.keys.All(), clientv3.WithPrefix(), clientv3.WithKeysOnly(), clientv3.WithLimit(1),
		clientv3.WithSort(clientv3.SortByModRevision, clientv3.SortDescend))
}
