//go:build integration

package server_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"runtime/pprof"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/server/etcd"
	"github.com/penstock-project/penstock/pkg/server/leadership"
	"github.com/penstock-project/penstock/test/framework/cluster"
	"github.com/penstock-project/penstock/test/framework/poll"
)

const leaseNamespace, leaseName = "penstock-system", "penstock-controllers"

// observer is a controller that reports when its term begins and ends.
type observer struct {
	began, ended chan struct{}
	running      atomic.Int32
	// hangs makes the liveness check fail.
	hangs atomic.Bool
	// fail is the number of further terms that end with an error before they begin.
	fail atomic.Int32
}

func newObserver() *observer {
	return &observer{began: make(chan struct{}, 10), ended: make(chan struct{}, 10)}
}

func (o *observer) controller(t *testing.T) leadership.Controller {
	return leadership.Controller{Name: "observer", Start: func(_ context.Context, term leadership.Term) error {
		if o.fail.Add(-1) >= 0 {
			return errors.New("the test wants it so")
		}
		term.Liveness.Add("observer", func() error {
			if o.hangs.Load() {
				return errors.New("the controller hangs")
			}
			return nil
		})
		return term.Manager.Add(manager.RunnableFunc(func(ctx context.Context) error {
			if n := o.running.Add(1); n > 1 {
				t.Errorf("%d terms at the same time", n)
			}
			// The manager's cache can read our API.
			var list v1alpha1.ClusterExtensionRevisionList
			if err := term.Manager.GetClient().List(ctx, &list); err != nil {
				t.Errorf("reading our API: %v", err)
			}
			o.began <- struct{}{}
			<-ctx.Done()
			o.running.Add(-1)
			o.ended <- struct{}{}
			return nil
		}))
	}}
}

func await(t *testing.T, what string, signal <-chan struct{}) {
	t.Helper()
	select {
	case <-signal:
	case <-time.After(poll.Patience):
		t.Fatalf("%s did not happen", what)
	}
}

func lease(t *testing.T, c *cluster.Cluster) (*coordinationv1.Lease, kubernetes.Interface) {
	t.Helper()
	client, err := kubernetes.NewForConfig(c.Config())
	if err != nil {
		t.Fatal(err)
	}
	lease, err := client.CoordinationV1().Leases(leaseNamespace).Get(t.Context(), leaseName, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return lease, client
}

// TestLeadership: losing the lease ends only the controllers, and they start again.
func TestLeadership(t *testing.T) {
	t.Parallel()
	c := borrow(t)
	o := newObserver()
	o.fail.Store(1)
	options := newOptions(t, c, dataDir(t))
	options.Controllers = []leadership.Controller{o.controller(t)}
	options.Lease = leadership.Times{Duration: 3 * time.Second, RenewDeadline: 2 * time.Second, RetryPeriod: 200 * time.Millisecond}
	p := start(t, options)
	await(t, "the term behind a failed one", o.began)

	// Another holder takes the lease. It holds it longer than the server tries to renew it.
	eventually(t, "taking the lease", func() error {
		held, client := lease(t, c)
		held.Spec.HolderIdentity = ptr.To("thief")
		held.Spec.RenewTime = &metav1.MicroTime{Time: time.Now()}
		held.Spec.LeaseDurationSeconds = ptr.To(int32(4))
		_, err := client.CoordinationV1().Leases(leaseNamespace).Update(t.Context(), held, metav1.UpdateOptions{})
		return err
	})
	await(t, "the end of a term whose lease was lost", o.ended)
	c.MustKubectlInput(revision("argocd", 1), "create", "-f", "-")
	await(t, "the next term", o.began)

	o.hangs.Store(true)
	if body, code := get(t, p.Loopback(), "/livez"); code == http.StatusOK {
		t.Errorf("a hanging controller passes the liveness check: %s", body)
	}
	o.hangs.Store(false)
	if body, code := get(t, p.Loopback(), "/livez"); code != http.StatusOK {
		t.Errorf("livez: %s", body)
	}

	p.halt(t)
	await(t, "the end of the last term", o.ended)
	if held, _ := lease(t, c); ptr.Deref(held.Spec.HolderIdentity, "") != "" {
		t.Errorf("the lease was not released: %s", *held.Spec.HolderIdentity)
	}
}

// TestLeaseOfKilledProcess: a killed process cannot release its lease. After a restart it must not
// wait for the lease to expire.
func TestLeaseOfKilledProcess(t *testing.T) {
	t.Parallel()
	c := borrow(t)
	dir := dataDir(t)
	first := newObserver()
	options := newOptions(t, c, dir)
	options.Controllers = []leadership.Controller{first.controller(t)}
	p := start(t, options)
	await(t, "the first term", first.began)
	held, _ := lease(t, c)
	if holder := *held.Spec.HolderIdentity; !strings.HasPrefix(holder, "store_") {
		t.Errorf("the holder is %s, want the store's name: a replaced Pod has another hostname", holder)
	}
	p.halt(t)

	// The lease gets the content that it would have after a kill.
	after, client := lease(t, c)
	after.Spec = held.Spec
	after.Spec.RenewTime = &metav1.MicroTime{Time: time.Now()}
	if _, err := client.CoordinationV1().Leases(leaseNamespace).Update(t.Context(), after, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	second := newObserver()
	options = newOptions(t, c, dir)
	options.Controllers = []leadership.Controller{second.controller(t)}
	// A process that waits for such a lease does not get it before the test ends.
	options.Lease = leadership.Times{Duration: time.Hour, RenewDeadline: time.Minute, RetryPeriod: time.Second}
	start(t, options)
	await(t, "the second term", second.began)
}

// TestReplicas: two replicas on one etcd both serve, and one leads. The other replica takes over.
func TestReplicas(t *testing.T) {
	t.Parallel()
	c := borrow(t)
	store, err := etcd.Start(t.Context(), etcd.Config{DataDir: dataDir(t), QuotaBytes: 256 << 20, Log: logr.Discard()})
	if err != nil {
		t.Fatal(err)
	}
	// Cleanups run in reverse order, so the servers stop before their store.
	t.Cleanup(store.Close)
	replica := func(o *observer) *process {
		options := newOptions(t, c, "", "--etcd-servers", store.Endpoint())
		options.Controllers = []leadership.Controller{o.controller(t)}
		return start(t, options)
	}
	one, two := newObserver(), newObserver()
	first := replica(one)
	await(t, "the first replica's term", one.began)
	second := replica(two)
	c.MustKubectlInput(revision("argocd", 1), "create", "-f", "-")
	for name, p := range map[string]*process{"first": first, "second": second} {
		eventually(t, "reading from the "+name+" replica", func() error {
			body, code, err := tryGet(t.Context(), p.Loopback(), "/apis/olm.operatorframework.io/v1alpha1/clusterextensionrevisions/argocd-1")
			if err == nil && code != http.StatusOK {
				err = missingError{body}
			}
			return err
		})
	}
	if string(first.CABundle) != string(second.CABundle) {
		t.Error("the replicas have different certificate authorities")
	}
	if n := two.running.Load(); n != 0 {
		t.Error("both replicas lead")
	}
	replicasFollow(t, c, first, second)
	begin := time.Now()
	first.halt(t)
	await(t, "the second replica's term", two.began)
	t.Logf("the second replica took over %s after the first one was told to stop", time.Since(begin))
}

// replicasFollow: another certificate authority is written. Both replicas use it.
func replicasFollow(t *testing.T, c *cluster.Cluster, replicas ...*process) {
	t.Helper()
	old := issuer(t, replicas[0].Port)
	c.MustKubectl("delete", "secret", "penstock-ca", system)
	eventually(t, "leaves of another authority", func() error {
		one, two := issuer(t, replicas[0].Port), issuer(t, replicas[1].Port)
		if bytes.Equal(one, old) || !bytes.Equal(one, two) {
			return missingError{"the certificates are not signed by the same new authority"}
		}
		return nil
	})
}

// TestManyTerms takes the lease away again and again. Each term ends, a new one begins, and no
// goroutines of earlier terms remain. TERMS=100 runs 100 terms.
func TestManyTerms(t *testing.T) {
	t.Parallel()
	terms := 8
	if n, err := strconv.Atoi(os.Getenv("TERMS")); err == nil {
		terms = n
	}
	c := borrow(t)
	o := newObserver()
	options := newOptions(t, c, dataDir(t))
	options.Controllers = []leadership.Controller{o.controller(t)}
	options.Lease = leadership.Times{Duration: time.Second, RenewDeadline: 500 * time.Millisecond, RetryPeriod: 100 * time.Millisecond}
	// Other tests run in this process. All goroutines of the server inherit the label.
	label := t.Name()
	pprof.SetGoroutineLabels(pprof.WithLabels(t.Context(), pprof.Labels("test", label)))
	start(t, options)
	pprof.SetGoroutineLabels(context.Background())

	await(t, "the first term", o.began)
	client, err := kubernetes.NewForConfig(c.Config())
	if err != nil {
		t.Fatal(err)
	}
	const settled = 3 // by then, everything that is made once exists
	before := 0
	held, _ := lease(t, c)
	for term := 1; term <= terms; term++ {
		// The new holder is another name, or the server's own. Two processes with copies of one
		// store have the same name.
		hold(t, client, []string{"thief", *held.Spec.HolderIdentity}[term%2])
		await(t, "the end of a term whose lease was lost", o.ended)
		hold(t, client, "")
		await(t, "the next term", o.began)
		if term == settled {
			before = steady(t, label)
		}
	}
	const few = 4
	eventually(t, "the goroutines of former terms to end", func() error {
		if now := labelled(t, label); now > before+few {
			return fmt.Errorf("%d goroutines after %d terms, %d after %d", now, terms, before, settled)
		}
		return nil
	})
	t.Logf("%d goroutines after %d terms, %d after %d", labelled(t, label), terms, before, settled)
}

// hold writes a holder into the lease, for an hour.
func hold(t *testing.T, client kubernetes.Interface, holder string) {
	t.Helper()
	eventually(t, "writing the lease", func() error {
		held, err := client.CoordinationV1().Leases(leaseNamespace).Get(t.Context(), leaseName, metav1.GetOptions{})
		if err != nil {
			return err
		}
		held.Spec.HolderIdentity = ptr.To(holder)
		held.Spec.RenewTime = &metav1.MicroTime{Time: time.Now()}
		held.Spec.LeaseDurationSeconds = ptr.To(int32(3600))
		_, err = client.CoordinationV1().Leases(leaseNamespace).Update(t.Context(), held, metav1.UpdateOptions{})
		return err
	})
}

// steady returns the number of goroutines with a label when it no longer changes. The last watches
// of a term begin a moment after its controllers.
func steady(t *testing.T, label string) int {
	t.Helper()
	const looks = 10
	last, same := 0, 0
	eventually(t, "all goroutines of a term", func() error {
		now := labelled(t, label)
		if now != last {
			last, same = now, 0
		}
		if same++; same < looks {
			return fmt.Errorf("%d goroutines for %d looks", now, same)
		}
		return nil
	})
	return last
}

// labelled counts the goroutines with a label.
func labelled(t *testing.T, label string) int {
	t.Helper()
	var profile bytes.Buffer
	if err := pprof.Lookup("goroutine").WriteTo(&profile, 1); err != nil {
		t.Fatal(err)
	}
	count, group := 0, 0
	for line := range strings.Lines(profile.String()) {
		// "12 @ 0x…" begins a group of 12 equal goroutines. Its labels follow.
		if n, _, found := strings.Cut(line, " @ "); found {
			group, _ = strconv.Atoi(n)
		}
		if strings.HasPrefix(line, "# labels:") && strings.Contains(line, strconv.Quote(label)) {
			count += group
		}
	}
	return count
}
