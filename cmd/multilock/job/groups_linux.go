package job

import (
	"slices"

	"github.com/multilock/go/internal/procfs"
	"github.com/multilock/go/multilock/process"
)

// mostGroups bounds how many groups Groups returns. That is enough to recognise the job.
const mostGroups = 64

// Groups returns the process groups of the job's processes, its own first, or none if the command
// has ended. When the runner is dead, only these identify processes that left the group with an
// environment of their own, as after su or setsid.
//
// Processes are found from parent to child, or by their mark if the parent has ended.
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
