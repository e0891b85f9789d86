package process

import "fmt"

// Group is the process group of a job (setpgid(2)), named so that no later
// group with the same number can be mistaken for it. An empty field means "not
// known". Host, Machine, Boot and Namespace are those of [Identity].
type Group struct {
	Host      string `json:"host,omitempty"`
	Machine   string `json:"machine,omitempty"`
	Boot      string `json:"boot,omitempty"`
	Namespace string `json:"pidns,omitempty"`
	// PGID is the process group id, which is the pid its leader has or had.
	PGID int `json:"pgid"`
	// Start is the start time of the leader, in the unit of Identity.Start.
	Start uint64 `json:"start,omitempty"`
}

// FindGroup returns the process group that has the number pgid at this moment.
// Call it while the leader exists, be it as a zombie: later its start time
// cannot be found out any more and is left 0, which gives away the protection
// against a number that is used again. The error is ErrNotFound when no process
// belongs to such a group, and wraps errors.ErrUnsupported on systems without
// process groups. A pgid below 2 is refused: kill(2) gives 0 and -1 another
// meaning.
func FindGroup(pgid int) (Group, error) {
	place, err := here()
	if err != nil {
		return Group{}, err
	}
	return place.FindGroup(pgid)
}

// FindGroup is the function of that name for callers that know who they are
// already: id must be the identity of the calling process.
func (id Identity) FindGroup(pgid int) (Group, error) {
	if pgid < 2 {
		return Group{}, fmt.Errorf("find process group %d: %w", pgid, ErrNotFound)
	}
	start, err := leaderStart(pgid)
	if err != nil {
		return Group{}, fmt.Errorf("find process group %d: %w", pgid, err)
	}
	return Group{Host: id.Host, Machine: id.Machine, Boot: id.Boot, Namespace: id.Namespace, PGID: pgid, Start: start}, nil
}

// Judge says whether any process of the group lives, from the view of self,
// which must be the identity of the calling process. Stopped processes and
// those of other users count, zombies do not; the leader may be long gone. The
// place has to be that of self, as for [Identity.Judge], and
// what cannot be told apart counts as Alive. A process that left for a group or
// session of its own does not belong to the group any more.
//
// It costs two or three system calls while the leader lives or when the group
// is gone, and a pass over all processes of the host otherwise.
func (g Group) Judge(self Identity) Evidence {
	if g.PGID < 2 {
		return evidence(Unknown, "%d is not the number of a job's process group", g.PGID)
	}
	place := Identity{Host: g.Host, Machine: g.Machine, Boot: g.Boot, Namespace: g.Namespace}
	if why := elsewhere(place, self); why != "" {
		return evidence(Unknown, "%s", why)
	}
	return judgeGroup(g)
}

func groupMissing(pgid int) Evidence {
	return evidence(Gone, "process group %d no longer exists", pgid)
}

func groupReused(pgid int, by string) Evidence {
	return evidence(Gone, "number %d of the process group now belongs to another process (%s)", pgid, printable(by))
}

func groupAlive(pgid, pid int, name string) Evidence {
	return evidence(Alive, "process %d (%s) of process group %d is running on this host", pid, printable(name), pgid)
}
