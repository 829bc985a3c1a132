package storehealth

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/klog/v2"

	admissionrequest "github.com/penstock-project/penstock/pkg/admission/request"
	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/server/storehealth/volume"
)

// volumeLook is the interval of checks of the data directory's volume for the ballast. No event
// reports that another process fills the volume.
const volumeLook = 2 * time.Second

// bytesPerByte is the number of bytes on the volume for each byte of a request: in the write-ahead
// log and in the database.
const bytesPerByte = 2

// space knows whether there is room on the volume of the embedded etcd. A nil space, of an external
// etcd, always has room.
type space struct {
	volume Volume
	over   atomic.Bool
}

// overQuota reports whether the database is as large as its quota.
func (s *space) overQuota() bool { return s != nil && s.over.Load() }

// setOverQuota stores the value, and reports whether it changed to true.
func (s *space) setOverQuota(over bool) bool { return s != nil && s.over.Swap(over) != over }

// Volume measures the volume of a directory. *volume.Volume implements it.
type Volume interface {
	Dir() string
	Look() (volume.Usage, error)
	Balance(volume.Usage) (volume.Step, error)
}

var _ Volume = &volume.Volume{}

// refuse returns the reason why some bytes cannot be added to the store, or nil. If the free space
// is unknown, it admits them: etcd refuses what it cannot store, and an etcd that ends is
// restarted.
func (s *space) refuse(bytes int64) *apierrors.StatusError {
	if s == nil {
		return nil
	}
	if s.overQuota() {
		return noQuota()
	}
	usage, err := s.volume.Look()
	if err != nil {
		return nil
	}
	needed := usage.Reserve() + bytesPerByte*uint64(max(0, bytes))
	switch {
	case usage.LacksFiles():
		return s.tooLittle(fmt.Sprintf("%d of %d files (inodes) are free", usage.FreeFiles, usage.Files), fmt.Sprint(volume.LeastFiles))
	case usage.Free < needed:
		return s.tooLittle(fmt.Sprintf("%s of %s are free", quantity(usage.Free), quantity(usage.Size)), quantity(needed))
	default:
		return nil
	}
}

// tooLittle is the answer to an addition without enough space.
func (s *space) tooLittle(free, needed string) *apierrors.StatusError {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure,
		Code:   http.StatusInsufficientStorage,
		Reason: "InsufficientStorage",
		Message: fmt.Sprintf("the volume of the store has too little room: %s in %s, and %s are needed before anything is added. "+
			"Deleting, archiving and acknowledging deletions still work, and installed objects are kept as they are. What to do: make room on that volume, or enlarge it; "+
			"Penstock notices it at once and continues by itself", free, s.volume.Dir(), needed),
	}}
}

// noQuota is the answer to an addition to a database that has reached its quota.
func noQuota() *apierrors.StatusError {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure,
		Code:   http.StatusInsufficientStorage,
		Reason: "InsufficientStorage",
		Message: "the store is as large as its quota, and nothing is added to it. Deleting and archiving still work, and installed objects are kept as they are. " +
			"What to do: delete revisions that nobody needs, which frees their room within two minutes, or give the store a larger quota (--data-quota)",
	}}
}

func quantity(bytes uint64) string {
	const mib = 1 << 20
	return resource.NewQuantity(int64(bytes/mib*mib), resource.BinarySI).String()
}

// sizes returns the free bytes and the bytes that must stay free; ok is false if they are unknown.
func (s *space) sizes() (free, reserve uint64, ok bool) {
	if s == nil {
		return 0, 0, false
	}
	usage, err := s.volume.Look()
	return usage.Free, usage.Reserve(), err == nil
}

// low reports whether writes are refused for lack of space on the volume.
func (s *space) low() bool { return !s.overQuota() && s.refuse(0) != nil }

func (s *space) run(ctx context.Context) {
	if s == nil {
		return
	}
	log := klog.FromContext(ctx).WithName("store")
	ticker := time.NewTicker(volumeLook)
	defer ticker.Stop()
	for low := false; ; {
		if usage, err := s.volume.Look(); err == nil {
			step, err := s.volume.Balance(usage)
			switch {
			case err != nil:
				log.V(2).Info("The ballast stays as it is", "reason", err.Error())
			case step == volume.Released:
				log.Info("The volume of the store has hardly any room; released the room that was reserved for deletions", "free", quantity(usage.Free))
			}
			if was := low; was != s.low() {
				low = !was
				log.Info("Room on the volume of the store", "enough", !low, "free", quantity(usage.Free), "needed", quantity(usage.Reserve()), "dir", s.volume.Dir())
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// guarded refuses an update while there is too little space, unless the update helps to free space.
// Such updates are: updates of deleted objects, the archiving of a revision, and a user's answer
// that lets objects of an archived revision be deleted. Penstock's own writes, of status and
// finalizers, pass: they are small, and deletions need them.
func (s *space) guarded(ctx context.Context, update storage.UpdateFunc) storage.UpdateFunc {
	if s == nil {
		return update
	}
	user, _ := request.UserFrom(ctx)
	if user == nil || admissionrequest.IsInternal(ctx, user) {
		return update
	}
	return func(input runtime.Object, response storage.ResponseMeta) (runtime.Object, *uint64, error) {
		// The result of the update may be the input itself.
		was := stateOf(input)
		output, ttl, err := update(input, response)
		if err != nil || goes(output) || archived(output) && !was.archived || was.answeredBy(output) {
			return output, ttl, err
		}
		if refused := s.refuse(0); refused != nil {
			return nil, nil, refused
		}
		return output, ttl, nil
	}
}

// goes reports whether an object is being deleted.
func goes(object runtime.Object) bool {
	accessor, err := meta.Accessor(object)
	return err == nil && accessor.GetDeletionTimestamp() != nil
}

// longestAnswer bounds, in bytes, a user's answer that is stored without space.
const longestAnswer = 4096

type state struct {
	archived    bool
	generation  int64
	annotations map[string]string
}

// stateOf reads the state of an object, and keeps no reference to the object.
func stateOf(object runtime.Object) state {
	accessor, err := meta.Accessor(object)
	if err != nil || !archived(object) {
		return state{}
	}
	return state{archived: true, generation: accessor.GetGeneration(), annotations: maps.Clone(accessor.GetAnnotations())}
}

// answeredBy reports whether an update of an archived revision only answers the question in its
// status about deleting objects.
func (s state) answeredBy(object runtime.Object) bool {
	accessor, err := meta.Accessor(object)
	if err != nil || !s.archived || accessor.GetGeneration() != s.generation {
		return false
	}
	now, answered := maps.Clone(accessor.GetAnnotations()), false
	for _, key := range []string{v1alpha1.AcknowledgeDeletionAnnotation, v1alpha1.AllowCRDDeletionAnnotation} {
		if answer := now[key]; answer != "" && answer != s.annotations[key] && len(answer) <= longestAnswer {
			answered = true
			delete(now, key)
			delete(s.annotations, key)
		}
	}
	return answered && maps.Equal(now, s.annotations)
}

func archived(object runtime.Object) bool {
	revision, ok := object.(*olm.ClusterExtensionRevision)
	return ok && revision.Spec.LifecycleState == olm.LifecycleStateArchived
}
