// Package storehealth knows the state of the etcd behind the API: whether it answers, takes writes,
// and has room on its volume. It frees room where it can. It answers requests at once, with the
// reason, when etcd cannot serve them. It knows nothing of the stored records.
package storehealth

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/klog/v2"
)

const (
	// spaceLook is the interval of checks whether etcd is full. A member answers a status request
	// from memory; listing alarms would write to its log.
	spaceLook = 2 * time.Second
	// spaceAgain is the pause after a status request without an answer.
	spaceAgain = time.Second
	// spaceTimeout bounds one question, spaceReclaim the making of room.
	spaceTimeout = 2 * time.Second
	spaceReclaim = 5 * time.Minute
	// spaceRetry is the shortest pause between two reclamations while etcd takes no writes.
	// spentRetry is the pause while etcd has reached its quota but still takes deletions.
	spaceRetry = time.Minute
	spentRetry = 15 * time.Second
	// tidyLeast is the least free space in etcd's file for a defragmentation, in bytes; half of the
	// file must be free, too. tidyMost bounds the used bytes, because etcd copies them and answers
	// no request meanwhile. tidyAgain is the shortest interval.
	tidyLeast = 32 << 20
	tidyMost  = 256 << 20
	tidyAgain = 10 * time.Minute

	// CheckName is the name of the readiness check that fails while the store is full. A kubelet's
	// probe should exclude it, because reads and discovery still work.
	CheckName = "store-space"
)

// Health knows whether etcd takes writes. A full etcd raises an alarm, and refuses every put until
// the alarm is disarmed. etcd never disarms the alarm itself, even when there is room again or a
// larger quota. The administrator of an external etcd disarms it. For the embedded etcd, Health
// compacts and defragments, and disarms the alarm if that was enough.
//
// To avoid the alarm, the embedded etcd refuses additions as soon as it reaches its quota (see
// Reserved). Deletions and the collector still work in the reserve, so the database can shrink.
type Health struct {
	client *clientv3.Client
	// ours is true for the embedded etcd.
	ours bool
	full atomic.Bool
	// space is that of the volume of ours, nil for an etcd elsewhere.
	space *space
	// quota is the database size at which the embedded etcd refuses additions; 0 for an
	// external etcd.
	quota int64
	// free is the number of free bytes below the quota. scarce is true while less than half of the
	// quota is free.
	free   atomic.Int64
	scarce atomic.Bool
	// answer is the answer to writes while etcd is full.
	answer func() *apierrors.StatusError
	// down says why ours does not run, nil for an etcd elsewhere.
	down func() error
	// reach has the answers of an external etcd to the same questions.
	reach reach
	// woken has an element when somebody was refused a write.
	woken chan struct{}
}

// Options are the dependencies of New.
type Options struct {
	// Client asks etcd.
	Client *clientv3.Client
	// Down returns the reason why the embedded etcd does not run, nil while it runs; nil for an
	// external etcd.
	Down func() error
	// Volume is the volume of the embedded etcd, nil for an external etcd.
	Volume Volume
	// Quota is the size of the embedded etcd's database, in bytes, at which nothing is added any
	// more. etcd itself runs with the quota Reserved(Quota). It is 0 for an external etcd.
	Quota int64
	// Full answers a write that etcd has no room for.
	Full func() *apierrors.StatusError
}

const (
	// reservePart is which part of its quota the embedded etcd has besides, for deletions,
	// and reserveLeast how many bytes at least: more than is written between two looks.
	reservePart  = 16
	reserveLeast = 32 << 20
)

// Reserved returns the quota for the embedded etcd itself. It exceeds the user's quota, so that
// deletions still work at the user's quota.
func Reserved(quota int64) int64 { return quota + max(quota/reservePart, reserveLeast) }

// New returns the health of a store whose state is not known yet. Run reads the state.
func New(o Options) *Health {
	h := &Health{client: o.Client, ours: o.Down != nil, down: o.Down, answer: o.Full, woken: make(chan struct{}, 1)}
	if o.Volume != nil {
		h.space, h.quota = &space{volume: o.Volume}, o.Quota
	}
	return h
}

// Unreachable is true while etcd does not answer: one elsewhere, or ours, which has ended.
func (h *Health) Unreachable() bool { return h.reach.unreachable() || h.ours && h.down() != nil }

// CutOff is true while an etcd elsewhere does not answer this replica.
func (h *Health) CutOff() bool { return h.reach.unreachable() }

// Full is true while etcd takes no writes.
func (h *Health) Full() bool { return h.full.Load() }

// OverQuota reports whether etcd takes no writes, or the embedded etcd takes no additions.
func (h *Health) OverQuota() bool { return h.Full() || h.space.overQuota() }

// Room returns the free bytes below the quota at the last check. scarce is true if less than half
// of the quota is free, and false without a known quota.
func (h *Health) Room() (free int64, scarce bool) { return h.free.Load(), h.scarce.Load() }

// noteRoom notes what Room says.
func (h *Health) noteRoom(status *pb.StatusResponse) {
	quota := cmp.Or(h.quota, status.DbSizeQuota)
	h.free.Store(max(0, quota-status.DbSizeInUse))
	h.scarce.Store(quota > 0 && status.DbSizeInUse > quota/2)
}

// Volume returns the free bytes on the volume of the embedded etcd, and the bytes that must stay
// free. ok is false if they are unknown.
func (h *Health) Volume() (free, reserve uint64, ok bool) { return h.space.sizes() }

// refused notes that a write was refused for want of space.
func (h *Health) refused() {
	h.full.Store(true)
	select {
	case h.woken <- struct{}{}:
	default:
	}
}

// Run monitors the store and reclaims space until ctx ends.
func (h *Health) Run(ctx context.Context) {
	var both sync.WaitGroup
	both.Go(func() { h.space.run(ctx) })
	both.Go(func() { h.run(ctx) })
	both.Wait()
}

func (h *Health) run(ctx context.Context) {
	log := klog.FromContext(ctx).WithName("store")
	ctx = klog.NewContext(ctx, log)
	// made is the time of the last reclamation, by whether etcd was full.
	made := map[bool]time.Time{}
	var tidied time.Time
	var revision int64
	for {
		status, err := h.look(ctx)
		if !h.ours && ctx.Err() == nil && h.reach.answered(err) {
			if h.reach.unreachable() {
				log.Error(err, "This replica is cut off from etcd: it sends clients elsewhere and does not lead")
			} else {
				log.Info("etcd answers this replica again")
			}
		}
		if err == nil && h.ours && (isFull(status) || h.spent(status)) && time.Since(made[isFull(status)]) > retryOf(isFull(status)) {
			made[isFull(status)] = time.Now()
			if status, err = h.reclaim(ctx, status); err != nil {
				log.Error(err, "No room could be made in the store; trying again", "after", spaceRetry)
			}
		}
		if err == nil {
			h.noteRoom(status)
		}
		if err == nil && h.space.setOverQuota(h.spent(status)) {
			log.Info("The store has reached its quota, or is below it again", "adds", !h.spent(status), "bytes", status.DbSize, "inUse", status.DbSizeInUse, "quota", h.quota)
		}
		// Nothing was written since the last look: nobody waits for anything.
		if err == nil && h.ours && status.Header.Revision == revision && worthTidying(status) && time.Since(tidied) > tidyAgain {
			tidied = time.Now()
			h.tidy(ctx, status)
		}
		if err == nil {
			revision = status.Header.Revision
		}
		// Without an answer nothing is known, and nothing new is said.
		if err == nil && h.full.Swap(isFull(status)) != isFull(status) {
			message := "The store takes writes again"
			if isFull(status) {
				message = "The store is full and takes no writes"
			}
			log.Info(message, "bytes", status.DbSize, "inUse", status.DbSizeInUse, "quota", status.DbSizeQuota)
		}
		wait := spaceLook
		if err != nil {
			wait = spaceAgain
		}
		select {
		case <-ctx.Done():
			return
		case <-h.woken:
		case <-time.After(wait):
		}
	}
}

// look asks any member that is connected.
func (h *Health) look(ctx context.Context) (*pb.StatusResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, spaceTimeout)
	defer cancel()
	status, err := Status(ctx, h.client)
	if err != nil {
		return nil, fmt.Errorf("asking etcd how full it is: %w", err)
	}
	return status, nil
}

// Status asks a connected member for its status.
func Status(ctx context.Context, client *clientv3.Client) (*pb.StatusResponse, error) {
	// The client's own way would make a connection for each question.
	return pb.NewMaintenanceClient(client.ActiveConnection()).Status(ctx, &pb.StatusRequest{})
}

// isFull reports whether any member has raised the alarm: then none takes writes.
func isFull(status *pb.StatusResponse) bool {
	return slices.ContainsFunc(status.Errors, func(text string) bool {
		// Alarms are among the errors, as text.
		return strings.Contains(text, pb.AlarmType_NOSPACE.String())
	})
}

// reclaim makes room, and lifts the alarm when there is enough. It returns how things
// are afterwards.
//
//  1. Forget the history of records. A client that watches or lists in pages from an earlier
//     version has to begin anew.
//  2. Give the space back to the file, whose size is what the quota counts, if that is
//     enough.
//  3. Lift the alarm.
func (h *Health) reclaim(ctx context.Context, before *pb.StatusResponse) (*pb.StatusResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, spaceReclaim)
	defer cancel()
	if _, err := h.client.Compact(ctx, before.Header.Revision, clientv3.WithCompactPhysical()); err != nil && !errors.Is(err, rpctypes.ErrCompacted) {
		return before, fmt.Errorf("compacting etcd: %w", err)
	}
	after, err := h.look(ctx)
	if err != nil {
		return before, err
	}
	if h.quota > 0 && !h.worthReclaiming(after) {
		return after, fmt.Errorf("the store has %d bytes in use, and its quota is %d: delete revisions, or start penstock with a larger --data-quota", after.DbSizeInUse, h.quota)
	}
	if _, err := h.client.Defragment(ctx, h.client.Endpoints()[0]); err != nil {
		return before, fmt.Errorf("defragmenting etcd: %w", err)
	}
	if after, err = h.look(ctx); err != nil {
		return before, err
	}
	klog.FromContext(ctx).Info("Made room in the store", "bytes", after.DbSize, "before", before.DbSize, "quota", after.DbSizeQuota)
	if !h.roomy(after) {
		return after, fmt.Errorf("the store has %d bytes, all of them in use, and its quota is %d: start penstock with a larger --data-quota", after.DbSize, after.DbSizeQuota)
	}
	if !isFull(after) {
		return after, nil
	}
	if _, err := h.client.AlarmDisarm(ctx, &clientv3.AlarmMember{}); err != nil {
		return after, fmt.Errorf("lifting etcd's alarm: %w", err)
	}
	return h.look(ctx)
}

// spent reports whether our database is as large as its quota.
func (h *Health) spent(status *pb.StatusResponse) bool {
	return h.quota > 0 && status.DbSize >= h.quota
}

// retryOf returns the shortest pause between two reclamations.
func retryOf(full bool) time.Duration {
	if full {
		return spaceRetry
	}
	return spentRetry
}

// worthTidying reports whether a defragmentation gives much back, and takes little time.
func worthTidying(status *pb.StatusResponse) bool {
	free := status.DbSize - status.DbSizeInUse
	return free >= max(tidyLeast, status.DbSize/2) && status.DbSizeInUse <= tidyMost
}

// tidy gives free pages back to the file.
func (h *Health) tidy(ctx context.Context, before *pb.StatusResponse) {
	ctx, cancel := context.WithTimeout(ctx, spaceReclaim)
	defer cancel()
	log, begin := klog.FromContext(ctx), time.Now()
	if _, err := h.client.Defragment(ctx, h.client.Endpoints()[0]); err != nil {
		log.Info("The file of the store could not be made smaller", "reason", err.Error())
		return
	}
	log.Info("Gave free pages of the store back", "before", before.DbSize, "inUse", before.DbSizeInUse, "took", time.Since(begin).Round(time.Millisecond))
}

// worthReclaiming reports whether giving free pages back is enough for what is to be reached: a
// tenth of the quota free, or, while etcd has the alarm, so much of the reserve that deletions go
// on. They make more room then.
func (h *Health) worthReclaiming(status *pb.StatusResponse) bool {
	return status.DbSizeInUse < h.quota/10*9 || isFull(status) && status.DbSizeInUse < h.deletable(status)
}

// roomy reports whether it is worth while to take writes again: a tenth is free, or, of ours, there
// is room for deletions.
func (h *Health) roomy(status *pb.StatusResponse) bool {
	return status.DbSize < status.DbSizeQuota/10*9 || h.quota > 0 && status.DbSize < h.deletable(status)
}

// deletable is the size in bytes up to which deletions go on: half of the reserve is free.
func (h *Health) deletable(status *pb.StatusResponse) int64 {
	return h.quota + (status.DbSizeQuota-h.quota)/2
}

// Check is for /readyz.
func (h *Health) Check() healthz.HealthChecker {
	return healthz.NamedCheck(CheckName, func(*http.Request) error {
		if h.full.Load() {
			return errors.New("etcd has reached its quota and takes no writes")
		}
		if refused := h.space.refuse(0); refused != nil {
			return refused
		}
		return nil
	})
}
