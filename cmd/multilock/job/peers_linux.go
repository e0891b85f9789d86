package job

import (
	"os"

	"golang.org/x/sys/unix"
)

// suspendPeers sends SIGTSTP to the other members of our process group. They are
// signalled one by one because we catch what is sent to the whole group: it
// would come back to the job after it has been continued.
func suspendPeers() {
	self, group := os.Getpid(), unix.Getpgrp()
	processes, _ := listProcesses() // if they cannot be seen, only we stop
	for _, p := range processes {
		if p.group == group && p.pid != self {
			_ = unix.Kill(p.pid, unix.SIGTSTP) // gone, or not ours to signal
		}
	}
}
