package job

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/multilock/go/internal/procfs"
)

// scan returns the living members. A process belongs to the job if it did before, is in its group,
// has a parent that does, or carries the mark.
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
		if !belongs[p.PID] {
			continue
		}
		t.known[p.PID] = p.Start
		group = group || p.Group == t.pgid
		if !p.Ended() {
			living = append(living, member{pid: p.PID, start: p.Start, inGroup: t.owned && p.Group == t.pgid})
		}
	}
	t.owned = t.owned && (group || t.alive)
	t.forget(belongs)
	return living
}

// prove checks whether the group is still the job's: its number cannot be in use again while a
// known member of the group exists.
func (t *tree) prove(processes []procfs.Stat) {
	if t.owned {
		return
	}
	for _, p := range processes {
		if p.Group == t.pgid && t.knows(p) {
			t.owned = true
			return
		}
	}
}

func (t *tree) knows(p procfs.Stat) bool {
	start, ok := t.known[p.PID]
	return ok && start == p.Start
}

// findAll repeats passes over the processes until one adds none, because a child can have a smaller
// number than its parent.
func (t *tree) findAll(processes []procfs.Stat) map[int]bool {
	belongs := map[int]bool{}
	for _, p := range processes {
		belongs[p.PID] = t.knows(p) || t.owned && p.Group == t.pgid || t.marked(p)
	}
	for grown := true; grown; {
		grown = false
		for _, p := range processes {
			if !belongs[p.PID] && belongs[p.Parent] {
				belongs[p.PID] = true
				grown = true
			}
		}
	}
	// A runner inside of another job has the marks of that job in its environment, and is never
	// part of its own job.
	delete(belongs, os.Getpid())
	return belongs
}

// forget drops processes that have ended, so that the map does not grow without limit while a job
// that starts many processes is being ended.
func (t *tree) forget(belongs map[int]bool) {
	for pid := range t.known {
		if !belongs[pid] {
			delete(t.known, pid)
		}
	}
}

// marked looks for the mark in the environment that the process was started with
// (proc_pid_environ(5)). Only the owner and root may read that.
func (t *tree) marked(p procfs.Stat) bool {
	if t.mark == "" || p.Ended() || p.PID == os.Getpid() {
		return false
	}
	environ, _ := procfs.Proc.Read(p.PID, "environ")
	return procfs.HasEntry(environ, t.mark)
}

// signal signals exactly the process that was found. A pidfd (Linux 5.3) refers to that process, so the
// comparison stays valid; older kernels leave a gap of microseconds. It does not use os.FindProcess, for
// the reason in forkGuard.
func (m member) signal(sig syscall.Signal) error {
	held, noHold := unix.PidfdOpen(m.pid, 0)
	if noHold == nil {
		defer unix.Close(held)
	}
	now, err := procfs.Proc.Stat(m.pid)
	switch {
	case err != nil || now.Start != m.start:
		return os.ErrProcessDone
	case noHold != nil:
		return unix.Kill(m.pid, sig)
	}
	return unix.PidfdSendSignal(held, sig, nil, 0)
}

var errForeignProc = errors.New("/proc does not show the processes of our pid namespace")

// listProcesses returns all visible processes. It fails if /proc was mounted in another pid
// namespace: its numbers mean other processes to kill(2).
func listProcesses() ([]procfs.Stat, error) {
	if !procfs.Proc.Ours() {
		return nil, errForeignProc
	}
	pids, err := procfs.Proc.PIDs()
	processes := make([]procfs.Stat, 0, len(pids))
	for _, pid := range pids {
		if p, err := procfs.Proc.Stat(pid); err == nil {
			processes = append(processes, p)
		}
	}
	return processes, err
}
