package process

import (
	"golang.org/x/sys/unix"
)

func leaderStart(pgid int) (uint64, error) {
	if unix.Kill(-pgid, 0) == unix.ESRCH {
		return 0, ErrNotFound
	}
	start, err := startOf(pgid)
	if err != nil {
		return 0, nil // the group outlived its leader
	}
	return start, nil
}

// judgeGroup asks the kernel, then the leader, and only then everybody.
func judgeGroup(g Group) Evidence {
	switch sent := unix.Kill(-g.PGID, 0); {
	case sent == unix.ESRCH:
		return groupMissing(g.PGID)
	case sent != nil && sent != unix.EPERM:
		return evidence(Unknown, "process group %d cannot be looked up: %v", g.PGID, sent)
	}
	var buf statBuffer
	leader, err := readStat(statPath(g.PGID), &buf)
	match := err == nil && (g.Start == 0 || leader.start == g.Start)
	switch {
	case match && leader.group == g.PGID && !leader.dead():
		return groupAlive(g.PGID, g.PGID, string(leader.name))
	case !procIsOurs():
		return evidence(Alive, "process group %d exists on this host, and /proc shows another pid namespace", g.PGID)
	case err == nil && !match:
		// The kernel hands out no pid while a group has that number, so a
		// new owner of the number proves that the group had ended.
		return groupReused(g.PGID, string(leader.name))
	}
	return judgeMembers(g.PGID)
}

// maxCensus limits how often all processes are gone through. Two are needed
// for proof, more when processes come and go meanwhile.
const maxCensus = 4

// judgeMembers decides for a group that the kernel still knows and whose leader
// does not run. It is Gone only if zombies account for it, found twice with no
// change between: a process that forks and ends could slip through one census,
// as its child starts after the listing and it ends before its turn.
func judgeMembers(pgid int) Evidence {
	var before census
	for range maxCensus {
		now, err := takeCensus(pgid)
		switch {
		case err != nil:
			return evidence(Alive, "process group %d exists on this host, and /proc cannot be listed: %v", pgid, err)
		case now.alive != 0:
			return groupAlive(pgid, now.alive, now.name)
		case now.confirms(before) && !procHides():
			return evidence(Gone, "nothing but zombies is left of process group %d", pgid)
		}
		before = now
	}
	if unix.Kill(-pgid, 0) == unix.ESRCH {
		return groupMissing(pgid)
	}
	return evidence(Alive, "process group %d exists on this host, and /proc may hide who is in it", pgid)
}
