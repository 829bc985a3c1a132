package notify

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/penstock-project/penstock/pkg/notify"
	"github.com/penstock-project/penstock/pkg/outbound"
	"github.com/penstock-project/penstock/pkg/store/outbox"
	"github.com/penstock-project/penstock/pkg/store/storetest"
)

func fact(kind notify.Type, reason string, since int64) notify.Fact {
	return notify.Fact{Type: kind, Reason: reason, Since: time.Unix(since, 0), At: time.Unix(since, 0)}
}

func TestCompare(t *testing.T) {
	const began = 1000
	marked := func(key string, since, at int64) []outbox.Mark {
		return []outbox.Mark{{Key: key, Since: since, At: at}}
	}
	for name, tc := range map[string]struct {
		reason string
		marks  []outbox.Mark
		fact   notify.Fact
		now    int64
		told   bool
	}{
		"new":              {"nobody was told", nil, fact(notify.Halted, "Collision", 1500), 1500, true},
		"recorded":         {"it is the same one", marked("Halted/Collision", 1500, 1500), fact(notify.Halted, "Collision", 1500), 9e6, false},
		"came back":        {"it ended and came back, within the hour", marked("Halted/Collision", 1500, 1500), fact(notify.Halted, "Collision", 1600), 1600, false},
		"clock was ahead":  {"it was told in a time to come", marked("Halted/Collision", 1500, 9e6), fact(notify.Halted, "Collision", 1600), 1600, true},
		"came back later":  {"it is news again", marked("Halted/Collision", 1500, 1500), fact(notify.Halted, "Collision", 9000), 9000, true},
		"other reason":     {"something else is wrong", marked("Halted/Collision", 1500, 1500), fact(notify.Halted, "Refused", 1600), 1600, true},
		"ended before":     {"nobody listened then", nil, fact(notify.Completed, "RolledOut", 900), 1500, false},
		"ended just then":  {"times of conditions are whole seconds", nil, fact(notify.Completed, "RolledOut", began), 1500, false},
		"lasts since then": {"it waits still", nil, fact(notify.WaitingForApproval, "Proposed", 900), 1500, true},
	} {
		marks, fresh, rest := compare(tc.marks, []notify.Fact{tc.fact}, time.Unix(began, 0), time.Unix(tc.now, 0))
		if (len(fresh) == 1) != tc.told {
			t.Errorf("%s: %s: told %v", name, tc.reason, fresh)
		}
		if want := map[bool]time.Duration{true: repeatAfter - 100*time.Second}[name == "came back"]; rest != want {
			t.Errorf("%s: it is compared again after %s, want %s", name, rest, want)
		}
		if again, twice, _ := compare(marks, []notify.Fact{tc.fact}, time.Unix(began, 0), time.Unix(tc.now, 0)); len(twice) > 0 || !cmp.Equal(marks, again) {
			t.Errorf("%s: it is told twice", name)
		}
	}
}

type nothing struct{}

func (nothing) AddEventHandler(cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	return nil, nil //nolint:nilnil // the test does not use it
}
func (nothing) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return nil
}
func (nothing) List(context.Context, client.ObjectList, ...client.ListOption) error { return nil }

type far struct {
	mu     sync.Mutex
	status int
	bodies []string
	more   chan struct{}
	secret *corev1.Secret
}

func newFar(t *testing.T) *far {
	t.Helper()
	f := &far{status: http.StatusOK, more: make(chan struct{}, 1000)}
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		f.mu.Lock()
		defer f.mu.Unlock()
		w.WriteHeader(f.status)
		f.bodies = append(f.bodies, fmt.Sprintf("%d %s", f.status, body))
		f.more <- struct{}{}
	}))
	t.Cleanup(server.Close)
	roots := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	f.secret = &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "far", UID: "far-uid", ResourceVersion: "1", Labels: map[string]string{notify.ReceiverLabel: "true"}},
		Data:       map[string][]byte{"url": []byte(server.URL), "key": []byte("0123456789abcdef"), "ca.crt": roots},
	}
	return f
}

func (f *far) answer(status int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.status = status
}

// await returns the body of the first request that contains a text.
func (f *far) await(t *testing.T, says string) string {
	t.Helper()
	for {
		f.mu.Lock()
		for _, body := range f.bodies {
			if strings.Contains(body, says) {
				f.mu.Unlock()
				return body
			}
		}
		f.mu.Unlock()
		select {
		case <-f.more:
		case <-time.After(time.Minute):
			t.Fatalf("nothing that says %q is sent: %v", says, f.bodies)
		}
	}
}

// run runs the loop until the end of the test or a call of stop.
func run(t *testing.T, kv clientv3.KV, secrets *fake.Clientset) (c *Controller, stop func()) {
	t.Helper()
	c = New(Options{
		Secrets: secrets, Namespace: "ns", Revisions: nothing{}, Plans: nothing{}, Reader: nothing{}, Outbox: outbox.New(kv, "/p"), Source: "s",
		Dialer: outbound.Dialer{Check: func(netip.AddrPort, []netip.AddrPort) error { return nil }},
		Events: record.NewFakeRecorder(1000), Clock: clock.RealClock{},
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := c.Run(ctx); err != nil {
			t.Error(err)
		}
	}()
	stop = func() { cancel(); <-ended }
	t.Cleanup(stop)
	return c, stop
}

func (c *Controller) halt(name string) {
	subject := notify.Subject{Kind: "ClusterExtension", Name: name, UID: name + "-uid"}
	c.Note(subject, []notify.Fact{fact(notify.Failed, "Denied", time.Now().Unix()+60)})
}

// TestManyWhileDown: events that a receiver misses during an outage arrive as one event, which has
// the same content in the next process.
func TestManyWhileDown(t *testing.T) {
	kv, to := storetest.NewMemory(), newFar(t)
	secrets := fake.NewClientset(to.secret)
	c, stop := run(t, kv, secrets)
	to.await(t, "dev.penstock.Connected")
	to.answer(http.StatusBadGateway)
	for i := range 40 {
		c.halt(fmt.Sprintf("e%d", i))
	}
	summary := to.await(t, "dev.penstock.Summary")
	stop()
	to.answer(http.StatusOK)
	_, _ = run(t, kv, secrets)
	again := to.await(t, "200 {\"specversion\":\"1.0\",\"id\":\""+idIn(t, summary))
	if !strings.Contains(again, "notifications: ") || !strings.Contains(again, "Failed") {
		t.Error(again)
	}
}

func idIn(t *testing.T, body string) string {
	t.Helper()
	var event notify.Event
	if err := json.Unmarshal([]byte(body[4:]), &event); err != nil {
		t.Fatal(err)
	}
	return event.ID
}

// TestNothingAtRest: the store has records of notifications only while there is a receiver.
func TestNothingAtRest(t *testing.T) {
	kv, to := storetest.NewMemory(), newFar(t)
	secrets := fake.NewClientset()
	c, _ := run(t, kv, secrets)
	c.halt("early") // it lasts, but there is no receiver yet
	records := func() int {
		found, err := kv.Get(t.Context(), "/p/", clientv3.WithPrefix())
		if err != nil {
			t.Fatal(err)
		}
		return len(found.Kvs)
	}
	if _, err := secrets.CoreV1().Secrets("ns").Create(t.Context(), to.secret, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	to.await(t, "dev.penstock.Connected")
	to.await(t, "ClusterExtension early")
	if records() == 0 {
		t.Error("nothing is recorded")
	}
	if err := secrets.CoreV1().Secrets("ns").Delete(t.Context(), "far", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(time.Minute); records() > 0; {
		if time.Now().After(end) {
			t.Fatalf("%d records are left", records())
		}
		<-time.After(10 * time.Millisecond)
	}
}

// TestOvertaken: a loop whose store another process took over starts again from the stored state,
// and loses nothing.
func TestOvertaken(t *testing.T) {
	kv, to := storetest.NewMemory(), newFar(t)
	c, _ := run(t, kv, fake.NewClientset(to.secret))
	to.await(t, "dev.penstock.Connected")
	if _, err := outbox.New(kv, "/p").Begin(t.Context(), time.Now()); err != nil {
		t.Fatal(err)
	}
	c.halt("taken")
	to.await(t, "ClusterExtension taken")
}
