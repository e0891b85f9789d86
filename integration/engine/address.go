package engine

import (
	"fmt"
	"math/rand/v2"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
)

// OwnHost returns a loopback address that no other test uses, where the system has that many. On
// 127.0.0.1 an outgoing connection can take a port that was free a moment ago.
func OwnHost() string {
	host := fmt.Sprintf("127.%d.%d.%d", 1+rand.N(254), rand.N(256), 1+rand.N(254)) //nolint:gosec // no secret
	listener, err := net.Listen("tcp", host+":0")
	if err != nil {
		return "127.0.0.1"
	}
	_ = listener.Close()
	return host
}

// Free returns an address where nothing listens.
func Free(t testing.TB, host string) string {
	t.Helper()
	listener, err := net.Listen("tcp", host+":0")
	require.NoError(t, err)
	require.NoError(t, listener.Close())
	return listener.Addr().String()
}
