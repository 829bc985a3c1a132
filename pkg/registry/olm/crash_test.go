package olm_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	hub "github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/store/storetest"
)

type noHistories struct{}

func (noHistories) Get(_ context.Context, name string, _ *metav1.GetOptions) (runtime.Object, error) {
	return nil, apierrors.NewNotFound(v1alpha1.Resource("revisionhistories"), name)
}

type answered struct{ err error }

func (*answered) Object(int, runtime.Object) {}
func (a *answered) Error(err error)          { a.err = err }

// unhurried is a connection without read deadlines.
type unhurried struct{ *httptest.ResponseRecorder }

func (unhurried) SetReadDeadline(time.Time) error { return nil }

func imports(archive string) act {
	return func(b *bench, ctx context.Context) error {
		done := &answered{}
		handler, err := b.imports.Connect(ctx, "e", nil, done)
		if err != nil {
			return err
		}
		handler.ServeHTTP(unhurried{httptest.NewRecorder()}, httptest.NewRequestWithContext(ctx, http.MethodPost, "/", strings.NewReader(archive)))
		return done.err
	}
}

func rollsBackFrom(from string) act {
	return func(b *bench, ctx context.Context) error {
		_, err := b.rollback.Create(ctx, "e-1", &v1alpha1.RevisionRollback{Spec: v1alpha1.RevisionRollbackSpec{From: from}}, nil, &metav1.CreateOptions{})
		return err
	}
}

// write is a write of several records.
type write struct {
	empty bool // the store lacks the chain
	// before prepares the chain.
	before act
	act    act
	// next is a write that must succeed afterwards.
	next act
}

func writes(t *testing.T) map[string]write {
	archive := sample(t).String()
	return map[string]write{
		"create":        {act: creates(3, "c"), next: creates(4, "c")},
		"first":         {empty: true, act: creates(1, "ab"), next: creates(2, "ab")},
		"rollback":      {act: rollsBackFrom("e-2"), next: creates(4, "c")},
		"import":        {empty: true, act: imports(archive), next: creates(4, "c")},
		"delete":        {act: deletes("e-2", metav1.DeletePropagationBackground), next: creates(3, "c")},
		"orphan":        {act: deletes("e-2", metav1.DeletePropagationOrphan), next: creates(3, "c")},
		"archive":       {act: updates("e-1", setState(hub.LifecycleStateArchived)), next: creates(3, "c")},
		"finalizers":    {before: deletes("e-1", metav1.DeletePropagationOrphan), act: updates("e-1", unfinished), next: creates(3, "c")},
		"acknowledging": {act: updates("e-1", acknowledges), next: creates(3, "c")},
	}
}

// TestCrashes: each write of an API request fails in turn, before or after etcd executes it. The
// process ends or continues. Acknowledged writes persist, all records can be read, and a repeated
// request has the same result as without the crash. No number is used twice, and the chain accepts
// further revisions.
func TestCrashes(t *testing.T) {
	points := 0
	for name, w := range writes(t) {
		for _, how := range []storetest.Crash{storetest.BeforeWrite, storetest.AfterWrite, storetest.WriteLost, storetest.AnswerLost} {
			t.Run(name+"/"+string(how), func(t *testing.T) {
				c := &crashing{t: t, ctx: as(t.Context(), "abc"), write: w, start: storetest.NewMemory()}
				if !w.empty {
					c.start = newBench(t).begin(t.Context(), func(b *bench, ctx context.Context) {
						if w.before == nil {
							return
						}
						if err := w.before(b, ctx); err != nil {
							t.Fatal(err)
						}
					})
				}
				c.want = c.clean()
				k := 0
				for c.fails(k, how) {
					k++
				}
				points += k
				if k == 0 {
					t.Error("nothing was written")
				}
			})
		}
	}
	t.Logf("%d points", points)
}

// crashing runs one write with a failure at each of its points.
type crashing struct {
	t     *testing.T
	ctx   context.Context //nolint:containedctx // the context of the test
	write write
	start *storetest.Memory
	want  string
}

// clean returns the state after the write without failures.
func (c *crashing) clean() string {
	memory := c.start.Clone()
	b := newBenchOn(c.t, memory, memory)
	if err := c.write.act(b, c.ctx); err != nil {
		c.t.Fatal(err)
	}
	return stateOf(b, c.ctx)
}

// fails lets the write with that number fail, and reports whether there was such a write.
func (c *crashing) fails(k int, how storetest.Crash) bool {
	memory := c.start.Clone()
	kv := storetest.NewCrashingKV(memory.Client(c.t.Context()), k, how)
	first := newBenchOn(c.t, memory, kv)
	failed := c.write.act(first, c.ctx)
	if !kv.Failed() {
		return false
	}
	again := first
	if kv.Crashed() {
		again = newBenchOn(c.t, memory, memory)
	}
	c.repairs(again, fmt.Sprintf("write %d, %s, answered %v", k, how, failed), failed)
	return true
}

// repairs checks the state after a failed or acknowledged request, and after the request is
// repeated.
func (c *crashing) repairs(again *bench, at string, failed error) {
	c.t.Helper()
	if state := stateOf(again, c.ctx); failed == nil && state != c.want {
		c.t.Errorf("%s: it was answered as done, and there is\n%s\nwant\n%s", at, state, c.want)
	}
	// The client repeats the request. It may be refused because the object now exists or is
	// deleted.
	retried := c.write.act(again, c.ctx)
	if retried != nil && !apierrors.IsAlreadyExists(retried) && !apierrors.IsConflict(retried) && !apierrors.IsNotFound(retried) {
		c.t.Errorf("%s: the same again: %v", at, retried)
	}
	if state := stateOf(again, c.ctx); state != c.want {
		c.t.Errorf("%s, then %v: there is\n%s\nwant\n%s", at, retried, state, c.want)
	}
	if err := c.write.next(again, c.ctx); err != nil {
		c.t.Errorf("%s: the next revision: %v", at, err)
	}
	c.consistent(again, at)
}

// consistent compares the head with the revisions, and reads all manifests.
func (c *crashing) consistent(b *bench, at string) {
	c.t.Helper()
	head, _, err := b.heads.Get(c.ctx, "e")
	if err != nil {
		c.t.Fatal(err)
	}
	rows := map[int64]bool{}
	for _, row := range head.Rows {
		if rows[row.Revision] {
			c.t.Errorf("%s: revision %d is twice in the history", at, row.Revision)
		}
		rows[row.Revision] = true
	}
	for _, r := range b.all(c.ctx) {
		switch {
		case r.Spec.Revision > head.Highest:
			c.t.Errorf("%s: %s is there, and the highest number is %d", at, r.Name, head.Highest)
		case r.Spec.Revision == head.Highest && r.UID != head.HighestUID:
			c.t.Errorf("%s: the head has %s for %s, which has %s", at, head.HighestUID, r.Name, r.UID)
		}
		for _, row := range head.Rows {
			if row.Revision == r.Spec.Revision && row.UID != r.UID {
				c.t.Errorf("%s: the history has %s for %s, which has %s", at, row.UID, r.Name, r.UID)
			}
		}
	}
}

// stateOf returns the state of a chain, without values that differ between runs.
func stateOf(b *bench, ctx context.Context) string {
	b.t.Helper()
	now := b.all(ctx)
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(now)) {
		r := now[name]
		contents, err := b.revisions.Contents(ctx, r)
		if err != nil {
			b.t.Errorf("the manifests of %s: %v", name, err)
		}
		var previous []string
		for _, p := range r.Spec.Previous {
			if there := now[p.Name]; there != nil && there.UID != p.UID {
				err = errors.Join(err, fmt.Errorf("%s follows a %s that is not there", name, p.Name))
			}
			previous = append(previous, p.Name)
		}
		if err != nil {
			b.t.Error(err)
		}
		lines = append(lines, fmt.Sprintf("%s %s %s %v deleted=%t follows=%v manifests=%d %v %v", name, r.Spec.LifecycleState, r.Spec.TeardownPolicy, r.Finalizers,
			r.DeletionTimestamp != nil, previous, len(contents), objectsOf(r), r.Annotations))
	}
	return strings.Join(lines, "\n")
}

// TestSilentEtcd: etcd executes each write of a create or an import, but answers only after the
// request has ended. No unfinished request is acknowledged. Repeating it when etcd answers has the
// usual result.
func TestSilentEtcd(t *testing.T) {
	etcd := storetest.Client(t)
	proxy, client := storetest.NewProxy(t, etcd)
	for name, w := range writes(t) {
		if !w.empty {
			continue
		}
		t.Run(name, func(t *testing.T) {
			c := &crashing{t: t, ctx: as(t.Context(), "abc"), write: w, start: storetest.NewMemory()}
			c.want = c.clean()
			k := 0
			for ; ; k++ {
				if _, err := etcd.Delete(t.Context(), prefix, clientv3.WithPrefix()); err != nil {
					t.Fatal(err)
				}
				kv := storetest.NewCrashingKV(client, k, storetest.Disturbed)
				kv.Disturb = proxy.Silence
				b := newBenchOn(t, storetest.NewMemory(), kv)
				short, cancel := context.WithTimeout(c.ctx, 500*time.Millisecond)
				failed := w.act(b, short)
				cancel()
				proxy.Answer()
				if !kv.Failed() {
					break
				}
				c.repairs(b, fmt.Sprintf("write %d was not answered, the request was with %v", k, failed), failed)
			}
			// The writes are the manifests, and the revision with the chain's head.
			if k < 2 {
				t.Errorf("%d writes were tried", k)
			}
		})
	}
}
