package process

import (
	"strconv"
	"strings"
)

// bootSlack is how far two readings of one boot's time, in seconds, may differ: where it is computed as now
// minus uptime, both are rounded.
const bootSlack = 2

// sameBoot reports whether two boot ids are certain to mean one boot.
func sameBoot(a, b string) bool {
	if a == "" || b == "" {
		return false
	}
	return a == b || closeBootTimes(a, b)
}

// otherBoot reports whether two boot ids are certain to mean two boots. Times never prove that, because
// setting the clock moves them.
func otherBoot(a, b string) bool {
	if a == "" || b == "" || isBootTime(a) || isBootTime(b) {
		return false
	}
	return a != b
}

// bootTimeID makes an id for systems that only know when they booted. It includes the machine, because
// after a power failure a whole rack boots in the same second.
func bootTimeID(machine string, seconds uint64) string {
	if machine == "" || seconds == 0 {
		return ""
	}
	return machine + "@" + strconv.FormatUint(seconds, 10)
}

func isBootTime(id string) bool {
	return strings.Contains(id, "@")
}

func closeBootTimes(a, b string) bool {
	machineA, secondsA, okA := cutBootTime(a)
	machineB, secondsB, okB := cutBootTime(b)
	return okA && okB && machineA == machineB && distance(secondsA, secondsB) <= bootSlack
}

func cutBootTime(id string) (machine string, seconds uint64, ok bool) {
	machine, digits, found := strings.Cut(id, "@")
	seconds, err := strconv.ParseUint(digits, 10, 64)
	return machine, seconds, found && machine != "" && err == nil
}

func distance(a, b uint64) uint64 {
	return max(a, b) - min(a, b)
}
