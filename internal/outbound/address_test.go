package outbound

import "testing"

func TestAddresses(t *testing.T) {
	const always, blocked, open = "always", "when private addresses are blocked", "open"
	for address, want := range map[string]string{
		"169.254.169.254:80": always, "169.254.0.1:80": always, "[fe80::1]:80": always, "[fe80::1%eth0]:80": always, "[febf::1]:80": always,
		"[::ffff:169.254.169.254]:80": always, "[::169.254.169.254]:80": always, "[64:ff9b::a9fe:a9fe]:80": always, "[2002:a9fe:a9fe::1]:80": always,
		"[fd00:ec2::254]:80": always, "[fd20:ce::254]:80": always, "100.100.100.200:80": always, "[::ffff:100.100.100.200]:80": always, "[ff02::1]:80": always,
		"127.0.0.1:80": blocked, "127.255.255.254:80": blocked, "[::1]:80": blocked, "[::ffff:127.0.0.1]:80": blocked, "[64:ff9b::7f00:1]:80": blocked,
		"10.0.0.1:80": blocked, "172.16.0.1:80": blocked, "172.31.255.255:80": blocked, "192.168.1.1:80": blocked, "[::ffff:10.1.2.3]:80": blocked,
		"100.64.0.1:80": blocked, "100.127.255.255:80": blocked, "[fc00::1]:80": blocked, "[fdff::1]:80": blocked, "[fec0::1]:80": blocked,
		"0.0.0.0:80": blocked, "0.1.2.3:80": blocked, "[::]:80": blocked, "[::ffff:0.0.0.0]:80": blocked, "224.0.1.1:80": blocked, "255.255.255.255:80": blocked,
		"198.18.0.1:80": blocked, "192.0.0.1:80": blocked, "[2002:a00:1::1]:80": blocked,
		"8.8.8.8:443": open, "172.32.0.1:80": open, "100.128.0.1:80": open, "169.253.0.1:80": open, "[2606:4700::1111]:443": open, "[::ffff:8.8.8.8]:80": open,
		"[64:ff9b::808:808]:80": open, "[2002:808:808::1]:80": open,
	} {
		got := open
		switch {
		case checkAddress(address, false) != nil:
			got = always
		case checkAddress(address, true) != nil:
			got = blocked
		}
		if got != want {
			t.Errorf("%s is refused: %s; want: %s", address, got, want)
		}
	}
	if checkAddress("not an address", false) == nil {
		t.Error("what is no address passes")
	}
}
