//go:build linux

package fslock_test

import (
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/internal/testkit/actor"
)

// setting says as whom and where a neighbour runs.
type setting struct {
	UID int // 0 for the user of the test
	// Container gives it a pid namespace of its own, and /proc to match.
	Container bool
	// PID is the number it is to have in its container, 0 for any.
	PID int
}

// neighbour is the test's end of such a process.
type neighbour struct{ *actor.Actor }

// newNeighbour starts one that has opened the locks below base.
func newNeighbour(t *testing.T, s setting, open order) neighbour {
	t.Helper()
	role := "neighbour"
	if s.Container {
		role = "container"
	}
	p := neighbour{actor.Prepare(t, role, s)}
	if s.Container {
		p.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS}
	}
	if s.UID != 0 {
		p.RunAs(uint32(s.UID))
	}
	p.Start(t)
	open.Do = "open"
	p.must(t, open)
	return p
}

func (p neighbour) hear(t *testing.T) (a answer) {
	t.Helper()
	p.Hear(t, &a)
	return a
}

func (p neighbour) do(t *testing.T, o order) answer {
	t.Helper()
	p.Tell(t, o)
	return p.hear(t)
}

func (p neighbour) must(t *testing.T, o order) answer {
	t.Helper()
	a := p.do(t, o)
	require.Empty(t, a.Error)
	return a
}

func requireRoot(t testing.TB, why string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root, for " + why)
	}
}
