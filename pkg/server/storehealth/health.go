// Package storehealth monitors the etcd behind the API: whether it answers, takes writes, and has
// space on its volume. It frees space where it can. While etcd cannot serve requests, it answers
// them at once with the reason. It does not read the stored records.
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
	// spaceTimeout bounds one status request, spaceReclaim one reclamation.
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
	ours   bool
	full   atomic.Bool
	// space measures the volume of the embedded etcd; nil for an external etcd.
	space *space
	// quota is the database size at which the embedded etcd refuses additions; 0 for an
	// external etcd.
	quota int64
	// free is the number of free bytes below the quota. scarce is true while less than half of the
	// quota is free.
	free   atomic.Int64
	scarce atomic.Bool
	answer func() *apierrors.StatusError
	// down returns the reason why the embedded etcd does not run; nil for an external etcd.
	down func() error
	// reach records whether an external etcd answers the same requests.
	reach reach
	// woken has an element after a write was refused.
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
	// Quota is the database size, in bytes, at which the embedded etcd takes no more additions.
	// etcd itself runs with the quota Reserved(Quota). It is 0 for an external etcd.
	Quota int64
	// Full returns the answer to a write that etcd has no space for.
	Full func() *apierrors.StatusError
}

const (
	// reservePart is the divisor for the reserve above the quota, which is for deletions.
	// reserveLeast is its least size in bytes: more than is written between two checks.
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

// Unreachable is true while an external etcd does not answer, or the embedded etcd does not run.
func (h *Health) Unreachable() bool { return h.reach.unreachable() || h.ours && h.down() != nil }

// CutOff is true while an external etcd does not answer this replica.
func (h *Health) CutOff() bool { return h.reach.unreachable() }

// Full is true while etcd takes no writes.
func (h *Health) Full() bool { return h.full.Load() }

// OverQuota reports whether etcd takes no writes, or the embedded etcd takes no additions.
func (h *Health) OverQuota() bool { return h.Full() || h.space.overQuota() }

// Room returns the free bytes below the quota at the last check. scarce is true if less than half
// of the quota is free, and false without a known quota.
func (h *Health) Room() (free int64, scarce bool) { return h.free.Load(), h.scarce.Load() }

func (h *Health) noteRoom(status *pb.StatusResponse) {
	quota := cmp.Or(h.quota, status.DbSizeQuota)
	h.free.Store(max(0, quota-status.DbSizeInUse))
	h.scarce.Store(quota > 0 && status.DbSizeInUse > quota/2)
}

// Volume returns the free bytes on the volume of the embedded etcd, and the bytes that must stay
// free. ok is false if they are unknown.
func (h *Health) Volume() (free, reserve uint64, ok bool) { return h.space.sizes() }

// refused records that a write was refused for lack of space.
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
	// made holds the times of the last reclamations: while etcd was full, and while it was not.
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
		// Nothing was written since the last check, so no request waits.
		if err == nil && h.ours && status.Header.Revision == revision && worthTidying(status) && time.Since(tidied) > tidyAgain {
			tidied = time.Now()
			h.tidy(ctx, status)
		}
		if err == nil {
			revision = status.Header.Revision
		}
		// Without an answer the state is unknown, and nothing is logged.
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
	// The client's own method would open a connection for each request.
	return pb.NewMaintenanceClient(client.ActiveConnection()).Status(ctx, &pb.StatusRequest{})
}

// isFull reports whether any member has raised the alarm: then no member takes writes.
func isFull(status *pb.StatusResponse) bool {
	return slices.ContainsFunc(status.Errors, func(text string) bool {
		// The status contains alarms as text, among the errors.
		return strings.Contains(text, pb.AlarmType_NOSPACE.String())
	})
}

// reclaim frees space, and disarms the alarm when there is enough. It returns the status
// afterwards.
//
//  1. Compact the history of records. A client that watches or lists in pages from an earlier
//     version has to start over.
//  2. Return the free pages to the file system if that is enough: the quota counts the file's
//     size.
//  3. Disarm the alarm.
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

// spent reports whether the embedded etcd's database has reached its quota.
func (h *Health) spent(status *pb.StatusResponse) bool {
	return h.quota > 0 && status.DbSize >= h.quota
}

func retryOf(full bool) time.Duration {
	if full {
		return spaceRetry
	}
	return spentRetry
}

// worthTidying reports whether a defragmentation frees much space in little time.
func worthTidying(status *pb.StatusResponse) bool {
	free := status.DbSize - status.DbSizeInUse
	return free >= max(tidyLeast, status.DbSize/2) && status.DbSizeInUse <= tidyMost
}

// tidy defragments: it returns free pages to the file system.
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

// worthReclaiming reports whether a defragmentation would free enough: a tenth of the quota, or,
// during an alarm, so much of the reserve that deletions work. Deletions then free more space.
func (h *Health) worthReclaiming(status *pb.StatusResponse) bool {
	return status.DbSizeInUse < h.quota/10*9 || isFull(status) && status.DbSizeInUse < h.deletable(status)
}

// roomy reports whether writes should be admitted again: a tenth is free, or the embedded etcd has
// space for deletions.
func (h *Health) roomy(status *pb.StatusResponse) bool {
	return status.DbSize < status.DbSizeQuota/10*9 || h.quota > 0 && status.DbSize < h.deletable(status)
}

// deletable returns the size in bytes up to which deletions work: half of the reserve is free.
func (h *Health) deletable(status *pb.StatusResponse) int64 {
	return h.quota + (status.DbSizeQuota-h.quota)/2
}

// Check returns the check for /readyz.
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
