//go:build !linux

package process

import (
	"os"
	"runtime"

	"github.com/shirou/gopsutil/v3/host"
	"github.com/shirou/gopsutil/v3/process"
)

// startSlack is how many milliseconds two readings of one start time may lie
// apart, for systems that keep it relative to a boot time they correct.
const startSlack = 1000

// machineID is the hardware's or the installation's own id: IOPlatformUUID,
// kern.hostuuid, MachineGuid.
func machineID() string {
	id, err := host.HostID()
	if err != nil {
		return ""
	}
	return id
}

func bootID(machine string) string {
	if id := kernelBootID(); id != "" {
		return id
	}
	seconds, err := host.BootTime()
	if err != nil {
		return ""
	}
	return bootTimeID(machine, seconds)
}

// namespace is empty where processes of the same machine may be out of sight.
func namespace() string {
	if isJailed() {
		return ""
	}
	return runtime.GOOS
}

func ownStart() uint64 {
	return createTime(os.Getpid())
}

func startOf(pid int) (uint64, error) {
	present, err := exists(pid)
	if err != nil {
		return 0, err
	}
	if !present {
		return 0, ErrNotFound
	}
	return createTime(pid), nil
}

// createTime is 0 when it cannot be found out.
func createTime(pid int) uint64 {
	// A literal rather than NewProcess, which would look the pid up first.
	found := process.Process{Pid: int32(pid)}
	millis, err := found.CreateTime()
	if err != nil || millis <= 0 {
		return 0
	}
	return uint64(millis)
}
