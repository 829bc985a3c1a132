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

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/rollout/cause"
)

// oracle is an Explainer that knows every cause, and records the questions.
type oracle struct {
	mu     sync.Mutex
	asked  []string
	reason string
	err    error
}

func (o *oracle) Explain(_ context.Context, subject cause.Subject) (cause.Cause, bool, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.asked = append(o.asked, subject.ID.String())
	if subject.Manifest["kind"] != subject.ID.Kind || subject.UID == "" || subject.Live == nil {
		return cause.Cause{}, false, fmt.Errorf("asked about %v", subject)
	}
	pod := manifest.ID{Kind: "Pod", Namespace: subject.ID.Namespace, Name: subject.ID.Name + "-0"}
	return cause.Cause{Reason: o.reason, Object: pod}, o.reason != "", o.err
}

// told returns the objects asked about since the last call.
func (o *oracle) told() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	asked := o.asked
	o.asked = nil
	slices.Sort(asked)
	return asked
}

// waiting returns a chain with workloads that do not become ready.
func waiting(t *testing.T, o *oracle, workloads ...string) *saga {
	t.Helper()
	s := newSaga()
	s.engine.Explainer = o
	s.become(s.revision(1).phase("deploy", workloads...))
	s.look(t)
	return s
}

// look lets all watches catch up and does a pass.
func (s *saga) look(t *testing.T) Report {
	t.Helper()
	var report Report
	for range 3 {
		s.deliver(len(s.changes))
		var err error
		if report, err = s.pass(); err != nil {
			t.Fatal(err)
		}
	}
	return report
}

// later advances the clock and does a pass.
func (s *saga) later(t *testing.T, d time.Duration) Report {
	t.Helper()
	s.clock.SetTime(s.clock.Now().Add(d))
	return s.look(t)
}

func messagesOf(r Report) []string {
	var out []string
	r.has(func(f *Failure) bool {
		out = append(out, f.Name+": "+f.Message)
		return false
	})
	return out
}

// TestLooks: the engine searches causes only for objects that are not ready, at growing intervals.
func TestLooks(t *testing.T) {
	o := &oracle{reason: "ImagePullBackOff"}
	s := waiting(t, o, "ConfigMap a/x=1", "Deployment.apps a/y=1")
	if asked := o.told(); len(asked) > 0 {
		t.Errorf("what has just been written is looked at: %v", asked)
	}
	s.spent()
	looks, elapsed := []time.Duration{}, time.Duration(0)
	for elapsed < time.Hour {
		report := s.last
		if report.RequeueAfter <= 0 || !report.Idle {
			t.Fatalf("after %s another pass comes in %s, idle %t", elapsed, report.RequeueAfter, report.Idle)
		}
		if s.later(t, report.RequeueAfter-1); len(o.told()) > 0 {
			t.Fatalf("after %s it is looked at too early", elapsed)
		}
		s.later(t, 1)
		elapsed += report.RequeueAfter
		looks = append(looks, elapsed)
		if asked := o.told(); !slices.Equal(asked, []string{"Deployment.apps a/y"}) {
			t.Fatalf("after %s %v is looked at", elapsed, asked)
		}
		if got, want := messagesOf(s.last), []string{"y: is not ready; Pod a/y-0: ImagePullBackOff"}; !slices.Equal(got, want) {
			t.Fatalf("after %s it says %q, want %q", elapsed, got, want)
		}
	}
	for i, want := range []time.Duration{10, 20, 30, 45} {
		if looks[i].Truncate(time.Second) != want*time.Second {
			t.Errorf("looks after %v", looks[:6])
		}
	}
	if len(looks) > 26 {
		t.Errorf("%d looks in an hour", len(looks))
	}
	if writes, reads := s.spent(); len(reads) > 0 {
		t.Errorf("the engine itself reads %v, and wrote %v", reads, writes)
	}
	s.controllers()
	if report := s.later(t, time.Hour); report.RequeueAfter != 0 || len(o.told()) > 0 || len(messagesOf(report)) > 0 || len(s.engine.memories["argocd"].looks) > 0 {
		t.Errorf("at rest: %+v", report)
	}
}

// TestLooksAreBounded: the number of searches is limited for a chain of any size.
func TestLooksAreBounded(t *testing.T) {
	o := &oracle{reason: "Unschedulable"}
	var workloads []string
	for i := range 3 * maxLooks {
		workloads = append(workloads, fmt.Sprintf("Deployment.apps a/y%02d=1", i))
	}
	s := waiting(t, o, workloads...)
	s.later(t, firstLook)
	if asked := o.told(); len(asked) != maxLooks || asked[maxLooks-1] != fmt.Sprintf("Deployment.apps a/y%02d", maxLooks-1) {
		t.Errorf("%d were looked at: %v", len(asked), asked)
	}
}

// TestLooksThatFail: a failed search keeps the earlier finding. A missing right is reported once.
func TestLooksThatFail(t *testing.T) {
	o := &oracle{reason: "OOMKilled"}
	s := waiting(t, o, "Deployment.apps a/y=1", "Deployment.apps a/z=1")
	s.later(t, firstLook)
	before := messagesOf(s.last)
	o.err = errors.New("nobody is there")
	s.later(t, time.Minute)
	if got := messagesOf(s.last); !slices.Equal(got, before) {
		t.Errorf("nobody answered, and it says %q; before %q", got, before)
	}
	o.reason, o.err = "", apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", errors.New(`User "engine" cannot list resource "pods" in the namespace "a"`))
	s.later(t, time.Minute)
	got := strings.Join(messagesOf(s.last), "\n")
	if strings.Count(got, `User "engine" cannot list resource "pods"`) != 1 || strings.Contains(got, "OOMKilled") {
		t.Errorf("the missing right is not told once:\n%s", got)
	}
	o.reason, o.err = "Unschedulable", nil
	s.later(t, longestWait)
	if got := messagesOf(s.last); !slices.Equal(got, []string{"y: is not ready; Pod a/y-0: Unschedulable", "z: is not ready; Pod a/z-0: Unschedulable"}) {
		t.Errorf("with the right it says %q", got)
	}
}

// TestRefusalsBehindWebhooks: the message about a refusal by a webhook without endpoints names the
// Service.
func TestRefusalsBehindWebhooks(t *testing.T) {
	s := newSaga()
	s.refuse = func(string, manifest.Ref) error {
		return apierrors.NewInternalError(errors.New(`failed calling webhook "v.example.com": failed to call webhook: Post "https://hook.b.svc:443/v?timeout=10s": no endpoints available for service "hook"`))
	}
	s.become(s.revision(1).phase("deploy", "ConfigMap a/x=1"))
	report := s.look(t)
	found := 0
	report.has(func(f *Failure) bool {
		if f.Cause != nil && f.Cause.Reason == cause.NoEndpoints && f.Cause.Related.Name == "hook" {
			found++
		}
		return false
	})
	if found != 1 {
		t.Errorf("no cause: %v", messagesOf(report))
	}
}
