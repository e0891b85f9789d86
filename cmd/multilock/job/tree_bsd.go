//go:build unix && !linux

package job

import (
	"errors"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// scan returns one member that stands for the process group. Descendants that
// left it are not looked for, and zombies count until they are reaped: kill(2)
// with signal 0 is all that these systems have in common.
func (t *tree) scan() []member {
	if !t.owned {
		return nil
	}
	if unix.Kill(-t.pgid, 0) == unix.ESRCH {
		t.owned = false
		return nil
	}
	return []member{{pid: t.pgid, inGroup: true}}
}

// signal is for members outside of the group, of which scan finds none.
func (m member) signal(sig syscall.Signal) error {
	return unix.Kill(m.pid, sig)
}

var errNoParent = errors.New("the parent of another process is not known here")

func parentOf(int) (int, error) { return 0, errNoParent }

func ignored(sig syscall.Signal) bool { return signal.Ignored(sig) }
