package engine

import (
	"fmt"
	"math/rand/v2"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
)

// OwnHost is an address of this host's that no other test uses, where there are so many: from
// 127.0.0.1 connections are made as well, which may take a port that was free just now.
func OwnHost() string {
	host := fmt.Sprintf("127.%d.%d.%d", 1+rand.N(254), rand.N(256), 1+rand.N(254)) //nolint:gosec // no secret
	listener, err := net.Listen("tcp", host+":0")
	if err != nil {
		return "127.0.0.1"
	}
	_ = listener.Close()
	return host
}

// Free is an address where nobody listens.
func Free(t testing.TB, host string) string {
	t.Helper()
	listener, err := net.Listen("tcp", host+":0")
	require.NoError(t, err)
	require.NoError(t, listener.Close())
	return listener.Addr().String()
}
