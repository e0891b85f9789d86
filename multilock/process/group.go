package process

import "fmt"

// Group identifies the process group of a job (setpgid(2)), so that no later group with the same number can
// be mistaken for it. An empty field means "unknown". Host, Machine, Boot and Namespace are those of
// [Identity].
type Group struct {
	Host      string `json:"host,omitempty"`
	Machine   string `json:"machine,omitempty"`
	Boot      string `json:"boot,omitempty"`
	Namespace string `json:"pidns,omitempty"`
	// PGID is the process group id, which is the pid its leader has or had.
	PGID int `json:"pgid"`
	// Start is the start time of the leader, in the unit of Identity.Start.
	Start uint64 `json:"start,omitempty"`
	// Work is what the group works on, for people. No decision depends on it.
	Work Work `json:"work,omitzero"`
}

// Work is an attempt at a job of a list.
type Work struct {
	Job     int `json:"job"` // the job's number in the list, from 1
	Attempt int `json:"attempt"`
	Slot    int `json:"slot"` // on its host, from 1
	// After is how many seconds after the acquisition of the lock the attempt began. It gives a start time
	// that does not depend on the clock of its host.
	After float64 `json:"after"`
}

// FindGroup returns the process group that has the number pgid now. Call it while the leader exists, even
// as a zombie: later its start time cannot be found and is left 0, which loses the protection against a
// reused number. The error is ErrNotFound if no process belongs to the group, and wraps
// errors.ErrUnsupported on systems without process groups. A pgid below 2 is ErrNotFound, because kill(2)
// gives 0 and -1 another meaning.
func FindGroup(pgid int) (Group, error) {
	place, err := here()
	if err != nil {
		return Group{}, err
	}
	return place.FindGroup(pgid)
}

// FindGroup is like the function FindGroup, for callers that already know their identity: id must be the
// identity of the calling process.
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

// Judge reports whether any process of the group is alive, as seen by self, which must be the identity of
// the calling process. Stopped processes and those of other users count, zombies do not; the leader may
// have ended long ago. Host, machine, boot and namespace must be those of self, as for [Identity.Judge],
// and a doubtful case counts as Alive. A process that moved to another group or session does not belong to
// the group any more.
//
// It costs two or three system calls while the leader is alive or when the group is gone, and otherwise a
// pass over all processes of the host.
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
