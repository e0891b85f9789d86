//go:build unix && !linux

package job

import (
	"errors"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// scan knows the process group alone. Descendants that left it are not looked
// for: kill(2) with signal 0 is all that these systems have in common.
func (t *tree) scan() []member { return t.scanGroup() }

// signal is for members outside of the group, of which scan finds none.
func (m member) signal(sig syscall.Signal) error {
	return unix.Kill(m.pid, sig)
}

var errNoParent = errors.New("the parent of another process is not known here")

func parentOf(int) (int, error) { return 0, errNoParent }

func ignored(sig syscall.Signal) bool { return signal.Ignored(sig) }
