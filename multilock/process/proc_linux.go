package process

import (
	"os"
	"strings"

	"github.com/multilock/go/internal/procfs"
)

// initialTimeNamespace is the number that every kernel gives to it (PROC_TIME_INIT_INO in
// include/linux/proc_ns.h).
const initialTimeNamespace = "time:[4026531834]"

// machineID prefers systemd's file; D-Bus had the same id long before.
func machineID() string {
	if id := firstLine("/etc/machine-id"); id != "" {
		return id
	}
	return firstLine("/var/lib/dbus/machine-id")
}

func bootID(string) string {
	return firstLine("/proc/sys/kernel/random/boot_id")
}

func namespace() string {
	pid, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return ""
	}
	// Kernels before 5.6 have no time namespaces and no such file.
	time, err := os.Readlink("/proc/self/ns/time")
	if err != nil || time == initialTimeNamespace {
		return pid
	}
	return pid + " " + time
}

func firstLine(path string) string {
	content, err := procfs.Read(path)
	if err != nil {
		return ""
	}
	line, _, _ := strings.Cut(string(content), "\n")
	return strings.TrimSpace(line)
}

// procHides reports whether /proc may hide other users' processes (hidepid in proc(5)). A mount hidden
// below another one counts as well: a needless doubt is less harmful than a missed process.
func procHides() bool {
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return true
	}
	return mountsHide(string(mounts))
}

func mountsHide(mounts string) bool {
	for line := range strings.Lines(mounts) {
		fields := strings.Fields(line)
		if len(fields) >= 4 && fields[1] == "/proc" && fields[2] == "proc" && hidesPIDs(fields[3]) {
			return true
		}
	}
	return false
}

// hidesPIDs checks mount options. Kernels since 5.8 write words, older ones numbers; 0 and "off" are not
// shown today, but may be in future.
func hidesPIDs(options string) bool {
	for option := range strings.SplitSeq(options, ",") {
		mode, ok := strings.CutPrefix(option, "hidepid=")
		if ok && mode != "0" && mode != "off" {
			return true
		}
	}
	return false
}
