package target

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"

	"github.com/penstock-project/penstock/pkg/rollout"
	"github.com/penstock-project/penstock/pkg/rollout/observe"
)

type blind struct{ rollout.Observer }

func (blind) Want(string, ...observe.Interest) {}
func (blind) Drop(string)                      {}

const leads = `apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: "https://SERVER:6443"}}]
users: [{name: u, user: {token: sesame}}]
`

func secret(name, key, text string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "penstock"}, Data: map[string][]byte{key: []byte(text)}}
}

func to(server string) string { return strings.ReplaceAll(leads, "SERVER", server) }

// hostWithTargets is a host with Secrets, and target clusters by their address.
type hostWithTargets struct {
	t        *testing.T
	client   *fake.Clientset
	targets  *Targets
	notified chan string
	opened   chan string
	ended    chan string
}

func newHostWithTargets(t *testing.T) *hostWithTargets {
	w := &hostWithTargets{t: t, client: fake.NewClientset(), notified: make(chan string, 100), opened: make(chan string, 10), ended: make(chan string, 10)}
	ctx, cancel := context.WithCancel(t.Context())
	server := ""
	w.targets = New(ctx, Options{
		Client: w.client, Namespace: "penstock",
		Enter: func(_ context.Context, config *rest.Config) (string, error) {
			server = strings.TrimSuffix(strings.TrimPrefix(config.Host, "https://"), ":6443")
			switch server {
			case "claimed":
				return "", &ClaimedError{"another"}
			case "silent":
				return "", errors.New("no answer")
			}
			return "uid of " + server, nil
		},
		Open: func(_ context.Context, config *rest.Config) (*rollout.Engine, func(context.Context) error, error) {
			at := server
			w.opened <- at
			return rollout.New(rollout.Options{Observer: blind{}}), func(ctx context.Context) error {
				<-ctx.Done()
				w.ended <- at
				return nil
			}, nil
		},
		Notify: func(chain string) { w.notified <- chain },
	})
	t.Cleanup(func() {
		cancel()
		w.targets.Wait()
	})
	return w
}

// use waits until a chain's answer is this cluster, or an error that contains this text.
func (w *hostWithTargets) use(chain, secret, want string) Cluster {
	w.t.Helper()
	deadline := time.After(time.Minute)
	for {
		cluster, err := w.targets.Use(chain, secret)
		switch {
		case err == nil && cluster.ID == want, err != nil && want != "" && strings.Contains(err.Error(), want):
			return cluster
		}
		select {
		case <-w.notified:
		case <-deadline:
			w.t.Fatalf("%s by %s: got %+v, error %v, want %q", chain, secret, cluster, err, want)
		}
	}
}

func (w *hostWithTargets) gets(from chan string, want string) {
	w.t.Helper()
	select {
	case got := <-from:
		if got != want {
			w.t.Fatalf("got %q, want %q", got, want)
		}
	case <-time.After(time.Minute):
		w.t.Fatalf("nothing came, want %q", want)
	}
}

func (w *hostWithTargets) put(secret *corev1.Secret) {
	w.t.Helper()
	secrets := w.client.CoreV1().Secrets("penstock")
	if _, err := secrets.Update(w.t.Context(), secret, metav1.UpdateOptions{}); err == nil {
		return
	}
	if _, err := secrets.Create(w.t.Context(), secret, metav1.CreateOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

// TestTargets: each cluster has one engine while a chain uses it. Chains are notified of each
// change of the Secret.
func TestTargets(t *testing.T) {
	w := newHostWithTargets(t)
	if _, err := w.targets.Use("a", "hosted"); !errors.Is(err, ErrNotYet) {
		t.Errorf("at first: %v", err)
	}
	w.use("a", "hosted", "penstock/hosted cannot be used: there is no such Secret")
	w.put(secret("hosted", "other", to("one")))
	w.use("a", "hosted", "it has neither key kubeconfig nor key value")
	w.put(secret("hosted", "kubeconfig", "sesame"))
	w.use("a", "hosted", "key kubeconfig is not a kubeconfig")
	w.put(secret("hosted", "value", to("one")))
	first := w.use("a", "hosted", "uid of one")
	w.gets(w.opened, "one")
	if second := w.use("b", "hosted", "uid of one"); second != first {
		t.Error("two chains have two engines for one cluster")
	}

	// Without the Secret nothing is rolled out. If the same cluster returns, its engine continues.
	if err := w.client.CoreV1().Secrets("penstock").Delete(t.Context(), "hosted", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.use("a", "hosted", "no such Secret")
	w.put(secret("hosted", "kubeconfig", to("one")))
	if again := w.use("a", "hosted", "uid of one"); again != first {
		t.Error("the engine of the same cluster is another one")
	}
	w.put(secret("hosted", "kubeconfig", to("claimed")))
	w.use("a", "hosted", "belongs to another Penstock")
	w.put(secret("hosted", "kubeconfig", to("two")))
	if other := w.use("a", "hosted", "uid of two"); other.Engine == first.Engine {
		t.Error("what is known of one cluster is taken for another's")
	}
	w.gets(w.ended, "one")
	w.gets(w.opened, "two")
	// The new kubeconfig cannot be checked, so the earlier connection stays in use.
	w.put(secret("hosted", "kubeconfig", to("silent")))
	w.use("b", "hosted", "uid of two")

	w.targets.Leave("a")
	w.targets.Leave("a")
	if n := w.targets.Followed(); n != 1 {
		t.Errorf("%d Secrets are followed while one chain needs one", n)
	}
	w.use("b", "elsewhere", "no such Secret") // so b no longer uses hosted
	w.gets(w.ended, "two")
	w.targets.Leave("b")
	if n := w.targets.Followed(); n != 0 {
		t.Errorf("%d Secrets are followed for nobody", n)
	}
}
