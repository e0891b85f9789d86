package process

import (
	"errors"
	"fmt"

	"github.com/shirou/gopsutil/v3/process"
)

// startIsFixed: GetProcessTimes returns what was noted at creation.
const startIsFixed = true

// kernelBootID is empty: Windows offers no id, only the time of the boot.
func kernelBootID() string { return "" }

func isJailed() bool { return false }

// isZombie is false: a process that has ended but is still held open by a
// handle does not exist for exists.
func isZombie(int) bool { return false }

func exists(pid int) (bool, error) {
	return process.PidExists(int32(pid))
}

func leaderStart(int) (uint64, error) {
	return 0, fmt.Errorf("process groups on windows: %w", errors.ErrUnsupported)
}

// judgeGroup knows nothing, because Windows has jobs and no process groups, and
// FindGroup never gave one out here.
func judgeGroup(g Group) Evidence {
	return evidence(Unknown, "process group %d: windows has no process groups", g.PGID)
}
