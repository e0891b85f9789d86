package process

import (
	"errors"
	"fmt"

	"github.com/shirou/gopsutil/v3/process"
)

// startIsFixed is true: GetProcessTimes returns what was recorded at creation.
const startIsFixed = true

// kernelBootID is empty: Windows has no boot id, only the time of the boot.
func kernelBootID() string { return "" }

func isJailed() bool { return false }

// isZombie is false: for exists, a process that has ended does not exist, even if a handle keeps it open.
func isZombie(int) bool { return false }

func exists(pid int) (bool, error) {
	return process.PidExists(int32(pid))
}

func leaderStart(int) (uint64, error) {
	return 0, fmt.Errorf("process groups on windows: %w", errors.ErrUnsupported)
}

// judgeGroup returns Unknown, because Windows has jobs instead of process groups, and FindGroup never
// returns a group here.
func judgeGroup(g Group) Evidence {
	return evidence(Unknown, "process group %d: windows has no process groups", g.PGID)
}
