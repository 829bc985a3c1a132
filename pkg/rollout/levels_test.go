package rollout

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"pgregory.net/rapid"

	"github.com/penstock-project/penstock/pkg/manifest"
)

const (
	server   = "Deployment.apps a/server"
	settings = "ConfigMap a/settings"
	fallback = "ConfigMap a/fallback"
)

// installation returns a revision with two phases, and create-only objects of levels 0 and 1.
func installation(s *saga) *script {
	return s.revision(1).byLevels().phase("config", settings+"=1", theirs+"=ours@1").phase("deploy", server+"=1", fallback+"=ours@0")
}

// step does one pass; no workload becomes ready.
func (s *saga) step(t testing.TB) Report {
	t.Helper()
	s.clock.SetTime(s.clock.Now().Add(time.Minute))
	report, err := s.pass()
	if err != nil {
		t.Fatalf("reconciling: %v", err)
	}
	return report
}

func TestLevelsOrderTheInstallation(t *testing.T) {
	s := newSaga()
	s.become(installation(s))
	report := s.step(t)
	if diff := cmp.Diff([]string{"ConfigMap a/fallback", "ConfigMap a/settings", "Deployment.apps a/server"}, existing(s)); diff != "" {
		t.Errorf("while the workload of level 0 is not ready (-want +got):\n%s", diff)
	}
	want := &LevelReport{Number: 0, Objects: 3, Unready: 1, Waiting: 1, Failures: []Failure{{Ref: digested(s, server), Reason: ReasonProbe, Message: "is not ready"}}}
	if diff := cmp.Diff(want, report.Layers[0].Level); diff != "" {
		t.Errorf("which level runs, and what holds it up (-want +got):\n%s", diff)
	}
	again := s.step(t)
	if diff := cmp.Diff(report.Layers, again.Layers); diff != "" {
		t.Errorf("the next pass tells the same (-first +second):\n%s", diff)
	}
	s.controllers()
	report = s.settle(t)
	if got := s.content(theirs); got != "ours" || !report.Layers[0].Complete || report.Layers[0].Level != nil {
		t.Errorf("then level 1 follows: %s, %+v", got, report.Layers[0])
	}
}

// digested returns a reference with the digest of the first layer.
func digested(s *saga, object string) manifest.Ref {
	for _, stg := range s.layers[0].Stages {
		for _, step := range stg.Steps {
			if step.ID == refOf(object).ID {
				return step.Ref
			}
		}
	}
	return manifest.Ref{}
}

func existing(s *saga) []string {
	var out []string
	for id := range s.objects {
		out = append(out, id.String())
	}
	slices.Sort(out)
	return out
}

// TestLevelsSplitPhases: a phase is reported once, even if its objects have several levels.
func TestLevelsSplitPhases(t *testing.T) {
	s := newSaga()
	report := s.roll(t, installation(s))
	var got []string
	for _, phase := range report.Layers[0].Phases {
		got = append(got, fmt.Sprintf("%s %d/%d", phase.Name, phase.Available, phase.Objects))
	}
	if diff := cmp.Diff([]string{"config 2/2", "deploy 2/2"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestFinalLevelIsWaitedFor(t *testing.T) {
	s := newSaga()
	s.refuse = refusing("apply", theirs, apierrors.NewInternalError(errors.New("the webhook is down")))
	s.become(installation(s))
	s.step(t)
	s.controllers()
	report := s.step(t)
	if report.Layers[0].Complete {
		t.Error("the installation is complete although an object of level 1 is missing")
	}
	if level := report.Layers[0].Level; level == nil || level.Number != 1 || level.Unready != 1 || level.Waiting != 0 {
		t.Errorf("level 1 runs and is held up: %+v", level)
	}
	s.refuse = nil
	if report = s.settle(t); !report.Layers[0].Complete {
		t.Errorf("then it is complete: %v", failures(report))
	}
}

func refusing(verb, object string, err error) func(string, manifest.Ref) error {
	return func(v string, ref manifest.Ref) error {
		if v == verb && ref.ID == refOf(object).ID {
			return err
		}
		return nil
	}
}

func TestFailingObjectDoesNotStopItsSiblings(t *testing.T) {
	s := newSaga()
	invalid := apierrors.NewBadRequest("no such field")
	s.refuse = func(verb string, ref manifest.Ref) error {
		if ref.ID == refOf(settings).ID {
			return invalid // the dry-run fails already
		}
		return nil
	}
	s.become(s.revision(1).byLevels().phase("all", settings+"=1", "ConfigMap a/sibling=1", theirs+"=ours@1"))
	report := s.step(t)
	if diff := cmp.Diff([]string{"ConfigMap a/sibling"}, existing(s)); diff != "" {
		t.Errorf("siblings of the stage are written, later levels are not (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"1/all ConfigMap a/settings ApplyRejected"}, failures(report)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestLevelsDoNotGoBack: level 1 continues when a workload of level 0 fails.
func TestLevelsDoNotGoBack(t *testing.T) {
	s := newSaga()
	s.refuse = refusing("apply", theirs, apierrors.NewInternalError(errors.New("the webhook is down")))
	s.become(installation(s))
	s.step(t)
	s.controllers()
	s.step(t)
	s.alter(refOf(server).ID, func(o *thing) { o.readyAt = -1 })
	s.refuse = nil
	report := s.step(t)
	if got := s.content(theirs); got != "ours" {
		t.Errorf("a level that began goes on: %s", got)
	}
	if report.Layers[0].Complete || report.Layers[0].Level == nil || report.Layers[0].Level.Number != 1 {
		t.Errorf("and the installation is not complete: %+v", report.Layers[0])
	}
}

func TestEmptyLevels(t *testing.T) {
	cases := map[string]struct {
		reason string
		phases func(*script) *script
		want   []string
	}{
		"OnlyLevelOne":  {"there is nothing to wait for", func(r *script) *script { return r.phase("a", theirs+"=ours@1") }, []string{theirs}},
		"NoLevels":      {"as any rollout", func(r *script) *script { return r.phase("a", settings+"=1") }, []string{settings}},
		"EmptyPhase":    {"a phase without objects has no stage", func(r *script) *script { return r.phase("a").phase("b", theirs+"=ours@1").phase("c") }, []string{theirs}},
		"NothingAtAll":  {"complete at once", func(r *script) *script { return r }, nil},
		"SameBothTimes": {"an object at each level of one phase", func(r *script) *script { return r.phase("a", fallback+"=1@0", theirs+"=1@1") }, []string{theirs, fallback}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newSaga()
			report := s.roll(t, tc.phases(s.revision(1).byLevels()))
			if !report.Layers[0].Complete || report.Layers[0].Level != nil {
				t.Errorf("%s: %+v", tc.reason, report.Layers[0])
			}
			slices.Sort(tc.want)
			if diff := cmp.Diff(tc.want, existing(s)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// TestNewRevisionBetweenLevels: a new revision replaces the installation while level 0 is in
// progress.
func TestNewRevisionBetweenLevels(t *testing.T) {
	s := newSaga()
	first := installation(s)
	s.become(first)
	s.step(t)
	second := s.revision(2).byLevels().phase("config", settings+"=2", theirs+"=newer@1").phase("deploy", server+"=2", fallback+"=newer@0")
	s.become(second, first)
	s.step(t)
	if got := s.content(theirs); got != "absent" {
		t.Errorf("level 1 of the new revision did not wait: %s", got)
	}
	report := s.roll(t, second, first)
	if got := []string{s.content(theirs), s.content(server), s.content(fallback)}; !slices.Equal(got, []string{"newer", "2", "ours"}) || !report.Layers[0].Complete {
		t.Errorf("got %v, %v", got, failures(report))
	}
}

// TestManyObjectsByLevels writes a thousand objects before the first object of level 1.
func TestManyObjectsByLevels(t *testing.T) {
	s := newSaga()
	var objects []string
	for i := range 1000 {
		objects = append(objects, fmt.Sprintf("ConfigMap a/c-%d=1", i))
	}
	for i := range 20 {
		objects = append(objects, fmt.Sprintf("ConfigMap a/d-%d=1@1", i))
	}
	s.become(s.revision(1).byLevels().phase("all", objects...))
	s.step(t)
	writes, _ := s.spent()
	first := slices.IndexFunc(writes, func(w string) bool { return strings.HasPrefix(w, "apply ConfigMap a/d-") })
	last := 0
	for i, w := range writes {
		if strings.HasPrefix(w, "apply ConfigMap a/c-") {
			last = i
		}
	}
	if first < last || len(s.objects) != 1020 {
		t.Errorf("%d objects; the first of level 1 is write %d, the last of level 0 is write %d", len(s.objects), first, last)
	}
}

// TestLevelOneNeverComesEarly kills the process at any write, and restarts it. No object of level 1
// is written before all objects of level 0 are ready, and at the end all objects exist.
func TestLevelOneNeverComesEarly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newSaga()
		s.become(installation(s))
		for range rapid.IntRange(0, 4).Draw(t, "crashes") {
			s.fuse = rapid.IntRange(0, 8).Draw(t, "fuse")
			s.lastWriteLands = rapid.Bool().Draw(t, "lands")
			for range rapid.IntRange(1, 3).Draw(t, "passes") {
				if rapid.Bool().Draw(t, "ready") {
					s.controllers()
				}
				early := s.objects[refOf(theirs).ID] == nil && s.objects[refOf(server).ID] == nil
				_, _ = s.pass()
				if early && s.objects[refOf(theirs).ID] != nil {
					t.Fatalf("the default is there in the pass that made the workload")
				}
			}
			s.restart()
		}
		if s.objects[refOf(theirs).ID] != nil && len(s.unready()) > 0 && s.stored.Reached["uid-of-1"] < 3 {
			t.Fatalf("the default came before its level: %v", s.stored.Reached)
		}
		if report := s.settle(t); !report.Layers[0].Complete || s.content(theirs) != "ours" {
			t.Fatalf("it does not come to its end: %v", failures(report))
		}
	})
}

// The next tests cover known bugs in other engines that wait between levels.

// TestTimeoutIsNotSuccess: a pass whose context ends does nothing, reaches no stage, and returns an
// error. Once, a pass with only context errors counted as a success.
func TestTimeoutIsNotSuccess(t *testing.T) {
	s := newSaga()
	s.become(installation(s))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	report, err := s.engine.Reconcile(ctx, s.work())
	if !errors.Is(err, context.Canceled) || report.Layers[0].Complete {
		t.Errorf("a cancelled pass: error %v, complete %v", err, report.Layers[0].Complete)
	}
	if len(s.objects) > 0 {
		t.Errorf("and it has written %v", existing(s))
	}
}

// TestCancelBetweenLevelsIsNotSuccess ends the context with the last write of level 0.
func TestCancelBetweenLevelsIsNotSuccess(t *testing.T) {
	s := newSaga()
	s.become(s.revision(1).byLevels().phase("a", settings+"=1", "ConfigMap a/z=1", theirs+"=ours@1"))
	ctx, cancel := context.WithCancel(context.Background())
	s.refuse = func(verb string, ref manifest.Ref) error {
		if verb == "apply" && ref.Name == "z" {
			cancel()
		}
		return nil
	}
	report, err := s.engine.Reconcile(ctx, s.work())
	if err == nil || report.Layers[0].Complete || s.content(theirs) != "absent" {
		t.Errorf("error %v, complete %v, level 1 %s", err, report.Layers[0].Complete, s.content(theirs))
	}
	s.refuse = nil
	s.settle(t)
	if got := s.content(theirs); got != "ours" {
		t.Errorf("the next pass goes on: %s", got)
	}
}

// TestCancelWithQueuedWorkEnds: if the context ends with more objects than workers, no object waits
// for a worker.
func TestCancelWithQueuedWorkEnds(t *testing.T) {
	s := newSaga()
	var objects []string
	for i := range 100 {
		objects = append(objects, fmt.Sprintf("ConfigMap a/c-%d=1", i))
	}
	s.become(s.revision(1).byLevels().phase("all", append(objects, theirs+"=ours@1")...))
	ctx, cancel := context.WithCancel(context.Background())
	var once sync.Once
	s.refuse = func(string, manifest.Ref) error {
		once.Do(cancel)
		return nil
	}
	ended := make(chan error)
	go func() {
		_, err := s.engine.Reconcile(ctx, s.work())
		ended <- err
	}()
	select {
	case err := <-ended:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("the pass ended with %v", err)
		}
	case <-time.After(time.Minute):
		t.Fatal("the pass does not end")
	}
}

// TestManyFailuresSideBySide: all objects fail in parallel, and each is reported once. Once,
// results were appended without a lock; run with -race.
func TestManyFailuresSideBySide(t *testing.T) {
	s := newSaga()
	s.engine.Parallel = 16
	var objects []string
	for i := range 64 {
		objects = append(objects, fmt.Sprintf("ConfigMap a/c-%d=1", i))
	}
	s.refuse = func(verb string, _ manifest.Ref) error {
		if verb == "apply" {
			return apierrors.NewBadRequest("no")
		}
		return nil
	}
	s.become(s.revision(1).byLevels().phase("all", append(objects, theirs+"=ours@1")...))
	report := s.step(t)
	if level := report.Layers[0].Level; level.Unready != 64 || level.Waiting != 1 || len(level.Failures) != 64 {
		t.Errorf("%d unready, %d waiting, %d failures", level.Unready, level.Waiting, len(level.Failures))
	}
}

// TestFailedPassIsTriedAgain: after a failure, passes do not repeat the same step forever. Once, an
// uncounted attempt hung an update.
func TestFailedPassIsTriedAgain(t *testing.T) {
	s := newSaga()
	failures := 0
	s.refuse = func(verb string, ref manifest.Ref) error {
		if verb == "apply" && ref.Name == "settings" && failures < 3 {
			failures++
			return apierrors.NewInternalError(errors.New("try again"))
		}
		return nil
	}
	s.become(installation(s))
	var waits []time.Duration
	for range 3 {
		report, err := s.pass()
		if err != nil {
			t.Fatal(err)
		}
		waits = append(waits, report.RequeueAfter)
		s.clock.SetTime(s.clock.Now().Add(report.RequeueAfter))
	}
	if diff := cmp.Diff([]time.Duration{time.Second, 2 * time.Second, 4 * time.Second}, waits); diff != "" {
		t.Errorf("each failure is counted (-want +got):\n%s", diff)
	}
	if report := s.settle(t); !report.Layers[0].Complete {
		t.Error("and overcome")
	}
}

// TestSlowObjectStarvesNobody: a pass never waits for health, so a slow workload occupies no
// worker.
func TestSlowObjectStarvesNobody(t *testing.T) {
	s := newSaga()
	s.become(s.revision(1).byLevels().phase("a", server+"=1", "Deployment.apps a/b=1", "Deployment.apps a/c=1", theirs+"=ours@1"))
	s.step(t) // with one worker
	if diff := cmp.Diff([]string{"Deployment.apps a/b", "Deployment.apps a/c", "Deployment.apps a/server"}, existing(s)); diff != "" {
		t.Errorf("one pass writes all of them (-want +got):\n%s", diff)
	}
}
