// Package port chooses TCP ports for programs that need a known or a fixed port, and addresses to
// which programs on this machine connect.
package port

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
)

// The kernel assigns ports from 32768 on (Linux; 49152 elsewhere) to outgoing connections and to
// processes that ask for any port. A lower port is free until a process asks for exactly that port.
const first, last = 20000, 29999

var claims struct {
	sync.Mutex
	next int
	held []net.PacketConn
}

// Free returns a port on which no program listens. It is reserved for the life of this process by a
// UDP socket of the same number, which other tests see.
func Free() (int, error) {
	claims.Lock()
	defer claims.Unlock()
	for range last - first + 1 {
		candidate := first + claims.next%(last-first+1)
		claims.next++
		claim, err := net.ListenPacket("udp", ":"+strconv.Itoa(candidate))
		if err != nil {
			continue // another test has the port
		}
		if listener, err := net.Listen("tcp", ":"+strconv.Itoa(candidate)); err != nil {
			_ = claim.Close()
			continue
		} else if err := listener.Close(); err != nil {
			return 0, fmt.Errorf("trying port %d: %w", candidate, err)
		}
		claims.held = append(claims.held, claim)
		return candidate, nil
	}
	return 0, errors.New("no port from " + strconv.Itoa(first) + " to " + strconv.Itoa(last) + " is free")
}

// ErrLoopback is the error of Outside on a machine whose only addresses are loopback.
var ErrLoopback = errors.New("this machine has no address but loopback, and Penstock connects to none")

// Outside listens on an address of this machine that is not loopback, because Penstock connects to no
// loopback address.
func Outside() (net.Listener, error) {
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return nil, fmt.Errorf("reading the addresses of this machine: %w", err)
	}
	for _, address := range addresses {
		if of, ok := address.(*net.IPNet); ok && of.IP.To4() != nil && of.IP.IsGlobalUnicast() {
			return net.Listen("tcp", net.JoinHostPort(of.IP.String(), "0"))
		}
	}
	return nil, ErrLoopback
}
