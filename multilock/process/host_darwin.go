package process

import "golang.org/x/sys/unix"

// startIsFixed is true: the kernel records the time of creation once and never corrects it (p_starttime of
// kinfo_proc in sys/sysctl.h).
const startIsFixed = true

// zombieState is SZOMB of sys/proc.h.
const zombieState = 5

// kernelBootID is random and generated at every boot.
func kernelBootID() string {
	id, err := unix.Sysctl("kern.bootsessionuuid")
	if err != nil {
		return ""
	}
	return id
}

func isJailed() bool { return false }

// isZombie asks the kernel directly, because gopsutil would start ps(1).
func isZombie(pid int) bool {
	found, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	return err == nil && found.Proc.P_stat == zombieState
}
