package chain

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/rollout"
	"github.com/penstock-project/penstock/pkg/rollout/cause"
)

// life is a revision and the events of its rollout, through a series of statuses.
type life struct {
	*olmv1alpha1.ClusterExtensionRevision
	told told
}

func (l *life) after(at time.Duration, found finding) []string {
	now := noon.Add(at)
	before := l.Status
	found.began = now
	l.Status = status(l.ClusterExtensionRevision, found, now)
	var said []string
	for _, m := range milestones(l.ClusterExtensionRevision, &before, &l.Status, now) {
		if l.told.fresh(m, now) {
			kind := "Normal"
			if m.warning {
				kind = "Warning"
			}
			said = append(said, fmt.Sprintf("%s %s %s", kind, m.reason, m.message))
		}
	}
	return said
}

// TestMilestones follows whole rollouts.
func TestMilestones(t *testing.T) {
	unready := func(reason string) rollout.Failure {
		f := failure(rollout.ReasonProbe, false)
		if reason != "" {
			f.Cause = &cause.Cause{Reason: reason, Object: manifest.ID{Kind: "Pod", Namespace: "argocd", Name: "server-0"}}
			f.Message += "; " + f.Cause.String()
		}
		return f
	}
	waits := func(f ...rollout.Failure) finding {
		return finding{newest: true, layer: report(rollout.PhaseReport{Applied: 1, Failures: f}, false)}
	}
	complete := finding{newest: true, layer: report(rollout.PhaseReport{Applied: 1, Available: 1}, true)}
	begins := "Normal RolloutBegun the rollout of 0 objects in 2 phases has begun"
	crds := "Normal PhaseAvailable phase crds is available; that is 1 of 2 phases"
	stuck := "Warning Stuck Deployment argocd/server: 0 of 1 replicas available; Pod argocd/server-0: ImagePullBackOff"
	type step struct {
		at     time.Duration
		found  finding
		change func(*olmv1alpha1.ClusterExtensionRevision)
		want   []string
	}
	for name, tc := range map[string]struct {
		reason    string
		revisions []func(*olmv1alpha1.ClusterExtensionRevision)
		steps     []step
	}{
		"smooth": {"begun, each phase but the last, succeeded; and no more", nil, []step{
			{0, waits(unready("")), nil, []string{begins, crds}},
			{5 * time.Second, waits(unready("")), nil, nil},
			{9 * time.Second, complete, nil, []string{"Normal Succeeded the rollout of 0 objects in 2 phases is complete, 9s after it began"}},
			{time.Hour, complete, nil, nil},
			{2 * time.Hour, waits(unready("")), nil, nil},
			{3 * time.Hour, complete, nil, nil},
		}},
		"at-once": {"all of it in one pass", nil, []step{
			{0, complete, nil, []string{begins, "Normal Succeeded the rollout of 0 objects in 2 phases is complete, within a second"}},
		}},
		"stuck": {"once for each cause, after a minute", nil, []step{
			{0, waits(unready("")), nil, []string{begins, crds}},
			{10 * time.Second, waits(unready("ImagePullBackOff")), nil, nil},
			{67 * time.Second, waits(unready("ImagePullBackOff")), nil, []string{stuck}},
			{100 * time.Second, waits(unready("ImagePullBackOff")), nil, nil},
			{110 * time.Second, waits(unready("Starting")), nil, nil},
			{120 * time.Second, waits(unready("ImagePullBackOff")), nil, nil},
			{130 * time.Second, waits(unready("CrashLoopBackOff")), nil, []string{"Warning Stuck Deployment argocd/server: 0 of 1 replicas available; Pod argocd/server-0: CrashLoopBackOff"}},
			{2 * time.Hour, waits(unready("ImagePullBackOff")), nil, []string{stuck}},
		}},
		"failing": {"one event for both conditions", nil, []step{
			{0, waits(failure(rollout.ReasonRejected, true)), nil, []string{begins, crds, "Warning Failing ApplyRejected: Deployment.apps argocd/server: 0 of 1 replicas available"}},
			{1 * time.Minute, waits(unready("")), nil, nil},
			{2 * time.Minute, waits(failure(rollout.ReasonRejected, true)), nil, nil},
		}},
		"deadline": {"with what it waits for", []func(*olmv1alpha1.ClusterExtensionRevision){withDeadline(1)}, []step{
			{0, waits(unready("")), nil, []string{begins, crds}},
			{time.Minute, waits(unready("")), nil, []string{"Warning Stalled ProgressDeadlineExceeded: the rollout takes longer than 1 minute; phase deploy (2 of 2): Deployment.apps argocd/server: 0 of 1 replicas available"}},
		}},
		"archived": {"when nothing is its any more", []func(*olmv1alpha1.ClusterExtensionRevision){succeeded}, []step{
			{0, complete, nil, nil},
			{time.Minute, finding{remaining: &manifest.ID{Kind: "ConfigMap", Namespace: "a", Name: "x"}}, state(olmv1alpha1.LifecycleStateArchived), nil},
			{time.Minute, finding{}, nil, []string{"Normal Archived the revision is archived: no object in the cluster belongs to it any more"}},
			{time.Minute, finding{}, nil, nil},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			l := &life{revision(tc.revisions...), told{}}
			for i, s := range tc.steps {
				if s.change != nil {
					s.change(l.ClusterExtensionRevision)
				}
				if diff := cmp.Diff(s.want, l.after(s.at, s.found)); diff != "" {
					t.Errorf("%s, step %d (-want +got):\n%s", tc.reason, i, diff)
				}
			}
		})
	}
}

// TestMilestonesAreBounded: a milestone that flaps is recorded a few times. The end is always
// recorded.
func TestMilestonesAreBounded(t *testing.T) {
	told, n := told{}, 0
	for i := range 1000 {
		for _, reason := range []string{eventFailing, eventStuck} {
			if told.fresh(milestone{reason: reason, key: fmt.Sprint(i % 50)}, noon.Add(time.Duration(i)*time.Second)) {
				n++
			}
		}
	}
	if n > maxMilestones {
		t.Errorf("%d events within %s", n, repeatAfter)
	}
	if !told.fresh(milestone{reason: eventSucceeded}, noon.Add(time.Minute)) {
		t.Error("the end is not told")
	}
}
