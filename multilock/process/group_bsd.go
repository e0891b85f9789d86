//go:build darwin || dragonfly || freebsd || netbsd || openbsd

package process

import (
	"github.com/shirou/gopsutil/v3/process"
	"golang.org/x/sys/unix"
)

// exists sends no signal: signal 0 only checks (kill(2)).
func exists(pid int) (bool, error) {
	switch err := unix.Kill(pid, 0); err {
	case nil, unix.EPERM:
		return true, nil
	case unix.ESRCH:
		return false, nil
	default:
		return false, err
	}
}

func leaderStart(pgid int) (uint64, error) {
	if unix.Kill(-pgid, 0) == unix.ESRCH {
		return 0, ErrNotFound
	}
	return createTime(pgid), nil
}

func judgeGroup(g Group) Evidence {
	switch sent := unix.Kill(-g.PGID, 0); {
	case sent == unix.ESRCH:
		return groupMissing(g.PGID)
	case sent != nil && sent != unix.EPERM:
		return evidence(Unknown, "process group %d cannot be looked up: %v", g.PGID, sent)
	case otherStart(g.Start, createTime(g.PGID)):
		// The kernel does not reuse a pid while a group has that number (fork(2)).
		return groupReused(g.PGID, nameOf(int32(g.PGID)))
	}
	return judgeMembers(g.PGID)
}

// judgeMembers looks for a live member. Zombies alone never prove here that the group has ended: the system
// may show only some of the processes.
func judgeMembers(pgid int) Evidence {
	pids, err := process.Pids()
	if err != nil {
		return evidence(Alive, "process group %d exists on this host, and processes cannot be listed: %v", pgid, err)
	}
	for _, pid := range pids {
		group, err := unix.Getpgid(int(pid))
		if err == nil && group == pgid && !isZombie(int(pid)) {
			return groupAlive(pgid, int(pid), nameOf(pid))
		}
	}
	return evidence(Alive, "process group %d exists on this host, its members cannot be seen", pgid)
}

func nameOf(pid int32) string {
	found := process.Process{Pid: pid}
	name, err := found.Name()
	if err != nil {
		return "name unknown"
	}
	return name
}
