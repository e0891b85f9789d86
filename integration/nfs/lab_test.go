package nfs_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What the lab does to one host may not be felt on another, or tests measure the
// lab. If the server's network address changed with the hosts that come and go, the
// others would lose it for up to a minute.
func TestServerKeepsItsAddressWhoeverComes(t *testing.T) {
	needLab(t)
	address := func() string {
		text, err := os.ReadFile("/sys/class/net/br0/address")
		require.NoError(t, err)
		return string(text)
	}
	before := address()
	lab(t, "ip", "link", "add", "lowest", "address", "00:00:00:00:00:01", "type", "veth", "peer", "name", "end")
	t.Cleanup(func() { lab(t, "ip", "link", "del", "lowest") })
	lab(t, "ip", "link", "set", "lowest", "master", "br0", "up")
	require.Equal(t, before, address())
}

// A host that crashes says no good-bye to the server: its requests are aborted, and
// its mounts stay, even if nothing uses them any more at that moment.
func TestAbortedMountsStay(t *testing.T) {
	needLab(t)
	h := addHost(t, "idle", "4.2", "hard")
	namespace, err := os.ReadFile("/run/lab/hosts/idle/namespace")
	require.NoError(t, err)
	lab(t, "lab-abort", strings.TrimSpace(string(namespace)), h.mount)
	out, err := exec.Command("on", h.name, "stat", "-f", "-c", "%T", h.mount).CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Equal(t, "nfs\n", string(out))
}
