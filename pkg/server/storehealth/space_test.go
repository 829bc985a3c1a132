package storehealth

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/storage"

	"github.com/penstock-project/penstock/pkg/apis/hco"
	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/server/storehealth/volume"
)

const testMiB = 1 << 20

// roomOf returns the space of a volume of 1000 MiB with mib MiB free.
func roomOf(mib uint64) *space {
	return &space{volume: usages{volume.Usage{Free: mib * testMiB, Size: 1000 * testMiB}}}
}

type usages struct{ volume.Usage }

func (u usages) Dir() string { return "/data" }

func (u usages) Balance(volume.Usage) (volume.Step, error) { return volume.Kept, nil }

func (u usages) Look() (volume.Usage, error) {
	if u.Size == 0 {
		return volume.Usage{}, errors.New("nobody knows")
	}
	return u.Usage, nil
}

func TestRefuse(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		space  *space
		bytes  int64
		says   []string
	}{
		"Room":      {reason: "the reserve is a twentieth", space: roomOf(50)},
		"None":      {reason: "it is not there", space: roomOf(49), says: []string{"49Mi of 1000Mi are free in /data", "50Mi are needed"}},
		"NoFiles":   {reason: "etcd makes files, too", space: &space{volume: usages{volume.Usage{Free: 900 * testMiB, Size: 1000 * testMiB, Files: 1000, FreeFiles: 15}}}, says: []string{"15 of 1000 files (inodes) are free in /data", "16 are needed"}},
		"Files":     {reason: "some are left", space: &space{volume: usages{volume.Usage{Free: 900 * testMiB, Size: 1000 * testMiB, Files: 1000, FreeFiles: 16}}}},
		"Large":     {reason: "what is written is in the log and in the database", space: roomOf(60), bytes: 6 * testMiB, says: []string{"60Mi of 1000Mi are free", "62Mi are needed"}},
		"Fits":      {reason: "with what it needs", space: roomOf(62), bytes: 6 * testMiB},
		"NoLength":  {reason: "a body of unknown length", space: roomOf(50), bytes: -1},
		"Unknown":   {reason: "a question without an answer stops nobody", space: &space{volume: usages{}}},
		"Elsewhere": {reason: "an etcd that others run"},
	} {
		t.Run(name, func(t *testing.T) {
			refused := tc.space.refuse(tc.bytes)
			if (refused == nil) != (tc.says == nil) {
				t.Fatalf("%s: %v", tc.reason, refused)
			}
			for _, text := range tc.says {
				if refused.ErrStatus.Code != http.StatusInsufficientStorage || !strings.Contains(refused.Error(), text) {
					t.Errorf("%s: %v, want 507 with %q", tc.reason, refused, text)
				}
			}
		})
	}
}

// TestOverQuota: a database that has reached its quota gets no additions, even with room on the
// volume. Writes that free space still work.
func TestOverQuota(t *testing.T) {
	room := roomOf(900)
	if !room.setOverQuota(true) || room.setOverQuota(true) {
		t.Error("what changed is not told once")
	}
	refused := room.refuse(0)
	if refused == nil || refused.ErrStatus.Code != http.StatusInsufficientStorage || !strings.Contains(refused.Error(), "--data-quota") {
		t.Errorf("something may be added: %v", refused)
	}
	room.setOverQuota(false)
	if refused := room.refuse(0); refused != nil {
		t.Errorf("there is room again: %v", refused)
	}
	var elsewhere *space
	if elsewhere.setOverQuota(true) || elsewhere.overQuota() {
		t.Error("an etcd elsewhere has its own quota")
	}
}

// TestWorthTidying: a defragmentation frees much space in little time.
func TestWorthTidying(t *testing.T) {
	for _, tc := range []struct {
		reason     string
		size, used int64
		want       bool
	}{
		{"nothing is free", 100, 100, false},
		{"half is free, and little", 60, 30, false},
		{"half is free", 64, 32, true},
		{"less than half is free", 300, 160, false},
		{"what is in use takes long", 1000, 257, false},
		{"what is in use takes a moment", 1000, 256, true},
	} {
		if got := worthTidying(&pb.StatusResponse{DbSize: tc.size * testMiB, DbSizeInUse: tc.used * testMiB}); got != tc.want {
			t.Errorf("%s: %t", tc.reason, got)
		}
	}
}

// TestReclaim: an alarm is disarmed if deletions work afterwards, even with more bytes in use than
// the user's quota. Without an alarm, the file is copied only if that brings it well below the
// quota.
func TestReclaim(t *testing.T) {
	h := &Health{quota: 1000 * testMiB}
	reserved := Reserved(h.quota)
	for _, tc := range []struct {
		reason      string
		used, size  int64
		alarm       bool
		worth, room bool
	}{
		{"little is in use", 500, 500, false, true, true},
		{"nearly all of the quota is in use, which deletions change by themselves", 950, 1000, false, false, true},
		{"with the alarm nobody can delete, so it is lifted for that", 950, 950, true, true, true},
		{"more than the quota is in use, and half of the reserve is free", 1030, 1030, true, true, true},
		{"hardly any of the reserve is free: it would be back at once", 1035, 1035, true, false, false},
		{"all of it is in use", 1062, 1062, true, false, false},
	} {
		status := &pb.StatusResponse{DbSize: tc.size * testMiB, DbSizeInUse: tc.used * testMiB, DbSizeQuota: reserved}
		if tc.alarm {
			status.Errors = []string{"memberID:1 alarm:NOSPACE "}
		}
		if worth, room := h.worthReclaiming(status), h.roomy(status); worth != tc.worth || room != tc.room {
			t.Errorf("%s: worth reclaiming %t, want %t; roomy %t, want %t", tc.reason, worth, tc.worth, room, tc.room)
		}
	}
}

// TestGuarded: without room an update is refused unless it frees space.
func TestGuarded(t *testing.T) {
	revision := func(state olm.LifecycleState) *olm.ClusterExtensionRevision {
		return &olm.ClusterExtensionRevision{Spec: olm.ClusterExtensionRevisionSpec{LifecycleState: state}}
	}
	deleted := revision(olm.LifecycleStateActive)
	deleted.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	active, archived := revision(olm.LifecycleStateActive), revision(olm.LifecycleStateArchived)
	failure := errors.New("refused for another reason")
	answered := func(annotations map[string]string, generation int64) *olm.ClusterExtensionRevision {
		r := revision(olm.LifecycleStateArchived)
		r.Annotations, r.Generation = annotations, generation
		return r
	}
	answer := map[string]string{v1alpha1.AcknowledgeDeletionAnnotation: "25-0123456789"}
	unarchived := revision(olm.LifecycleStateActive)
	unarchived.Annotations = answer
	for name, tc := range map[string]struct {
		reason  string
		who     user.Info
		was, is runtime.Object
		err     error
		refused bool
	}{
		"Change":        {reason: "it takes room", who: &user.DefaultInfo{Name: "alice"}, was: active, is: active, refused: true},
		"Archive":       {reason: "it leads to room", who: &user.DefaultInfo{Name: "alice"}, was: active, is: archived},
		"Archived":      {reason: "it has led to room already", who: &user.DefaultInfo{Name: "alice"}, was: archived, is: archived, refused: true},
		"Delete":        {reason: "so does this", who: &user.DefaultInfo{Name: "alice"}, was: active, is: deleted},
		"Answer":        {reason: "objects go by it", who: &user.DefaultInfo{Name: "alice"}, was: archived, is: answered(answer, 0)},
		"AnswerCRD":     {reason: "so they do by this", who: &user.DefaultInfo{Name: "alice"}, was: archived, is: answered(map[string]string{v1alpha1.AllowCRDDeletionAnnotation: "a.example.com"}, 0)},
		"SameAnswer":    {reason: "nothing goes by what was said before", who: &user.DefaultInfo{Name: "alice"}, was: answered(answer, 0), is: answered(answer, 0), refused: true},
		"NoAnswer":      {reason: "taking it back makes no room", who: &user.DefaultInfo{Name: "alice"}, was: answered(answer, 0), is: archived, refused: true},
		"AnswerAndMore": {reason: "the rest takes room", who: &user.DefaultInfo{Name: "alice"}, was: archived, is: answered(map[string]string{v1alpha1.AcknowledgeDeletionAnnotation: "1-0", "mine": "x"}, 0), refused: true},
		"AnswerAndSpec": {reason: "the rest takes room", who: &user.DefaultInfo{Name: "alice"}, was: archived, is: answered(answer, 1), refused: true},
		"LongAnswer":    {reason: "it takes room", who: &user.DefaultInfo{Name: "alice"}, was: archived, is: answered(map[string]string{v1alpha1.AllowCRDDeletionAnnotation: strings.Repeat("x", 5000)}, 0), refused: true},
		"AnswerActive":  {reason: "an active revision is not asked about", who: &user.DefaultInfo{Name: "alice"}, was: active, is: unarchived, refused: true},
		"Plan":          {reason: "other kinds too", who: &user.DefaultInfo{Name: "alice"}, was: &hco.ConfigurationPlan{}, is: &hco.ConfigurationPlan{}, refused: true},
		"WithinProcess": {reason: "Penstock's own writes are what deletions need", was: active, is: active},
		"Failure":       {reason: "what fails anyway says why", who: &user.DefaultInfo{Name: "alice"}, was: active, err: failure},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			if tc.who != nil {
				ctx = request.WithUser(ctx, tc.who)
			}
			update := roomOf(10).guarded(ctx, func(runtime.Object, storage.ResponseMeta) (runtime.Object, *uint64, error) { return tc.is, nil, tc.err })
			_, _, err := update(tc.was, storage.ResponseMeta{})
			if refused := err != nil && strings.Contains(err.Error(), "too little room"); refused != tc.refused || tc.err != nil && !errors.Is(err, tc.err) {
				t.Errorf("%s: %v", tc.reason, err)
			}
		})
	}
}
