package replicas

import (
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"time"
)

// Link is a network connection between two programs. It forwards connections to the target unless
// it is cut or stalled.
type Link struct {
	listener net.Listener
	target   string
	dialer   net.Dialer

	mu    sync.Mutex
	pairs map[*pair]struct{}
	cut   bool
	// open is a closed channel while bytes flow.
	open  chan struct{}
	delay time.Duration
}

// pair is the two halves of a connection.
type pair struct{ near, far net.Conn }

func (p *pair) close() {
	// Errors do not matter, because a cut need not be clean.
	_ = p.near.Close()
	_ = p.far.Close()
}

// newLink starts a link to target until the test ends. from, if not nil, is the source address that
// the target sees.
func newLink(t testing.TB, target string, from net.IP) *Link {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("replicas: %v", err)
	}
	l := &Link{listener: listener, target: target, pairs: map[*pair]struct{}{}, open: make(chan struct{})}
	if from != nil {
		l.dialer.LocalAddr = &net.TCPAddr{IP: from}
	}
	close(l.open)
	t.Cleanup(func() {
		_ = listener.Close()
		l.Cut()
	})
	go l.accept()
	return l
}

// Address returns the address on which the link listens.
func (l *Link) Address() string { return l.listener.Addr().String() }

// Cut closes all connections and refuses new ones.
func (l *Link) Cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = true
	for p := range l.pairs {
		p.close()
	}
}

// Stall keeps connections, accepts new ones, and forwards nothing, without an error.
func (l *Link) Stall() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open = make(chan struct{})
}

// Delay delays all bytes.
func (l *Link) Delay(by time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.delay = by
}

// Heal repairs the link. Stalled bytes arrive.
func (l *Link) Heal() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut, l.delay = false, 0
	select {
	case <-l.open:
	default:
		close(l.open)
	}
}

func (l *Link) accept() {
	for {
		near, err := l.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err == nil {
			go l.join(near)
		}
	}
}

// join connects an accepted connection with the target.
func (l *Link) join(near net.Conn) {
	l.mu.Lock()
	cut := l.cut
	l.mu.Unlock()
	if cut {
		_ = near.Close()
		return
	}
	far, err := l.dialer.Dial("tcp", l.target)
	if err != nil {
		_ = near.Close()
		return
	}
	p := &pair{near: near, far: far}
	l.mu.Lock()
	if l.cut {
		p.close()
	}
	l.pairs[p] = struct{}{}
	l.mu.Unlock()
	var halves sync.WaitGroup
	halves.Go(func() { l.pump(p, far, near) })
	halves.Go(func() { l.pump(p, near, far) })
	halves.Wait()
	l.mu.Lock()
	delete(l.pairs, p)
	l.mu.Unlock()
}

// pump copies one direction if the link allows it. The end of one direction closes the connection:
// no program here half-closes.
func (l *Link) pump(p *pair, to io.Writer, from io.Reader) {
	defer p.close()
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			l.pass()
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// pass waits until bytes may flow.
func (l *Link) pass() {
	l.mu.Lock()
	open, delay := l.open, l.delay
	l.mu.Unlock()
	time.Sleep(delay)
	<-open
}
