package job

import (
	"bytes"
	"errors"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// scan returns the living members. A process belongs to the job if it did
// before, is in its group, has a parent that does, or carries the mark.
func (t *tree) scan() []member {
	processes, err := listProcesses()
	if err != nil {
		return t.scanGroup()
	}
	t.prove(processes)
	belongs := t.findAll(processes)
	var living []member
	group := false
	for _, p := range processes {
		if !belongs[p.pid] {
			continue
		}
		t.known[p.pid] = p.start
		group = group || p.group == t.pgid
		if !p.dead() {
			living = append(living, member{pid: p.pid, start: p.start, inGroup: t.owned && p.group == t.pgid})
		}
	}
	t.owned = t.owned && (group || t.alive)
	t.forget(belongs)
	return living
}

// prove finds out whether the group is still the job's: its number cannot have
// been given away while a process known to be in it exists.
func (t *tree) prove(processes []stat) {
	if t.owned {
		return
	}
	for _, p := range processes {
		if p.group == t.pgid && t.knows(p) {
			t.owned = true
			return
		}
	}
}

func (t *tree) knows(p stat) bool {
	start, ok := t.known[p.pid]
	return ok && start == p.start
}

// findAll goes over the processes until no pass adds one, because a child can
// have a smaller number than its parent.
func (t *tree) findAll(processes []stat) map[int]bool {
	belongs := map[int]bool{}
	for _, p := range processes {
		belongs[p.pid] = t.knows(p) || t.owned && p.group == t.pgid || t.marked(p)
	}
	for grown := true; grown; {
		grown = false
		for _, p := range processes {
			if !belongs[p.pid] && belongs[p.parent] {
				belongs[p.pid] = true
				grown = true
			}
		}
	}
	// A runner inside of a job has the marks of that one in its environment,
	// and must not take itself for a part of its own job in any case.
	delete(belongs, os.Getpid())
	return belongs
}

// forget drops those that exist no more, so that the map does not grow with the
// number of processes that a long job starts while it is being ended.
func (t *tree) forget(belongs map[int]bool) {
	for pid := range t.known {
		if !belongs[pid] {
			delete(t.known, pid)
		}
	}
}

// marked looks for the mark in the environment that the process was started
// with (proc_pid_environ(5)). Only the owner and root may read that.
func (t *tree) marked(p stat) bool {
	if t.mark == "" || p.dead() || p.pid == os.Getpid() {
		return false
	}
	environ, err := readProc("/proc/" + strconv.Itoa(p.pid) + "/environ")
	if err != nil {
		return false
	}
	for entry := range bytes.SplitSeq(environ, []byte{0}) {
		if string(entry) == t.mark {
			return true
		}
	}
	return false
}

// signal signals exactly the process that was seen. A pidfd holds it where the kernel
// has those (5.3), and what is compared after that cannot change any more. On older
// kernels a gap of microseconds is left. It is not left to os.FindProcess for the
// reason that forkGuard gives.
func (m member) signal(sig syscall.Signal) error {
	held, noHold := unix.PidfdOpen(m.pid, 0)
	if noHold == nil {
		defer unix.Close(held)
	}
	now, err := readStat(m.pid)
	switch {
	case err != nil || now.start != m.start:
		return os.ErrProcessDone
	case noHold != nil:
		return unix.Kill(m.pid, sig)
	}
	return unix.PidfdSendSignal(held, sig, nil, 0)
}

// parentOf returns the parent of a process.
func parentOf(pid int) (int, error) {
	p, err := readStat(pid)
	if err != nil {
		return 0, err
	}
	return p.parent, nil
}

// ignored reports whether we ignore a signal at this moment. signal.Ignored
// knows that only of what was ignored through it, and of SIGHUP and SIGINT.
func ignored(sig syscall.Signal) bool {
	mask, err := ignoredMask()
	return err == nil && mask&(1<<(uint(sig)-1)) != 0
}

var errNoMask = errors.New("no line SigIgn in /proc/self/status")

func ignoredMask() (uint64, error) {
	status, err := readProc("/proc/self/status")
	if err != nil {
		return 0, err
	}
	for line := range bytes.Lines(status) {
		if value, ok := bytes.CutPrefix(line, []byte("SigIgn:")); ok {
			return strconv.ParseUint(string(bytes.TrimSpace(value)), 16, 64)
		}
	}
	return 0, errNoMask
}
