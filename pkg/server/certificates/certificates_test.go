package certificates

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	clienttesting "k8s.io/client-go/testing"
	certutil "k8s.io/client-go/util/cert"
	"k8s.io/utils/clock"
	testingclock "k8s.io/utils/clock/testing"
)

const (
	namespace = "penstock-system"
	name      = "penstock-ca"
)

// TestReplicasConverge: replicas that start at the same time trust each other's leaves.
func TestReplicasConverge(t *testing.T) {
	secrets := fake.NewClientset().CoreV1().Secrets(namespace)
	found := make([]string, 8)
	var wg sync.WaitGroup
	for i := range found {
		wg.Go(func() {
			authority, _, err := loadOrCreate(t.Context(), secrets, name, time.Now(), nil)
			if err != nil {
				t.Errorf("replica %d: %v", i, err)
				return
			}
			found[i] = string(authority.PEM)
		})
	}
	wg.Wait()
	for i := range found {
		if found[i] != found[0] {
			t.Errorf("replica %d has another authority than replica 0", i)
		}
	}
}

func TestUnusableSecretIsLeftAlone(t *testing.T) {
	good := newSecret(t)
	cases := map[string]struct {
		reason string
		damage func(*corev1.Secret)
		now    time.Time
		want   string
	}{
		"Empty": {
			reason: "somebody made the Secret by hand and put nothing in it",
			damage: func(s *corev1.Secret) { s.Data = nil },
			want:   "reading its tls.crt",
		},
		"NoKey": {
			reason: "the key was lost",
			damage: func(s *corev1.Secret) { delete(s.Data, corev1.TLSPrivateKeyKey) },
			want:   "no private key found",
		},
		"OtherKey": {
			reason: "half of it was replaced",
			damage: func(s *corev1.Secret) { s.Data[corev1.TLSPrivateKeyKey] = newSecret(t).Data[corev1.TLSPrivateKeyKey] },
			want:   "do not belong together",
		},
		"Leaf": {
			reason: "a serving certificate was put where an authority belongs",
			damage: func(s *corev1.Secret) {
				authority, err := parse(s.Data, time.Now())
				if err != nil {
					t.Fatal(err)
				}
				s.Data[corev1.TLSCertKey], s.Data[corev1.TLSPrivateKeyKey], err = authority.sign([]string{"x"}, nil, time.Now(), time.Now().Add(time.Hour))
				if err != nil {
					t.Fatal(err)
				}
			},
			want: "not one of an authority",
		},
		"Expired": {
			reason: "ten years later",
			damage: func(*corev1.Secret) {},
			now:    time.Now().AddDate(11, 0, 0),
			want:   "expired at",
		},
		"WrongClock": {
			reason: "a clock that stands at its beginning would make leaves that nobody believes",
			damage: func(*corev1.Secret) {},
			now:    time.Unix(0, 0),
			want:   "the time here is 1970-01-01T00:00:00Z: the clock of this machine is wrong",
		},
		"Bundle": {
			reason: "what is trusted besides was damaged",
			damage: func(s *corev1.Secret) { s.Data[bundleKey] = []byte("nonsense") },
			want:   "reading its ca.crt",
		},
	}
	for n, tc := range cases {
		t.Run(n, func(t *testing.T) {
			secret := good.DeepCopy()
			tc.damage(secret)
			client := fake.NewClientset(secret)
			now := tc.now
			if now.IsZero() {
				now = time.Now()
			}
			_, _, err := loadOrCreate(t.Context(), client.CoreV1().Secrets(namespace), name, now, nil)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: got error %v, want %q", tc.reason, err, tc.want)
			}
			if err != nil && strings.Contains(err.Error(), "PRIVATE KEY") {
				t.Errorf("the error shows the key: %v", err)
			}
			after, err := client.CoreV1().Secrets(namespace).Get(t.Context(), name, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(secret.Data, after.Data); diff != "" {
				t.Errorf("the Secret was changed: %s", diff)
			}
		})
	}
}

func TestLeafIsTrusted(t *testing.T) {
	authority := anAuthority(t)
	names := []string{"penstock.penstock-system.svc", "localhost"}
	leaf, err := NewLeaf(authority, names, []net.IP{net.IPv4(127, 0, 0, 1)}, clock.RealClock{})
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority.PEM)
	for _, host := range []string{"penstock.penstock-system.svc", "localhost", "127.0.0.1"} {
		if _, err := parseLeaf(t, leaf).Verify(x509.VerifyOptions{Roots: roots, DNSName: host}); err != nil {
			t.Errorf("verifying for %s: %v", host, err)
		}
	}
	if _, err := parseLeaf(t, leaf).Verify(x509.VerifyOptions{Roots: roots, DNSName: "other.svc"}); err == nil {
		t.Error("the leaf is valid for a name it was not made for")
	}
	if _, err := tls.X509KeyPair(leaf.CurrentCertKeyContent()); err != nil {
		t.Errorf("certificate and key do not fit: %v", err)
	}
}

type listener chan struct{}

func (l listener) Enqueue() { l <- struct{}{} }

func TestLeafIsRenewedInTime(t *testing.T) {
	fake := testingclock.NewFakeClock(time.Now())
	leaf, err := NewLeaf(anAuthority(t), []string{"localhost"}, nil, fake)
	if err != nil {
		t.Fatal(err)
	}
	renewed := make(listener, 1)
	leaf.AddListener(renewed)
	ctx, cancel := context.WithCancel(t.Context())
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		leaf.Run(ctx, 1)
	}()
	defer func() {
		cancel()
		<-stopped
	}()

	for range 3 {
		old := parseLeaf(t, leaf)
		waitFor(t, fake.HasWaiters)
		fake.Step(validity*2/3 - time.Second)
		select {
		case <-renewed:
			t.Fatal("renewed too early")
		default:
		}
		fake.Step(2 * time.Second)
		select {
		case <-renewed:
		case <-time.After(10 * time.Second):
			t.Fatal("not renewed")
		}
		fresh := parseLeaf(t, leaf)
		if fresh.SerialNumber.Cmp(old.SerialNumber) == 0 {
			t.Error("the same certificate again")
		}
		if !fake.Now().Before(old.NotAfter) {
			t.Error("the old certificate had expired already")
		}
		if want := fake.Now().Add(validity).Truncate(time.Second).UTC(); !fresh.NotAfter.Equal(want) {
			t.Errorf("it expires at %s, want %s", fresh.NotAfter, want)
		}
	}
}

// TestLeafNearTheAuthoritysEnd: near the authority's end a leaf has a shorter life, and is renewed
// within it.
func TestLeafNearTheAuthoritysEnd(t *testing.T) {
	authority := anAuthority(t)
	end := authority.cert.NotAfter
	cases := map[string]struct {
		reason string
		left   time.Duration
		want   time.Duration
	}{
		"Far":    {"two thirds of a full life", validity + time.Hour, validity * 2 / 3},
		"Near":   {"two thirds of what is left", 3 * time.Hour, 2 * time.Hour},
		"Moment": {"a new leaf would not last longer, so there is no hurry", 3 * time.Second, retry},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			leaf, err := NewLeaf(authority, []string{"localhost"}, nil, testingclock.NewFakeClock(end.Add(-tc.left)))
			if err != nil {
				t.Fatal(err)
			}
			if got := leaf.untilRenewal(); got != tc.want {
				t.Errorf("%s: renewed after %s, want %s", tc.reason, got, tc.want)
			}
		})
	}
	if _, err := NewLeaf(authority, []string{"localhost"}, nil, testingclock.NewFakeClock(end.Add(time.Second))); err == nil || !strings.Contains(err.Error(), "expired at") {
		t.Errorf("an authority that has expired signed a leaf: %v", err)
	}
}

func waitFor(t *testing.T, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !condition(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("timed out")
		}
	}
}

func parseLeaf(t *testing.T, leaf *Leaf) *x509.Certificate {
	t.Helper()
	certPEM, _ := leaf.CurrentCertKeyContent()
	certs, err := certutil.ParseCertsPEM(certPEM)
	if err != nil {
		t.Fatal(err)
	}
	return certs[0]
}

func newSecret(t *testing.T) *corev1.Secret {
	t.Helper()
	secrets := newSecrets()
	if _, _, err := loadOrCreate(t.Context(), secrets, name, time.Now(), nil); err != nil {
		t.Fatal(err)
	}
	secret, err := secrets.Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return secret
}

func anAuthority(t *testing.T) *Authority {
	t.Helper()
	authority, _, err := loadOrCreate(t.Context(), newSecrets(), name, time.Now(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return authority
}

func newSecrets() typedcorev1.SecretInterface {
	return fake.NewClientset().CoreV1().Secrets(namespace)
}

// TestNoNamespace: without --register, the error says what --register would have created.
func TestNoNamespace(t *testing.T) {
	client := fake.NewClientset()
	client.PrependReactor("create", "secrets", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, namespace)
	})
	_, _, err := loadOrCreate(t.Context(), client.CoreV1().Secrets(namespace), name, time.Now(), nil)
	if err == nil || !strings.Contains(err.Error(), "the namespace does not exist; create it, or start with --register") {
		t.Errorf("got %v", err)
	}
}
