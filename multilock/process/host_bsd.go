//go:build dragonfly || freebsd || netbsd || openbsd

package process

import (
	"encoding/hex"
	"slices"

	"github.com/shirou/gopsutil/v3/process"
	"golang.org/x/sys/unix"
)

// startIsFixed is false: the kernel adds the boot time, which it corrects when the clock is set, to a
// relative start time.
const startIsFixed = false

// kernelBootID is 16 random bytes on FreeBSD since 13.0; the other systems have none.
func kernelBootID() string {
	id, err := unix.SysctlRaw("kern.boot_id")
	if err != nil {
		return ""
	}
	return hex.EncodeToString(id)
}

// isJailed is false on systems without jails.
func isJailed() bool {
	jailed, err := unix.SysctlUint32("security.jail.jailed")
	return err == nil && jailed != 0
}

func isZombie(pid int) bool {
	found := process.Process{Pid: int32(pid)}
	status, err := found.Status()
	return err == nil && slices.Contains(status, process.Zombie)
}
