package load

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
)

// ownCgroup returns the path of this process's cgroup (v2) within its namespace, or "".
func ownCgroup() string {
	text, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return ""
	}
	for line := range bytes.Lines(text) {
		if path, ok := bytes.CutPrefix(line, []byte("0::")); ok {
			return filepath.Join("/", string(bytes.TrimSpace(path)))
		}
	}
	return ""
}

// confined reduces the host's memory to the limits of a cgroup, and of its ancestors up to top. Inactive file
// cache counts as available, as it does for the host. A level that cannot be read sets no limit.
func confined(m Memory, top, cgroup string) Memory {
	for at := cgroup; at != ""; at = parent(at) {
		dir := filepath.Join(top, at)
		most, limited := number(filepath.Join(dir, "memory.max"))
		used, known := number(filepath.Join(dir, "memory.current"))
		if !limited || !known {
			continue
		}
		used -= min(used, inactive(filepath.Join(dir, "memory.stat")))
		m.Total = min(m.Total, most)
		m.Available = min(m.Available, most-min(most, used))
	}
	return m
}

func parent(cgroup string) string {
	if cgroup == "/" {
		return ""
	}
	return filepath.Dir(cgroup)
}

// number reads a file with one number; ok is false for "max".
func number(path string) (n uint64, ok bool) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, false
	}
	n, err = strconv.ParseUint(string(bytes.TrimSpace(text)), 10, 64)
	return n, err == nil
}

func inactive(stat string) uint64 {
	text, err := os.ReadFile(stat)
	if err != nil {
		return 0
	}
	for line := range bytes.Lines(text) {
		if of, ok := bytes.CutPrefix(line, []byte("inactive_file ")); ok {
			n, _ := strconv.ParseUint(string(bytes.TrimSpace(of)), 10, 64) // an error counts as no cache
			return n
		}
	}
	return 0
}
