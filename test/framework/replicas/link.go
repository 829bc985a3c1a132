package replicas

import (
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"time"
)

// Link is a network connection between two programs: it forwards connections to the target unless
// it is cut or stalled.
type Link struct {
	listener net.Listener
	target   string
	dialer   net.Dialer

	mu    sync.Mutex
	pairs map[*pair]struct{}
	cut   bool
	// open is closed while bytes flow.
	open  chan struct{}
	delay time.Duration
}

// pair are the two halves of a connection.
type pair struct{ near, far net.Conn }

func (p *pair) close() {
	// Unread bytes do not matter: a cut says nothing to either end.
	_ = p.near.Close()
	_ = p.far.Close()
}

// newLink makes a link to an address that is there until the test ends. From, if
// given, is the address that the target sees.
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

// Address is the address of the near end of the link.
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

// Delay lets everything through later.
func (l *Link) Delay(by time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.delay = by
}

// Heal makes the link whole. Stalled bytes arrive.
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

// pump copies one direction as the link allows. The end of one direction is that of
// the connection: nobody here half-closes.
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

// pass waits until bytes may go on.
func (l *Link) pass() {
	l.mu.Lock()
	open, delay := l.open, l.delay
	l.mu.Unlock()
	time.Sleep(delay)
	<-open
}
