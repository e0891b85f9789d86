//go:build !linux

package process

import (
	"os"
	"runtime"

	"github.com/shirou/gopsutil/v3/host"
	"github.com/shirou/gopsutil/v3/process"
)

// startSlack is how many milliseconds two readings of one start time may differ, for systems that keep it
// relative to a boot time that they correct.
const startSlack = 1000

// machineID is the id of the hardware or the installation: IOPlatformUUID, kern.hostuuid, MachineGuid.
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

// namespace is empty where processes of the same machine may be invisible.
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

// createTime is 0 if it is unknown.
func createTime(pid int) uint64 {
	// A literal, because NewProcess would look the pid up first.
	found := process.Process{Pid: int32(pid)}
	millis, err := found.CreateTime()
	if err != nil || millis <= 0 {
		return 0
	}
	return uint64(millis)
}
