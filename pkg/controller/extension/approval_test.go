package extension

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/penstock-project/penstock/pkg/apis/olm/approval"
	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/extension"
	"github.com/penstock-project/penstock/pkg/rollout"
)

const (
	waitsForBob   = "1 Active 1.0.0 alice, 2 Paused 1.1.0 penstock"
	approvedByBob = "1 Active 1.0.0 alice, 2 Active 1.1.0 bob"
)

// manual returns a plane with lamp-1 installed, and lamp-2 waiting for approval.
func manual(t *testing.T) *plane {
	p := automatic(t)
	p.set(extension.ApprovalAnnotation, extension.ApprovalManual)
	p.publish("1.0.0", "1.1.0")
	p.awaitRevisions(waitsForBob)
	return p
}

// approve lets bob approve lamp-2 for later, as the API records it.
func (p *plane) approve(change func(*approval.Scheduled)) {
	p.Helper()
	given := &approval.Scheduled{User: "bob", Groups: []string{"ops"}, At: p.clock.Now(), NotBefore: p.clock.Now().Add(time.Hour), Digest: "d"}
	if change != nil {
		change(given)
	}
	p.change("lamp-2", func(r *olmv1alpha1.ClusterExtensionRevision) {
		given.Generation += r.Generation
		value, err := given.Encode()
		if err != nil {
			p.Fatal(err)
		}
		r.Annotations[olmv1alpha1.ScheduledApprovalAnnotation] = value
	})
}

// TestApprovedForLater: an approval takes effect as the approver, once its time has come and a
// window is open.
func TestApprovedForLater(t *testing.T) {
	p := manual(t)
	p.windows.set(always)
	p.approve(nil)
	p.await("the status says it", func() bool {
		return p.condition("UpgradeAvailable") == "True/WaitingForWindow" && strings.Contains(p.message("UpgradeAvailable"), "is approved by bob and begins when a maintenance window lets it, not before")
	})
	p.clock.Step(time.Hour)
	p.settle()
	p.await("it says which window", func() bool { return strings.Contains(p.message("Ready"), "MaintenanceWindow nights is closed") })
	if shown := p.shown(); shown != waitsForBob {
		t.Errorf("there is %s", shown)
	}
	p.windows.set(nil)
	p.awaitRevisions(approvedByBob)
}

// TestApprovedNotBefore: an approval waits for its time, also if windows are deleted or open.
func TestApprovedNotBefore(t *testing.T) {
	p := manual(t)
	p.windows.set(always)
	p.approve(nil)
	p.settle()
	p.windows.set(nil)
	p.settle()
	if shown := p.shown(); shown != waitsForBob {
		t.Fatalf("there is %s", shown)
	}
	p.clock.Step(time.Hour)
	p.awaitRevisions(approvedByBob)
}

// TestApprovalSurvives: an approval survives the death of the process. A process whose approval
// succeeded does not approve again.
func TestApprovalSurvives(t *testing.T) {
	p := manual(t)
	p.windows.set(always)
	p.approve(func(s *approval.Scheduled) { s.NotBefore = p.clock.Now() })
	p.settle()
	p.mu.Lock()
	running := p.running
	p.mu.Unlock()
	running.queue.ShutDown()
	p.windows.set(nil)
	p.process()
	p.awaitRevisions(approvedByBob)
}

// TestApprovalEnds: an approval that cannot take effect ends, and the proposal waits for a user.
// Later changes of rights or of the clock do not revive the approval.
func TestApprovalEnds(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		given  func(*plane, *approval.Scheduled)
		before func(*plane)
		why    string
	}{
		"Denied": {"bob lost a right", nil, func(p *plane) { p.deny("bob", true) }, "bob cannot patch configmaps lamp"},
		"Late": {"no window was open for a week", func(p *plane, s *approval.Scheduled) {
			s.NotBefore = p.clock.Now().Add(-approval.Lifetime - time.Second)
		}, nil, "no window was open in the 7 days after"},
		"Changed": {"the spec was changed", func(_ *plane, s *approval.Scheduled) { s.Generation-- }, nil, "the spec of the proposal is another one since then"},
		"Future":  {"the clock was set back", func(p *plane, s *approval.Scheduled) { s.At = p.clock.Now().Add(time.Hour) }, nil, "the clock of Penstock is behind that"},
	} {
		t.Run(name, func(t *testing.T) {
			p := manual(t)
			if tc.before != nil {
				tc.before(p)
			}
			p.approve(func(s *approval.Scheduled) {
				s.NotBefore = p.clock.Now()
				if tc.given != nil {
					tc.given(p, s)
				}
			})
			p.await(tc.reason, func() bool {
				return p.condition("UpgradeAvailable") == "True/Proposed" && strings.Contains(p.message("UpgradeAvailable"), "waits for approval again: the approval by bob had no effect: ") && strings.Contains(p.message("UpgradeAvailable"), tc.why)
			})
			p.deny("bob", false)
			p.settle()
			if shown := p.shown(); shown != waitsForBob {
				t.Errorf("there is %s", shown)
			}
		})
	}
}

type freezes struct {
	atomic.Pointer[rollout.Freeze]
	unknown atomic.Bool
}

func (f *freezes) Frozen() (*rollout.Freeze, error) {
	if f.unknown.Load() {
		return nil, errors.New("there is no answer yet")
	}
	return f.Load(), nil
}

// TestApprovalOfFrozen: an approval does not take effect during a freeze. Otherwise the rollout
// would begin at the end of the freeze, outside of any window.
func TestApprovalOfFrozen(t *testing.T) {
	p := manual(t)
	p.freezes.Store(&rollout.Freeze{Author: "carol", Reason: "the year ends"})
	p.approve(func(s *approval.Scheduled) { s.NotBefore = p.clock.Now() })
	p.await("the status says it", func() bool {
		return p.condition("UpgradeAvailable") == "True/WaitingForWindow" && strings.Contains(p.message("UpgradeAvailable"), "frozen by carol: the year ends")
	})
	if shown := p.shown(); shown != waitsForBob {
		t.Errorf("there is %s", shown)
	}
	p.freezes.Store(nil)
	p.set(extension.OnFailureAnnotation, "Rollback")
	p.awaitRevisions(approvedByBob)
}

// TestApprovalOfUpgradeable: if the operator reports after the approval that it is not upgradeable,
// the approval waits.
func TestApprovalOfUpgradeable(t *testing.T) {
	p := manual(t)
	p.operatorSays("False")
	p.approve(func(s *approval.Scheduled) { s.NotBefore = p.clock.Now() })
	p.await("the status says it", func() bool {
		return p.condition("UpgradeAvailable") == "True/WaitingForWindow" && strings.Contains(p.message("UpgradeAvailable"), "Migrating")
	})
	if shown := p.shown(); shown != waitsForBob {
		t.Errorf("there is %s", shown)
	}
	p.operatorSays("True")
	p.clock.Step(approvalLook)
	p.awaitRevisions(approvedByBob)
}

// TestApprovalOfUnknownFreeze: an approval waits while it is unknown whether the cluster is frozen.
func TestApprovalOfUnknownFreeze(t *testing.T) {
	p := manual(t)
	p.freezes.unknown.Store(true)
	p.approve(func(s *approval.Scheduled) { s.NotBefore = p.clock.Now() })
	p.await("the status says it", func() bool {
		return p.condition("UpgradeAvailable") == "True/WaitingForWindow" && strings.Contains(p.message("Ready"), "there is no answer yet")
	})
	if ready := p.condition("Ready"); !strings.HasPrefix(ready, "True/") {
		t.Errorf("Ready is %s", ready)
	}
	if shown := p.shown(); shown != waitsForBob {
		t.Errorf("there is %s", shown)
	}
	p.freezes.unknown.Store(false)
	p.awaitRevisions(approvedByBob)
}

// TestApprovalOfReplaced: an approval ends with its proposal. The next proposal waits for a user.
func TestApprovalOfReplaced(t *testing.T) {
	p := manual(t)
	p.approve(nil)
	p.settle()
	p.publish("1.0.0", "1.2.0")
	p.awaitRevisions("1 Active 1.0.0 alice, 3 Paused 1.2.0 penstock")
	p.clock.Step(2 * time.Hour)
	p.settle()
	if shown := p.shown(); shown != "1 Active 1.0.0 alice, 3 Paused 1.2.0 penstock" {
		t.Errorf("there is %s", shown)
	}
}

// TestApprovalOfHeld: an upgrade that a review holds can also be approved for later. Labels of the
// extension do not make it begin earlier.
func TestApprovalOfHeld(t *testing.T) {
	p := reviewed(t, "RightsGained")
	p.windows.set(func(labels map[string]string) bool { return labels["tier"] == "" })
	p.publish("1.0.0", "1.1.0")
	p.awaitRevisions(waitsForBob)
	p.approve(nil)
	p.apply(func(object *unstructured.Unstructured) { object.SetLabels(map[string]string{"tier": "none"}) })
	p.settle()
	if shown := p.shown(); shown != waitsForBob {
		t.Fatalf("there is %s", shown)
	}
	p.windows.set(nil)
	p.clock.Step(time.Hour)
	p.awaitRevisions(approvedByBob)
}
