package process

import (
	"strconv"
	"strings"
)

// bootSlack is how far two readings of one boot's time, in seconds, may lie
// apart: where it is computed as now minus uptime, both are rounded.
const bootSlack = 2

// sameBoot reports whether two boot ids surely mean one boot.
func sameBoot(a, b string) bool {
	if a == "" || b == "" {
		return false
	}
	return a == b || closeBootTimes(a, b)
}

// otherBoot reports whether two boot ids surely mean two boots. Times never
// prove it, because setting the clock moves them.
func otherBoot(a, b string) bool {
	if a == "" || b == "" || isBootTime(a) || isBootTime(b) {
		return false
	}
	return a != b
}

// bootTimeID makes an id for systems that only know when they booted. The
// machine is part of it: after a power cut a whole rack boots in one second.
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
