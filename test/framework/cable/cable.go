// Package cable forwards connections to a server. A test can cut and mend the cable, and add
// latency:
//
//	way := cable.New(t, address) // connect to way.Address()
//	way.Far(t, 50*time.Millisecond)
//	way.Cut()
//	way.Mend(t)
package cable

import (
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/penstock-project/penstock/test/framework/port"
)

// Cable accepts connections at its own address, and forwards them to a server. It is safe for
// concurrent use.
type Cable struct {
	mu       sync.Mutex
	to       string
	address  string
	delay    time.Duration // in one direction
	listener net.Listener
	// open holds the open connections. It is nil while the cable is cut.
	open map[net.Conn]bool
}

// New starts a cable to a host:port until the test ends.
func New(t testing.TB, to string) *Cable {
	t.Helper()
	free, err := port.Free()
	if err != nil {
		t.Fatalf("cable: %v", err)
	}
	c := &Cable{to: to, address: fmt.Sprint("127.0.0.1:", free)}
	c.Mend(t)
	t.Cleanup(c.Cut)
	return c
}

// Address returns the address on which the cable listens. It never changes.
func (c *Cable) Address() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.address
}

// LeadTo forwards new connections to another host:port, for a server whose address was unknown when
// the cable was created.
func (c *Cable) LeadTo(address string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.to = address
}

// Mend accepts connections again.
func (c *Cable) Mend(t testing.TB) {
	t.Helper()
	listener, err := net.Listen("tcp", c.Address())
	if err != nil {
		t.Fatalf("cable: %v", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.listener, c.open = listener, map[net.Conn]bool{}
	go func() {
		for {
			here, err := listener.Accept()
			if err != nil {
				return // the cable was cut
			}
			go c.carry(here)
		}
	}()
}

// Cut closes all connections and refuses new ones.
func (c *Cable) Cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	_ = c.listener.Close()
	c.end()
	c.open = nil
}

// end closes all connections. The caller holds the lock.
func (c *Cable) end() {
	for connection := range c.open {
		_ = connection.Close()
	}
}

// Far delays new connections by a round trip. It closes existing connections, whose clients
// reconnect.
func (c *Cable) Far(t testing.TB, roundTrip time.Duration) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open == nil {
		t.Fatal("cable: the connection is cut")
	}
	c.delay = roundTrip / 2
	c.end()
}

func (c *Cable) carry(here net.Conn) {
	c.mu.Lock()
	to := c.to
	c.mu.Unlock()
	there, err := net.Dial("tcp", to)
	if err != nil {
		_ = here.Close()
		return
	}
	c.mu.Lock()
	if c.open == nil { // the cable was cut meanwhile
		c.mu.Unlock()
		_, _ = here.Close(), there.Close()
		return
	}
	c.open[here], c.open[there] = true, true
	delay := c.delay
	c.mu.Unlock()
	done := make(chan struct{}, 2)
	for _, pair := range [][2]net.Conn{{here, there}, {there, here}} {
		go func() {
			transfer(pair[0], pair[1], delay)
			done <- struct{}{}
		}()
	}
	<-done
	_, _ = here.Close(), there.Close()
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.open, here)
	delete(c.open, there)
}

// chunk is the result of one read.
type chunk struct {
	due  time.Time
	data []byte
}

// transfer copies one direction with a delay. Many bytes may be in flight at the same time.
func transfer(to io.Writer, from io.Reader, delay time.Duration) {
	if delay == 0 {
		_, _ = io.Copy(to, from)
		return
	}
	const underWay = 4096
	chunks := make(chan chunk, underWay)
	var writing sync.WaitGroup
	writing.Go(func() {
		var err error
		for one := range chunks {
			if err == nil {
				time.Sleep(time.Until(one.due)) // simulates latency, and waits for no event
				_, err = to.Write(one.data)
			}
		}
	})
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			chunks <- chunk{time.Now().Add(delay), append([]byte(nil), buffer[:n]...)}
		}
		if err != nil {
			break
		}
	}
	close(chunks)
	writing.Wait()
}
