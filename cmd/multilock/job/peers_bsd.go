//go:build unix && !linux

package job

import (
	"os/signal"

	"golang.org/x/sys/unix"
)

// suspendPeers sends SIGTSTP to the other members of our process group. We must
// not catch it along with them, it would come back to the job after it has been
// continued; so it is ignored from here on, and the stop key has no effect on a
// job of a pipeline that has been stopped once.
func suspendPeers() {
	signal.Ignore(unix.SIGTSTP)
	_ = unix.Kill(0, unix.SIGTSTP)
}
