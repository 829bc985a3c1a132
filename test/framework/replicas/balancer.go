package replicas

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"
)

const (
	// probePeriod is the interval of the balancer's readiness probes. probeTimeout bounds the wait
	// for an answer.
	probePeriod  = 200 * time.Millisecond
	probeTimeout = time.Second
)

// balancer is the Service in front of the replicas. It replaces kubelet's probes and kube-proxy. It
// distributes new connections to ready replicas in turn. As with kube-proxy, an existing connection
// stays with its replica until one end closes it.
type balancer struct {
	listener net.Listener

	mu       sync.Mutex
	backends map[int]*backend // by replica
	next     int
}

type backend struct {
	port  int
	ready bool
	stop  context.CancelFunc
}

func newBalancer(t testing.TB) *balancer {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("replicas: %v", err)
	}
	b := &balancer{listener: listener, backends: map[int]*backend{}}
	t.Cleanup(func() {
		_ = listener.Close()
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, found := range b.backends {
			found.stop()
		}
	})
	go b.accept()
	return b
}

func (b *balancer) port() int { return b.listener.Addr().(*net.TCPAddr).Port }

// set sets the port of a replica.
func (b *balancer) set(replica, port int) {
	ctx, stop := context.WithCancel(context.Background())
	added := &backend{port: port, stop: stop}
	b.mu.Lock()
	if before := b.backends[replica]; before != nil {
		before.stop()
	}
	b.backends[replica] = added
	b.mu.Unlock()
	go b.probe(ctx, added)
}

// probe checks the readiness of a replica with the probe of its Deployment.
func (b *balancer) probe(ctx context.Context, of *backend) {
	client := &http.Client{Timeout: probeTimeout, Transport: &http.Transport{
		// Probe like a kubelet: do not verify the certificate, and open a new connection each time.
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true,
	}}
	for ctx.Err() == nil {
		response, err := client.Get(fmt.Sprintf("https://127.0.0.1:%d/readyz?exclude=store-identity&exclude=store-space&exclude=store-records", of.port))
		ready := err == nil && response.StatusCode == http.StatusOK
		if err == nil {
			_ = response.Body.Close()
		}
		b.mu.Lock()
		of.ready = ready
		b.mu.Unlock()
		select {
		case <-ctx.Done():
		case <-time.After(probePeriod):
		}
	}
}

func (b *balancer) accept() {
	for {
		near, err := b.listener.Accept()
		if err != nil {
			return
		}
		go b.join(near)
	}
}

// join connects a client with a ready replica.
func (b *balancer) join(near net.Conn) {
	for range 3 {
		port := b.choose()
		if port == 0 {
			break
		}
		far, err := net.Dial("tcp", fmt.Sprint("127.0.0.1:", port))
		if err != nil {
			continue // the replica has just ended
		}
		whole := make(chan struct{})
		close(whole)
		l := &Link{open: whole}
		p := &pair{near: near, far: far}
		go l.pump(p, far, near)
		l.pump(p, near, far)
		return
	}
	_ = near.Close()
}

// choose returns the port of the next ready replica, or 0.
func (b *balancer) choose() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	for range Replicas {
		b.next++
		if found := b.backends[b.next%Replicas]; found != nil && found.ready {
			return found.port
		}
	}
	return 0
}

// ready reports whether a replica is ready.
func (b *balancer) ready(replica int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	found := b.backends[replica]
	return found != nil && found.ready
}
