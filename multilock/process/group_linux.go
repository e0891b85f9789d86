package process

import (
	"slices"

	"golang.org/x/sys/unix"

	"github.com/multilock/go/internal/procfs"
)

func leaderStart(pgid int) (uint64, error) {
	if unix.Kill(-pgid, 0) == unix.ESRCH {
		return 0, ErrNotFound
	}
	start, err := startOf(pgid)
	if err != nil {
		return 0, nil //nolint:nilerr // the group outlived its leader
	}
	return start, nil
}

// judgeGroup asks the kernel, then looks at the leader, and only then at all processes.
func judgeGroup(g Group) Evidence {
	switch sent := unix.Kill(-g.PGID, 0); {
	case sent == unix.ESRCH:
		return groupMissing(g.PGID)
	case sent != nil && sent != unix.EPERM:
		return evidence(Unknown, "process group %d cannot be looked up: %v", g.PGID, sent)
	}
	leader, err := procfs.Proc.Stat(g.PGID)
	known := err == nil && g.Start != 0
	match := known && leader.Start == g.Start
	switch {
	case match && leader.Group == g.PGID && !leader.Ended():
		return groupAlive(g.PGID, g.PGID, leader.Name)
	case !procfs.Proc.Ours():
		return evidence(Alive, "process group %d exists on this host, and /proc shows another pid namespace", g.PGID)
	case known && !match:
		// The kernel does not reuse a pid while a group has that number, so a new process with the number
		// proves that the group had ended.
		return groupReused(g.PGID, leader.Name)
	}
	return judgeMembers(g.PGID)
}

const (
	// maxCensus limits the passes over all processes.
	maxCensus = 6
	// confirmations is how many passes have to agree with the one before. One is not enough: a pass misses
	// a process that starts after the listing, while its parent ends and is reaped before the pass reaches
	// it.
	confirmations = 2
)

// judgeMembers decides for a group that the kernel still knows and whose leader does not run. It is Gone
// only if several passes find the same zombies, and no other members.
func judgeMembers(pgid int) Evidence {
	var before census
	agreed := 0
	for range maxCensus {
		now, err := takeCensus(procfs.Proc, pgid)
		if err != nil {
			return evidence(Alive, "process group %d exists on this host, and /proc cannot be listed: %v", pgid, err)
		}
		if now.alive != 0 {
			return groupAlive(pgid, now.alive, now.name)
		}
		if !now.confirms(before) {
			agreed = 0
		} else if agreed++; agreed == confirmations && !procHides() {
			return evidence(Gone, "nothing but zombies is left of process group %d", pgid)
		}
		before = now
	}
	return judgeUnseen(pgid)
}

// judgeUnseen can only ask the kernel.
func judgeUnseen(pgid int) Evidence {
	if unix.Kill(-pgid, 0) == unix.ESRCH {
		return groupMissing(pgid)
	}
	return evidence(Alive, "process group %d exists on this host, and /proc may hide its members", pgid)
}

// census is what one pass over all processes found of a group.
type census struct {
	alive   int    // pid of one living member, 0 if none was seen
	name    string // its name
	zombies []zombie
	hidden  bool // a listed process could not be read
}

type zombie struct {
	pid   int
	start uint64
}

// confirms reports that two consecutive passes could read every process and found the same zombies, at
// least one.
func (c census) confirms(before census) bool {
	return !c.hidden && !before.hidden && len(c.zombies) > 0 && slices.Equal(c.zombies, before.zombies)
}

// takeCensus stops at the first live member.
func takeCensus(proc procfs.Dir, pgid int) (census, error) {
	pids, err := proc.PIDs()
	if err != nil {
		return census{}, err
	}
	var found census
	for _, pid := range pids {
		found.add(proc, pgid, pid)
		if found.alive != 0 {
			break
		}
	}
	return found, nil
}

func (c *census) add(proc procfs.Dir, pgid, pid int) {
	member, err := proc.Stat(pid)
	switch {
	case err != nil:
		c.hidden = c.hidden || !procfs.Vanished(err)
	case member.Group != pgid:
	case member.Ended():
		c.zombies = append(c.zombies, zombie{pid: pid, start: member.Start})
	default:
		c.alive, c.name = pid, member.Name
	}
}
