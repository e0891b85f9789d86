//go:build !linux

package process

import (
	"context"
	"runtime"
)

func judgePID(pid int, start uint64) Evidence {
	present, err := exists(pid)
	switch {
	case err != nil:
		return evidence(Unknown, "process %d cannot be looked up: %v", pid, err)
	case !present:
		return evidence(Gone, "process %d no longer exists", pid)
	case otherStart(start, createTime(pid)):
		return evidence(Gone, "pid %d now belongs to another process", pid)
	case isZombie(pid):
		return evidence(Gone, "process %d has ended and is a zombie", pid)
	}
	return evidence(Alive, "process %d is running on this host", pid)
}

// otherStart reports that two start times are certain to belong to two processes. Where setting the clock
// moves the start times of running processes they prove nothing, and the process with the number counts as
// the right one.
func otherStart(recorded, found uint64) bool {
	if !startIsFixed || recorded == 0 || found == 0 {
		return false
	}
	return distance(recorded, found) > startSlack
}

func judgeJob(JobMark, uint64) Evidence {
	return evidence(Unknown, "%s does not show what belongs to its job", runtime.GOOS)
}

// await can only poll: kqueue(2) and process handles would need a thread or a poller for each system.
func (id Identity) await(ctx context.Context, self Identity) error {
	return id.poll(ctx, self)
}
