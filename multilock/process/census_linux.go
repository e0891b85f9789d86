package process

import (
	"slices"

	"github.com/multilock/go/internal/procfs"
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
	pids, err := procfs.Proc.PIDs()
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
	member, err := procfs.Proc.Stat(pid)
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
