package rollout

import (
	"io"
	"net"
	"sync"
	"testing"
	"time"
)

// delayed opens a way to an address on which everything takes half of a round trip
// in each direction. It returns where the way begins.
func delayed(t *testing.T, address string, roundTrip time.Duration) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return // the test has ended
			}
			far, err := net.Dial("tcp", address)
			if err != nil {
				near.Close()
				continue
			}
			go carry(near, far, roundTrip/2)
			go carry(far, near, roundTrip/2)
		}
	}()
	return listener.Addr().String()
}

// chunk is what was read at a time.
type chunk struct {
	due  time.Time
	data []byte
}

// carry copies from one connection to the other, everything later by a delay.
// Much may be under way at the same time.
func carry(from, to net.Conn, delay time.Duration) {
	const underWay = 4096
	chunks := make(chan chunk, underWay)
	var writing sync.WaitGroup
	writing.Go(func() {
		defer to.Close()
		for c := range chunks {
			time.Sleep(time.Until(c.due))
			if _, err := to.Write(c.data); err != nil {
				break
			}
		}
		for range chunks {
			continue // nobody reads any more
		}
	})
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			chunks <- chunk{due: time.Now().Add(delay), data: append([]byte(nil), buffer[:n]...)}
		}
		if err != nil {
			break // io.EOF, or the other side has closed
		}
	}
	close(chunks)
	writing.Wait()
	_ = from.Close()
}

// TestDelayed: a message and its answer take a round trip.
func TestDelayed(t *testing.T) {
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	go func() {
		conn, err := server.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		_, _ = io.Copy(conn, conn)
	}()
	const roundTrip = 40 * time.Millisecond
	conn, err := net.Dial("tcp", delayed(t, server.Addr().String(), roundTrip))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	began := time.Now()
	if _, err := conn.Write([]byte("ping")); err != nil {
		t.Fatal(err)
	}
	answer := make([]byte, 4)
	if _, err := io.ReadFull(conn, answer); err != nil || string(answer) != "ping" {
		t.Fatalf("the answer is %q: %v", answer, err)
	}
	if took := time.Since(began); took < roundTrip {
		t.Errorf("a round trip took %s, less than %s", took, roundTrip)
	}
}
