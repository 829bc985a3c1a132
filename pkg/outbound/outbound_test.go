package outbound

import (
	"net/netip"
	"testing"
)

// TestAllowed: addresses of this machine, of a metadata service, and of the host's API are refused
// in all spellings.
func TestAllowed(t *testing.T) {
	host := []netip.AddrPort{netip.MustParseAddrPort("10.96.0.1:443")}
	for _, refused := range []string{
		"127.0.0.1:443", "127.9.9.9:443", "[::1]:443", "[::ffff:127.0.0.1]:443", "169.254.169.254:80", "[::ffff:169.254.169.254]:80", "[fe80::1%eth0]:443",
		"0.0.0.0:443", "0.1.2.3:443", "[::]:443", "224.0.0.1:443", "[ff02::1]:443", "255.255.255.255:443", "100.100.100.200:443", "168.63.129.16:443", "[fd00:ec2::254]:443",
		"[64:ff9b::7f00:1]:443", "[64:ff9b::a9fe:a9fe]:443", "[2002:7f00:1::]:443", "[::127.0.0.1]:443", "10.96.0.1:443", "[::ffff:10.96.0.1]:443",
	} {
		if err := Allowed(netip.MustParseAddrPort(refused), host); err == nil {
			t.Errorf("%s is allowed", refused)
		}
	}
	for _, allowed := range []string{"10.96.0.1:8443", "10.1.2.3:443", "192.0.2.2:443", "203.0.113.9:443", "[2001:db8::1]:443", "[fd12::1]:443", "[64:ff9b::a01:203]:443"} {
		if err := Allowed(netip.MustParseAddrPort(allowed), host); err != nil {
			t.Error(err)
		}
	}
}
