package outbound

import (
	"fmt"
	"net/netip"
)

// refusedAddress is the error for an address that the policy forbids.
type refusedAddress struct {
	addr netip.Addr
	why  string
}

func (e *refusedAddress) Error() string {
	return fmt.Sprintf("the address %s is %s and is not called", e.addr, e.why)
}

// metadata lists the addresses, outside the link-local ranges, at which cloud providers serve instance credentials.
var metadata = []netip.Addr{
	netip.MustParseAddr("fd00:ec2::254"),   // AWS
	netip.MustParseAddr("fd20:ce::254"),    // Google Cloud
	netip.MustParseAddr("100.100.100.200"), // Alibaba Cloud
}

// notPublic lists what the registries of special-purpose addresses (RFC 6890 and successors) keep off the public
// internet and netip.Addr has no predicate for.
var notPublic = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"),
	netip.MustParsePrefix("100.64.0.0/10"), // carrier-grade NAT
	netip.MustParsePrefix("192.0.0.0/24"),
	netip.MustParsePrefix("198.18.0.0/15"),
	netip.MustParsePrefix("240.0.0.0/4"),
	netip.MustParsePrefix("fec0::/10"),
	netip.MustParsePrefix("100::/64"),
}

// The IPv6 ranges that carry an IPv4 address which a gateway may connect to, and the byte at which it starts.
var embedding = []struct {
	prefix netip.Prefix
	at     int
}{
	{netip.MustParsePrefix("::ffff:0:0/96"), 12}, // IPv4-mapped
	{netip.MustParsePrefix("::/96"), 12},         // IPv4-compatible, deprecated
	{netip.MustParsePrefix("64:ff9b::/96"), 12},  // NAT64
	{netip.MustParsePrefix("64:ff9b:1::/48"), 12},
	{netip.MustParsePrefix("2002::/16"), 2}, // 6to4
}

// checkAddress refuses an address (IP and port, as a dialer sees it) that webhooks must never reach. Link-local
// addresses and cloud metadata are always refused, whatever is not public only when blockPrivate.
func checkAddress(address string, blockPrivate bool) error {
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("not an IP address: %q", address)
	}
	addr := ap.Addr().WithZone("")
	for _, a := range []netip.Addr{addr, embedded(addr)} {
		if why := refusal(a, blockPrivate); why != "" {
			return &refusedAddress{addr, why}
		}
	}
	return nil
}

// embedded is the IPv4 address inside addr, or addr itself when there is none.
func embedded(addr netip.Addr) netip.Addr {
	if addr.Is4() || addr == netip.IPv6Loopback() || addr == netip.IPv6Unspecified() {
		return addr
	}
	b := addr.As16()
	for _, e := range embedding {
		if e.prefix.Contains(addr) {
			return netip.AddrFrom4([4]byte(b[e.at : e.at+4]))
		}
	}
	return addr
}

// refusal says what is wrong with an address, "" when nothing is.
func refusal(a netip.Addr, blockPrivate bool) string {
	if a.IsLinkLocalUnicast() || a.IsLinkLocalMulticast() {
		return "link-local"
	}
	for _, m := range metadata {
		if a == m {
			return "a cloud metadata service"
		}
	}
	if !blockPrivate {
		return ""
	}
	switch {
	case a.IsLoopback():
		return "a loopback address"
	case a.IsPrivate():
		return "private"
	case a.IsUnspecified(), a.IsMulticast():
		return "not a public host"
	}
	for _, p := range notPublic {
		if p.Contains(a) {
			return "not public"
		}
	}
	return ""
}
