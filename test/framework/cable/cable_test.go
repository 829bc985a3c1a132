package cable

import (
	"io"
	"net"
	"testing"
	"time"
)

// TestCable: a message and its answer take a round trip. A cut closes connections and refuses new
// ones. Afterwards the same address works again.
func TestCable(t *testing.T) {
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	go func() {
		for {
			connection, err := server.Accept()
			if err != nil {
				return
			}
			go func() {
				defer connection.Close()
				_, _ = io.Copy(connection, connection)
			}()
		}
	}()
	way := New(t, server.Addr().String())
	answers := func() (connection net.Conn, took time.Duration) {
		t.Helper()
		connection, err := net.Dial("tcp", way.Address())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = connection.Close() })
		began := time.Now()
		if _, err := connection.Write([]byte("ping")); err != nil {
			t.Fatal(err)
		}
		answer := make([]byte, 4)
		if _, err := io.ReadFull(connection, answer); err != nil || string(answer) != "ping" {
			t.Fatalf("the answer is %q: %v", answer, err)
		}
		return connection, time.Since(began)
	}
	answers()
	const roundTrip = 40 * time.Millisecond
	way.Far(t, roundTrip)
	connection, took := answers()
	if took < roundTrip {
		t.Errorf("a round trip took %s, less than %s", took, roundTrip)
	}
	way.Cut()
	if _, err := connection.Read(make([]byte, 1)); err == nil {
		t.Error("a connection is still open after the cut")
	}
	if late, err := net.Dial("tcp", way.Address()); err == nil {
		_ = late.Close()
		t.Error("a connection was accepted during the cut")
	}
	way.Mend(t)
	answers()
}
