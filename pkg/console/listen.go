package console

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"strconv"
)

// loopbacks returns the addresses that only this machine reaches. No setting allows other
// addresses: a user who needs the console elsewhere has ssh -L.
func loopbacks() []string { return []string{"127.0.0.1", "::1"} }

// Door holds the listeners of a console.
type Door struct {
	// Listeners listen on all loopback addresses of this machine, on one port.
	Listeners []net.Listener
	// Hosts are the values of the Host header for this console.
	Hosts []string
	// Address is the first of the hosts, as a URL.
	Address string
}

// Listen opens a port on loopback; 0 takes any free port.
func Listen(port int) (*Door, error) {
	door := &Door{}
	for _, address := range loopbacks() {
		listener, err := net.Listen("tcp", net.JoinHostPort(address, strconv.Itoa(port)))
		switch {
		case err != nil && address == loopbacks()[0]:
			return nil, fmt.Errorf("listening on port %d of loopback: %w", port, err)
		case err != nil:
			continue // the machine has no IPv6, or another program uses the port there
		}
		port = listener.Addr().(*net.TCPAddr).Port
		door.Listeners = append(door.Listeners, listener)
		door.Hosts = append(door.Hosts, net.JoinHostPort(address, strconv.Itoa(port)))
	}
	door.Address = "http://" + door.Hosts[0]
	door.Hosts = append(door.Hosts, "localhost:"+strconv.Itoa(port))
	return door, nil
}

// Close releases the port.
func (d *Door) Close() error {
	var all []error
	for _, listener := range d.Listeners {
		all = append(all, listener.Close())
	}
	return errors.Join(all...)
}

const keyBytes = 32

// NewKey returns a random key, in characters that are valid in a URL.
func NewKey() string {
	key := make([]byte, keyBytes)
	_, _ = rand.Read(key) // it never fails
	return base64.RawURLEncoding.EncodeToString(key)
}
