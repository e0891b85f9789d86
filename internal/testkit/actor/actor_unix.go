//go:build unix

package actor

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// GoOn continues a stopped process, and requires that it ends without an error.
func (a *Actor) GoOn(t testing.TB) {
	t.Helper()
	a.Signal(t, syscall.SIGCONT)
	a.within(func() { require.NoError(t, a.Wait()) })
}
