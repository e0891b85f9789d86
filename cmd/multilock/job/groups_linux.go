package job

import (
	"slices"

	"github.com/multilock/go/internal/procfs"
	"github.com/multilock/go/multilock/process"
)

// mostGroups bounds what Groups returns: a job of more is known by these.
const mostGroups = 64

// Groups are the process groups in which the job's processes are now, its own first: of
// those that have left it, as after su or setsid, with an environment of their own, nothing
// else tells once the runner is dead. It is empty if the command has ended.
//
// They are found from parent to child. A process whose parent has ended is found by the
// mark in its environment alone.
func (j *Job) Groups() []process.Group {
	own := j.Group()
	if own.PGID == 0 {
		return nil
	}
	groups, known := []process.Group{own}, []int{own.PGID}
	for below := procfs.Proc.Children(j.pid); len(below) > 0 && len(groups) < mostGroups; below = below[1:] {
		below = append(below, procfs.Proc.Children(below[0])...)
		p, err := procfs.Proc.Stat(below[0])
		if err != nil || p.Ended() || p.Group < 2 || slices.Contains(known, p.Group) {
			continue
		}
		known = append(known, p.Group)
		if group, err := j.spec.findGroup(p.Group); err == nil {
			groups = append(groups, group)
		}
	}
	return groups
}
