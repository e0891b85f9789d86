package load

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
)

// Average returns the load average of the last minute. It is the whole host's, because cgroups have none.
func Average() (float64, error) {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0, err
	}
	first, _, _ := bytes.Cut(text, []byte(" "))
	load, err := strconv.ParseFloat(string(first), 64)
	if err != nil {
		return 0, fmt.Errorf("/proc/loadavg: %w", err)
	}
	return load, nil
}

// Processors returns the number of processors of the whole host, as the load average counts them, even if
// this process may use only some of them.
func Processors() int {
	text, err := os.ReadFile("/proc/stat")
	if n := bytes.Count(text, []byte("\ncpu")); err == nil && n > 0 {
		return n
	}
	return runtime.NumCPU()
}

// ReadMemory reads the memory of this host or cgroup. It needs Linux 3.14 or newer.
func ReadMemory() (Memory, error) {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return Memory{}, err
	}
	var m Memory
	var bad, alsoBad error
	m.Total, bad = meminfo(text, "MemTotal:")
	m.Available, alsoBad = meminfo(text, "MemAvailable:")
	return confined(m, "/sys/fs/cgroup", ownCgroup()), errors.Join(bad, alsoBad)
}

// meminfo parses the line "NAME:  NUMBER kB".
func meminfo(text []byte, name string) (uint64, error) {
	for line := range bytes.Lines(text) {
		if fields := bytes.Fields(line); len(fields) > 1 && string(fields[0]) == name {
			n, err := strconv.ParseUint(string(fields[1]), 10, 50)
			if err != nil {
				return 0, fmt.Errorf("/proc/meminfo: %w", err)
			}
			return n << 10, nil
		}
	}
	return 0, fmt.Errorf("/proc/meminfo has no %s", name)
}
