package process

import (
	"fmt"
	"os"
	"slices"
	"strconv"
)

// census is what one pass over all processes found of a group.
type census struct {
	alive   int    // pid of one living member, 0 if none was seen
	name    string // its name
	zombies []zombie
	hidden  bool // some process was listed and may not be read
}

type zombie struct {
	pid   int
	start uint64
}

// confirms reports that two passes in a row could read everybody and found the
// same zombies, at least one.
func (c census) confirms(before census) bool {
	return !c.hidden && !before.hidden && len(c.zombies) > 0 && slices.Equal(c.zombies, before.zombies)
}

// takeCensus stops at the first living member.
func takeCensus(pgid int) (census, error) {
	pids, err := listPIDs()
	if err != nil {
		return census{}, err
	}
	var found census
	for _, pid := range pids {
		found.add(pgid, pid)
		if found.alive != 0 {
			break
		}
	}
	return found, nil
}

func (c *census) add(pgid, pid int) {
	var buf statBuffer
	member, err := readStat(statPath(pid), &buf)
	switch {
	case err != nil:
		c.hidden = c.hidden || !vanished(err)
	case member.group != pgid:
	case member.dead() && !hasLiveThread(pid):
		c.zombies = append(c.zombies, zombie{pid: pid, start: member.start})
	default:
		c.alive, c.name = pid, string(member.name)
	}
}

func listPIDs() ([]int, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, fmt.Errorf("list /proc: %w", err)
	}
	return numbers(names), nil
}

func numbers(names []string) []int {
	pids := make([]int, 0, len(names))
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}
