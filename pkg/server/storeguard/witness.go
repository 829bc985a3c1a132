package storeguard

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/klog/v2"

	"github.com/penstock-project/penstock/pkg/server/managedobject"
	"github.com/penstock-project/penstock/pkg/store/identity"
)

const (
	// WitnessName is the ConfigMap in which the host records our store.
	WitnessName = "penstock-store"

	// lookInterval is the interval of checks of etcd's revision. The checks send no requests to the
	// host.
	lookInterval = time.Second
	// The mark is raised when nothing was written for markQuiet, and every markInterval while
	// writes continue. So an idle Penstock sends the host no requests.
	markQuiet    = 2 * time.Second
	markInterval = time.Minute
	// lastMarkTimeout bounds the last raise of the mark at a stop.
	lastMarkTimeout = time.Second
)

// errUnreadable reports a witness that cannot be parsed.
var errUnreadable = errors.New("the witness of the store cannot be read")

// errChanged reports that another writer changed the witness or the store meanwhile.
var errChanged = errors.New("it was changed by another client meanwhile")

type witness struct {
	configMaps typedcorev1.ConfigMapInterface
	namespace  string
}

// read returns the mark, nil without a witness. A witness that cannot be parsed is an error: if it
// counted as missing, an empty store would be accepted.
func (w *witness) read(ctx context.Context) (*identity.Mark, error) {
	mark, _, err := w.look(ctx)
	return mark, err
}

// look returns the mark, and the object that contains it.
func (w *witness) look(ctx context.Context) (*identity.Mark, *corev1.ConfigMap, error) {
	found, err := w.configMaps.Get(ctx, WitnessName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("reading configmap %s/%s: %w", w.namespace, WitnessName, err)
	}
	mark, err := identity.DecodeMark(found.Data)
	if err != nil {
		return nil, nil, fmt.Errorf("configmap %s/%s: %w: %w", w.namespace, WitnessName, errUnreadable, err)
	}
	return &mark, found, nil
}

// create writes a first mark, and returns it. If a mark exists, it returns the existing mark.
func (w *witness) create(ctx context.Context, mark identity.Mark) (*identity.Mark, error) {
	_, err := w.configMaps.Create(ctx, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: WitnessName},
		Data:       mark.Encode(),
	}, metav1.CreateOptions{FieldManager: managedobject.FieldManager})
	switch {
	case apierrors.IsAlreadyExists(err):
		present, err := w.read(ctx)
		if err == nil && present == nil {
			err = fmt.Errorf("creating configmap %s/%s: %w", w.namespace, WitnessName, errChanged)
		}
		return present, err
	case apierrors.IsNotFound(err):
		return nil, fmt.Errorf("creating configmap %s in namespace %s: the namespace does not exist; create it, or let --register do so: %w", WitnessName, w.namespace, err)
	case err != nil:
		return nil, fmt.Errorf("creating configmap %s/%s: %w", w.namespace, WitnessName, err)
	}
	return &mark, nil
}

// replace writes a mark in place of the mark that was read.
func (w *witness) replace(ctx context.Context, old, next identity.Mark) error {
	found, err := w.configMaps.Get(ctx, WitnessName, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("reading configmap %s/%s: %w", w.namespace, WitnessName, err)
	}
	if present, err := identity.DecodeMark(found.Data); err != nil || present != old {
		return fmt.Errorf("replacing the mark in configmap %s/%s: %w", w.namespace, WitnessName, errors.Join(errChanged, err))
	}
	_, err = w.swap(ctx, found, next)
	return err
}

// swap writes a mark into the object as it was read, and returns the stored object.
func (w *witness) swap(ctx context.Context, found *corev1.ConfigMap, next identity.Mark) (*corev1.ConfigMap, error) {
	changed := found.DeepCopy()
	changed.Data = next.Encode()
	// The resourceVersion makes this a compare-and-swap.
	written, err := w.configMaps.Update(ctx, changed, metav1.UpdateOptions{FieldManager: managedobject.FieldManager})
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		err = errors.Join(errChanged, err)
	}
	if err != nil {
		return nil, fmt.Errorf("replacing the mark in configmap %s/%s: %w", w.namespace, WitnessName, err)
	}
	return written, nil
}

// MarkKeeper records the store's high-water mark in the witness.
type MarkKeeper struct {
	store   *identity.Store
	witness *witness
	mark    identity.Mark
	// written is the witness after this process's last write, or nil. An unchanged witness need not
	// be read before the next write.
	written *corev1.ConfigMap
}

func newMarkKeeper(store *identity.Store, witness *witness, mark identity.Mark) *MarkKeeper {
	return &MarkKeeper{store: store, witness: witness, mark: mark}
}

// Run raises the mark until ctx ends, and once more then: a copy of the store from a moment before
// must count as older.
func (k *MarkKeeper) Run(ctx context.Context) {
	log := klog.FromContext(ctx).WithName("identity")
	ticker := time.NewTicker(lookInterval)
	defer ticker.Stop()
	pace := pace{raised: k.mark.HighWater, at: time.Now()}
	for {
		select {
		case now := <-ticker.C:
			highWater, err := k.store.HighWater(ctx)
			if err == nil && pace.due(highWater, now) {
				err = k.raise(ctx, highWater)
				pace.done(highWater, now, err == nil)
			}
			if err != nil && ctx.Err() == nil && pace.complain(now) {
				log.Error(err, "The witness of the store could not be updated; trying again", "after", markInterval)
			}
		case <-ctx.Done():
			if err := k.raiseLast(ctx); err != nil {
				log.Error(err, "The witness of the store could not be updated at the end")
			}
			return
		}
	}
}

func (k *MarkKeeper) raiseLast(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastMarkTimeout)
	defer cancel()
	highWater, err := k.store.HighWater(ctx)
	if err != nil {
		return err
	}
	return k.raise(ctx, highWater)
}

type pace struct {
	// raised is the last raised mark. at is the time of the last attempt.
	raised int64
	at     time.Time
	// seen is the last seen revision of the store. since is the time at which it last changed.
	seen  int64
	since time.Time
	// failing is true after a failure. complained is the time of its last log line.
	failing    bool
	complained time.Time
}

// due is true when the store is ahead of the mark, and either nothing was written for markQuiet or
// the last attempt is markInterval ago. After a failure, only the latter counts.
func (p *pace) due(highWater int64, now time.Time) bool {
	if highWater != p.seen {
		p.seen, p.since = highWater, now
	}
	long := now.Sub(p.at) >= markInterval
	rests := now.Sub(p.since) >= markQuiet && !p.failing
	return highWater > p.raised && (rests || long)
}

func (p *pace) done(highWater int64, now time.Time, ok bool) {
	p.at, p.failing = now, !ok
	if ok {
		p.raised = highWater
	}
}

// complain is true when a failure should be logged, once every markInterval.
func (p *pace) complain(now time.Time) bool {
	if now.Sub(p.complained) < markInterval {
		return false
	}
	p.complained = now
	return true
}

// raise writes a higher mark, if the store is ahead of the witness.
func (k *MarkKeeper) raise(ctx context.Context, highWater int64) error {
	next, higher := k.mark.Raised(highWater)
	if !higher {
		return nil
	}
	// A write without a resourceVersion would not detect changes.
	if k.written != nil && k.written.ResourceVersion != "" {
		written, err := k.witness.swap(ctx, k.written, next)
		if err == nil {
			k.written, k.mark = written, next
			return nil
		}
		k.written = nil
		if !errors.Is(err, errChanged) {
			return err
		}
	}
	return k.raiseRead(ctx, highWater)
}

// raiseRead reads the witness first, because another writer may have changed it.
func (k *MarkKeeper) raiseRead(ctx context.Context, highWater int64) error {
	present, found, err := k.witness.look(ctx)
	if err != nil {
		return err
	}
	if present == nil {
		if _, err = k.witness.create(ctx, k.mark); err != nil {
			return err
		}
		if present, found, err = k.witness.look(ctx); err != nil {
			return err
		}
		if present == nil {
			return fmt.Errorf("reading configmap %s/%s: %w", k.witness.namespace, WitnessName, errChanged)
		}
	}
	if present.StoreID != k.mark.StoreID {
		return fmt.Errorf("configmap %s/%s names store %s, but this process serves store %s: another Penstock claims to be this cluster's store",
			k.witness.namespace, WitnessName, present.StoreID, k.mark.StoreID)
	}
	next, higher := present.Raised(highWater)
	if higher {
		if found, err = k.witness.swap(ctx, found, next); err != nil {
			return err
		}
	}
	k.written, k.mark = found, next
	return nil
}
