package process

import (
	"bytes"
	"os"
	"strconv"
	"strings"
)

// initialTimeNamespace is the number every kernel gives it (PROC_TIME_INIT_INO
// in include/linux/proc_ns.h).
const initialTimeNamespace = "time:[4026531834]"

// machineID prefers the file of systemd; D-Bus kept the same id long before.
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
	content, err := readSmall(path)
	if err != nil {
		return ""
	}
	line, _, _ := strings.Cut(string(content), "\n")
	return strings.TrimSpace(line)
}

// procIsOurs reports whether the numbers in /proc are those that kill(2) takes
// here. They are not when /proc was mounted in an outer pid namespace, as after
// unshare --pid without --mount-proc: then its entries are other processes. The
// line NSpid (proc_pid_status(5), since 4.1) holds one number for the namespace
// of the mount and one more for every namespace further in.
func procIsOurs() bool {
	status, err := readSmall("/proc/self/status")
	if err != nil {
		return false
	}
	for line := range bytes.Lines(status) {
		if numbers, ok := bytes.CutPrefix(line, []byte("NSpid:")); ok {
			return len(bytes.Fields(numbers)) == 1
		}
	}
	link, err := os.Readlink("/proc/self")
	return err == nil && link == strconv.Itoa(os.Getpid())
}

// procHides reports whether /proc may keep processes of others from us
// (hidepid in proc(5)). A mount hidden below another one counts as well: a
// needless doubt harms less than a missing one.
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

// hidesPIDs looks at mount options. Kernels since 5.8 write words, older ones
// numbers; 0 and "off" are not shown but may be one day.
func hidesPIDs(options string) bool {
	for option := range strings.SplitSeq(options, ",") {
		mode, ok := strings.CutPrefix(option, "hidepid=")
		if ok && mode != "0" && mode != "off" {
			return true
		}
	}
	return false
}
