package certificates

import (
	"context"
	"crypto/x509"
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	certutil "k8s.io/client-go/util/cert"
	"k8s.io/utils/clock"
	testingclock "k8s.io/utils/clock/testing"
)

func trusted(t *testing.T, bundle []byte) []*x509.Certificate {
	t.Helper()
	certs, err := certutil.ParseCertsPEM(bundle)
	if err != nil {
		t.Fatal(err)
	}
	return certs
}

func verifies(t *testing.T, bundle []byte, leaf *Leaf, now time.Time) error {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(bundle)
	_, err := parseLeaf(t, leaf).Verify(x509.VerifyOptions{Roots: roots, DNSName: "localhost", CurrentTime: now})
	return err
}

// TestSuccession: a year before the authority ends, one replica creates its successor, and all
// replicas use it. Leaves of both are trusted until no leaf of the first remains.
func TestSuccession(t *testing.T) {
	later := testingclock.NewFakeClock(time.Now())
	client := fake.NewClientset()
	replicas := make([]*Shared, 3)
	for i := range replicas {
		var err error
		if replicas[i], err = Share(t.Context(), client, namespace, name, later); err != nil {
			t.Fatal(err)
		}
	}
	old := replicas[0].Authority()
	leaf, err := NewLeaf(old, []string{"localhost"}, nil, later)
	if err != nil {
		t.Fatal(err)
	}

	later.SetTime(old.cert.NotAfter.Add(-renewBefore - time.Minute))
	refreshAll(t, replicas)
	if !replicas[0].Authority().cert.Equal(old.cert) {
		t.Fatal("the authority was replaced too early")
	}
	if err := leaf.renew(); err != nil {
		t.Fatal(err)
	}
	later.Step(2 * time.Minute)
	refreshAll(t, replicas)
	next := replicas[0].Authority()
	for i, replica := range replicas {
		now := replica.Authority()
		if now.cert.Equal(old.cert) || !now.cert.Equal(next.cert) {
			t.Fatalf("replica %d has another authority than its peers, or the old one", i)
		}
		if err := verifies(t, now.PEM, leaf, later.Now()); err != nil {
			t.Errorf("replica %d does not trust the leaf that is served now: %v", i, err)
		}
	}
	leaf.Use(next)
	if err := leaf.renew(); err != nil {
		t.Fatal(err)
	}
	if err := verifies(t, next.PEM, leaf, later.Now()); err != nil {
		t.Errorf("a leaf of the new authority: %v", err)
	}
	if err := verifies(t, old.PEM, leaf, later.Now()); err == nil {
		t.Error("the leaf is still signed by the old one")
	}

	later.Step(overlap + time.Minute)
	refreshAll(t, replicas)
	if got := trusted(t, replicas[0].Authority().PEM); len(got) != 1 || !got[0].Equal(next.cert) {
		t.Errorf("%d authorities are trusted, want the new one alone", len(got))
	}
}

// refreshAll refreshes the replicas one after the other, because the fake client reports no
// conflicts.
func refreshAll(t *testing.T, replicas []*Shared) {
	t.Helper()
	for _, replica := range replicas {
		if err := replica.Refresh(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// TestDeletedSecret: a user deletes the Secret to get a new authority.
func TestDeletedSecret(t *testing.T) {
	client := fake.NewClientset()
	secrets := client.CoreV1().Secrets(namespace)
	shared, stop := running(t, client)
	defer stop()
	old := shared.Authority()
	told := make(listener, 10)
	shared.AddListener(told)
	if err := secrets.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	hear(t, told)
	now := shared.Authority()
	if now.cert.Equal(old.cert) {
		t.Fatal("the authority is the old one")
	}
	if got := trusted(t, now.PEM); len(got) != 2 || !got[0].Equal(now.cert) || !got[1].Equal(old.cert) {
		t.Errorf("%d authorities are trusted, want the new one and the old one", len(got))
	}
}

// TestChangedSecret: a valid certificate that another writer put into the Secret is used; an
// invalid certificate is not.
func TestChangedSecret(t *testing.T) {
	client := fake.NewClientset()
	secrets := client.CoreV1().Secrets(namespace)
	shared, stop := running(t, client)
	defer stop()
	old := shared.Authority()
	told := make(listener, 10)
	shared.AddListener(told)

	secret, err := secrets.Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	good := secret.DeepCopy()
	secret.Data = nil
	if _, err := secrets.Update(t.Context(), secret, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := shared.Refresh(t.Context()); err == nil {
		t.Error("nonsense is no error")
	}
	if shared.Authority() != old {
		t.Error("the authority in use was given up for nonsense")
	}
	if good.Data, err = newAuthority(name, time.Now(), nil); err != nil {
		t.Fatal(err)
	}
	if _, err := secrets.Update(t.Context(), good, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	hear(t, told)
	if got := trusted(t, shared.Authority().PEM); len(got) != 1 || got[0].Equal(old.cert) {
		t.Error("what a person does not trust any more is trusted")
	}
}

func running(t *testing.T, client kubernetes.Interface) (*Shared, func()) {
	t.Helper()
	shared, err := Share(t.Context(), client, namespace, name, clock.RealClock{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		shared.Run(ctx)
	}()
	return shared, func() {
		cancel(errors.New("the test is over"))
		<-stopped
	}
}

func hear(t *testing.T, told listener) {
	t.Helper()
	select {
	case <-told:
	case <-time.After(30 * time.Second):
		t.Fatal("nothing was told")
	}
}
