package certificates

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/penstock-project/penstock/pkg/objectwatch"
)

const (
	// renewBefore is the time before the end of an authority at which a new authority replaces it.
	renewBefore = 365 * 24 * time.Hour
	// lookAgain is the interval of checks for an authority to renew, or a former authority to
	// remove.
	lookAgain    = 12 * time.Hour
	refreshRetry = 5 * time.Second
)

// AuthoritySecret is the name of the Secret with the authority that all replicas share.
const AuthoritySecret = "penstock-ca"

// Shared is the authority that all replicas share. It watches the Secret. The first replica to
// notice replaces the authority before it expires, or when the Secret was deleted. A replaced
// authority stays trusted for a while, so that replicas need not change at the same time.
type Shared struct {
	client    kubernetes.Interface
	namespace string
	name      string
	clock     clock.WithTicker

	mu        sync.RWMutex
	current   *Authority
	listeners []dynamiccertificates.Listener
}

// Share reads or creates the authority. See loadOrCreate.
func Share(ctx context.Context, client kubernetes.Interface, namespace, name string, clock clock.WithTicker) (*Shared, error) {
	s := &Shared{client: client, namespace: namespace, name: name, clock: clock}
	if err := s.Refresh(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *Shared) secrets() typedcorev1.SecretInterface { return s.client.CoreV1().Secrets(s.namespace) }

// Authority returns the current authority. It is never changed.
func (s *Shared) Authority() *Authority {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.current
}

// AddListener adds a listener for changes of the authority or of the trusted certificates.
func (s *Shared) AddListener(listener dynamiccertificates.Listener) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listeners = append(s.listeners, listener)
}

// Refresh reads the Secret now. After an error the authority is unchanged.
func (s *Shared) Refresh(ctx context.Context) error {
	now := s.clock.Now()
	var former []byte
	if present := s.Authority(); present != nil {
		former = present.PEM
	}
	found, secret, err := loadOrCreate(ctx, s.secrets(), s.name, now, former)
	if err != nil {
		return err
	}
	if now.After(found.cert.NotAfter.Add(-renewBefore)) {
		if found, err = s.succeed(ctx, found, secret, now); err != nil {
			return err
		}
	}
	s.set(found)
	return nil
}

// succeed replaces the authority in its Secret. If several replicas try, only one succeeds. The
// other replicas get a conflict and read the Secret again.
func (s *Shared) succeed(ctx context.Context, old *Authority, secret *corev1.Secret, now time.Time) (*Authority, error) {
	data, err := newAuthority(s.name, now, old.PEM)
	if err != nil {
		return nil, err
	}
	next := secret.DeepCopy()
	next.Data = data
	if next, err = s.secrets().Update(ctx, next, metav1.UpdateOptions{}); err != nil {
		return nil, fmt.Errorf("replacing the certificate authority in secret %s, which ends at %s: %w",
			s.name, old.cert.NotAfter.UTC().Format(time.RFC3339), err)
	}
	return parse(next.Data, now)
}

func (s *Shared) set(found *Authority) {
	s.mu.Lock()
	same := s.current != nil && s.current.cert.Equal(found.cert) && bytes.Equal(s.current.PEM, found.PEM)
	if !same {
		s.current = found
	}
	listeners := slices.Clone(s.listeners)
	s.mu.Unlock()
	if same {
		return
	}
	for _, listener := range listeners {
		listener.Enqueue()
	}
}

// Run watches the Secret until ctx ends.
func (s *Shared) Run(ctx context.Context) {
	log := klog.FromContext(ctx).WithName("certificates")
	touched := make(chan struct{}, 1)
	var watching sync.WaitGroup
	defer watching.Wait()
	watching.Go(func() { s.watch(ctx, touched) })
	wait := lookAgain
	for {
		timer := s.clock.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C():
		case <-touched:
			timer.Stop()
		}
		before := s.Authority()
		wait = lookAgain
		if err := s.Refresh(ctx); err != nil && ctx.Err() == nil {
			log.Error(err, "The certificate authority cannot be read; using the one that was read last", "retryAfter", refreshRetry)
			wait = refreshRetry
		}
		if now := s.Authority(); now != before {
			log.Info("The certificate authority or its bundle has changed", "notAfter", now.cert.NotAfter)
		}
	}
}

// watch sends to touched when the Secret may have changed.
func (s *Shared) watch(ctx context.Context, touched chan<- struct{}) {
	notify := func() {
		select {
		case touched <- struct{}{}:
		default:
		}
	}
	objectwatch.New(s.client, s.secrets(), &corev1.Secret{}, objectwatch.Options{
		Name: s.name, Changed: notify,
		// The watch keeps nothing: refresh reads the Secret when it is needed.
		Keep: func(object any) (any, error) {
			if secret, ok := object.(*corev1.Secret); ok {
				return &corev1.Secret{ObjectMeta: secret.ObjectMeta}, nil
			}
			return object, nil
		},
	}).Run(ctx)
}
