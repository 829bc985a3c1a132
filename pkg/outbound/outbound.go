// Package outbound connects to addresses that users name: receivers of notifications and metric
// services. It refuses addresses of this machine, of its cloud, and of the host's API.
package outbound

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"syscall"
	"time"
)

// Timeout bounds one request.
const Timeout = 10 * time.Second

// services returns the addresses of clouds' metadata services, besides link-local addresses.
func services() []netip.Addr {
	return []netip.Addr{netip.MustParseAddr("100.100.100.200"), netip.MustParseAddr("168.63.129.16"), netip.MustParseAddr("192.0.0.192"), netip.MustParseAddr("fd00:ec2::254"), netip.MustParseAddr("fd20:ce::254")}
}

// embedding maps prefixes of IPv6 addresses with an embedded IPv4 address to the byte where it
// begins.
func embedding() map[netip.Prefix]int {
	return map[netip.Prefix]int{netip.MustParsePrefix("64:ff9b::/96"): 12, netip.MustParsePrefix("64:ff9b:1::/48"): 12, netip.MustParsePrefix("2002::/16"): 2, netip.MustParsePrefix("::/96"): 12}
}

// Allowed returns nil for an address that Penstock may connect to.
func Allowed(to netip.AddrPort, host []netip.AddrPort) error {
	address := to.Addr().Unmap().WithZone("")
	for prefix, at := range embedding() {
		if address.Is6() && !address.IsLoopback() && !address.IsUnspecified() && prefix.Contains(address) {
			raw := address.As16()
			address = netip.AddrFrom4([4]byte(raw[at : at+4]))
		}
	}
	kind := ""
	switch {
	case address.IsLoopback():
		kind = "loopback"
	case address.IsLinkLocalUnicast(), address.IsLinkLocalMulticast(), address.IsInterfaceLocalMulticast():
		kind = "link-local"
	case address.IsMulticast():
		kind = "multicast"
	case address.IsUnspecified(), address.Is4() && address.As4()[0] == 0, address == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		kind = "unspecified"
	case slices.Contains(services(), address):
		kind = "metadata service"
	case slices.Contains(host, netip.AddrPortFrom(address, to.Port())):
		kind = "API server"
	default:
		return nil
	}
	return fmt.Errorf("connecting to %s: it is a %s address, which Penstock does not connect to", to, kind)
}

// Dialer connects to addresses that users name.
type Dialer struct {
	// Hosts are addresses of the host's API, as host:port.
	Hosts []string
	// Check decides about an address; nil means Allowed.
	Check func(to netip.AddrPort, host []netip.AddrPort) error
}

// Transport sends requests over new connections, without proxies. roots are the authorities of the
// server's certificate; nil uses this machine's authorities.
func (d Dialer) Transport(roots *x509.CertPool) *http.Transport {
	return &http.Transport{
		DialContext: d.dial, TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
		DisableKeepAlives: true, DisableCompression: true, MaxResponseHeaderBytes: 64 << 10, TLSHandshakeTimeout: Timeout,
	}
}

var errNotHTTP = errors.New("the server answered something else than HTTP")

// Quiet returns errors about the connection unchanged. It replaces other errors, which may quote an
// answer.
func Quiet(err error) error {
	var operation *net.OpError
	var name *net.DNSError
	var certificate *tls.CertificateVerificationError
	switch {
	case errors.As(err, &operation), errors.As(err, &name), errors.As(err, &certificate), errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return err
	}
	return errNotHTTP
}

// dial checks each address just before it connects, because a name may resolve to another address
// than before.
func (d Dialer) dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, err := d.host(ctx)
	if err != nil {
		return nil, err
	}
	check := d.Check
	if check == nil {
		check = Allowed
	}
	dialer := net.Dialer{Timeout: Timeout, KeepAlive: -time.Second, Control: func(_, address string, _ syscall.RawConn) error {
		to, err := netip.ParseAddrPort(address)
		if err != nil {
			return fmt.Errorf("reading the address to connect to: %w", err)
		}
		return check(to, host)
	}}
	return dialer.DialContext(ctx, network, address)
}

func (d Dialer) host(ctx context.Context) ([]netip.AddrPort, error) {
	var all []netip.AddrPort
	for _, one := range d.Hosts {
		name, port, err := net.SplitHostPort(one)
		if err != nil {
			return nil, fmt.Errorf("reading the address of the API server: %w", err)
		}
		number, err := net.DefaultResolver.LookupPort(ctx, "tcp", port)
		if err != nil {
			return nil, fmt.Errorf("reading the port of the API server: %w", err)
		}
		found, err := net.DefaultResolver.LookupNetIP(ctx, "ip", name)
		if err != nil {
			return nil, fmt.Errorf("resolving the API server: %w", err)
		}
		for _, address := range found {
			all = append(all, netip.AddrPortFrom(address.Unmap(), uint16(number))) //nolint:gosec // a port fits
		}
	}
	return all, nil
}
