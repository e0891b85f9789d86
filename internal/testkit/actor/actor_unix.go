//go:build unix

package actor

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// GoOn lets a stopped process go on, and requires that it comes to a good end.
func (a *Actor) GoOn(t testing.TB) {
	t.Helper()
	a.Signal(t, syscall.SIGCONT)
	a.within(func() { require.NoError(t, a.Wait()) })
}
