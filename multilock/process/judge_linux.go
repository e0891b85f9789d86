package process

import (
	"golang.org/x/sys/unix"

	"github.com/multilock/go/internal/procfs"
)

// judgePID reads the stat file first: for a live process with a matching start time that is enough. Every
// other case needs further checks, because /proc may belong to another pid namespace and show another
// process.
func judgePID(pid int, start uint64) Evidence {
	found, err := procfs.Proc.Stat(pid)
	if err == nil && !found.Ended() && start != 0 && found.Start == start {
		return running(found)
	}
	switch sent := unix.Kill(pid, 0); {
	case sent == unix.ESRCH:
		return evidence(Gone, "process %d no longer exists", pid)
	case sent != nil && sent != unix.EPERM:
		return evidence(Unknown, "process %d cannot be looked up: %v", pid, sent)
	case err != nil || !procfs.Proc.Ours():
		return evidence(Alive, "a process %d exists on this host, and /proc does not show its start time", pid)
	case start != 0 && found.Start != start:
		return evidence(Gone, "pid %d now belongs to another process (%s)", pid, printable(found.Name))
	case found.Ended():
		return evidence(Gone, "process %d (%s) has ended and is a zombie", pid, printable(found.Name))
	}
	return running(found)
}

func running(found procfs.Stat) Evidence {
	return evidence(Alive, "process %d (%s) is running on this host", found.PID, printable(found.Name))
}

// ownStart needs no pid, so it is right even if /proc belongs to another namespace.
func ownStart() uint64 {
	own, _ := procfs.Proc.Stat(0) // 0 on failure
	return own.Start
}

func startOf(pid int) (uint64, error) {
	if unix.Kill(pid, 0) == unix.ESRCH {
		return 0, ErrNotFound
	}
	if !procfs.Proc.Ours() {
		return 0, nil
	}
	found, err := procfs.Proc.Stat(pid)
	if err != nil {
		return 0, nil //nolint:nilerr // it exists, and hides when it started
	}
	return found.Start, nil
}
