package process

import (
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// judgePID reads the stat file first: for a living process whose start time
// agrees that is all it takes. Everything else is looked into further, as /proc
// may be one of another pid namespace and show somebody else.
func judgePID(pid int, start uint64) Evidence {
	var buf statBuffer
	found, err := readStat(statPath(pid), &buf)
	if err == nil && !found.dead() && start != 0 && found.start == start {
		return running(pid, found)
	}
	switch sent := unix.Kill(pid, 0); {
	case sent == unix.ESRCH:
		return evidence(Gone, "process %d no longer exists", pid)
	case sent != nil && sent != unix.EPERM:
		return evidence(Unknown, "process %d cannot be looked up: %v", pid, sent)
	case err != nil || !procIsOurs():
		return evidence(Alive, "a process %d exists on this host, and /proc does not show its start time", pid)
	case start != 0 && found.start != start:
		return evidence(Gone, "pid %d now belongs to another process (%s)", pid, printable(string(found.name)))
	}
	return judgeDead(pid, found)
}

// judgeDead looks behind a dead main thread: the process lives on as long as
// another of its threads does.
func judgeDead(pid int, found stat) Evidence {
	if !found.dead() || hasLiveThread(pid) {
		return running(pid, found)
	}
	return evidence(Gone, "process %d (%s) has ended and is a zombie", pid, printable(string(found.name)))
}

func running(pid int, found stat) Evidence {
	return evidence(Alive, "process %d (%s) is running on this host", pid, printable(string(found.name)))
}

// hasLiveThread is true also when that cannot be found out.
func hasLiveThread(pid int) bool {
	tasks := filepath.Join("/proc", strconv.Itoa(pid), "task")
	entries, err := os.ReadDir(tasks)
	if err != nil {
		return !vanished(err)
	}
	var buf statBuffer
	for _, entry := range entries {
		thread, err := readStat(filepath.Join(tasks, entry.Name(), "stat"), &buf)
		if err == nil && !thread.dead() || err != nil && !vanished(err) {
			return true
		}
	}
	return false
}

// ownStart needs no pid, so it is right whatever namespace /proc belongs to.
func ownStart() uint64 {
	var buf statBuffer
	own, err := readStat("/proc/self/stat", &buf)
	if err != nil {
		return 0
	}
	return own.start
}

func startOf(pid int) (uint64, error) {
	if unix.Kill(pid, 0) == unix.ESRCH {
		return 0, ErrNotFound
	}
	if !procIsOurs() {
		return 0, nil
	}
	var buf statBuffer
	found, err := readStat(statPath(pid), &buf)
	if err != nil {
		return 0, nil //nolint:nilerr // it exists, and hides when it started
	}
	return found.start, nil
}
