package process

import (
	"slices"
	"time"

	"github.com/multilock/go/internal/procfs"
)

const (
	// leastSearch is the minimum number of passes over all processes, and searchPatience the minimum time
	// for them, while other processes come and go: on a busy host nearly each pass misses one.
	leastSearch    = 10
	searchPatience = time.Second
	// settledPasses is how many consecutive passes have to be complete. A single pass may still miss a
	// process with a small number, because the numbers had just started over.
	settledPasses = 2
)

// judgeJob looks for the processes that have the mark in their environment.
func judgeJob(mark JobMark, since uint64) Evidence {
	switch {
	case !procfs.Proc.Ours():
		return evidence(Unknown, "/proc shows another pid namespace than that of its job")
	case procHides():
		return evidence(Unknown, "/proc may hide processes of its job")
	}
	s := jobSearch{proc: procfs.Proc, mark: mark, since: since, strangers: map[int]uint64{}}
	return settle(s.pass, searchPatience)
}

// settle passes over all processes until none can have been missed.
func settle(pass func() (searchPass, error), patience time.Duration) Evidence {
	settled := 0
	for n, start := 0, time.Now(); n < leastSearch || time.Since(start) < patience; n++ {
		p, err := pass()
		switch {
		case err != nil:
			return evidence(Unknown, "/proc cannot be listed, to look for its job: %v", err)
		case p.seen != nil:
			return *p.seen
		case p.missed:
			settled = 0
			continue
		}
		if settled++; settled == settledPasses {
			return evidence(Gone, "no process carries the lock's token")
		}
	}
	return evidence(Unknown, "processes start and end faster than one can look for its job")
}

// jobSearch looks for the processes that have the mark in their environment.
type jobSearch struct {
	proc  procfs.Dir
	mark  JobMark
	since uint64 // when the first process of the job can have started, 0 if unknown
	// strangers has the start times, by pid, of processes that were seen without the mark. They do not get
	// it later, and neither do their children.
	strangers map[int]uint64
}

// searchPass is the result of one pass.
type searchPass struct {
	seen   *Evidence // a live process of the job or, without one, a process that may belong to the job and cannot be inspected
	missed bool      // a process has ended before it was inspected, and may have left a child behind
}

func (s *jobSearch) pass() (p searchPass, err error) {
	pids, err := s.proc.PIDs()
	slices.SortFunc(pids, s.newestFirst)
	for _, pid := range pids {
		s.look(pid, &p)
		if p.seen != nil && p.seen.Life == Alive {
			break
		}
	}
	return p, err
}

// newestFirst orders processes that were not seen before first, and the youngest of those first, because
// they may soon be gone.
func (s *jobSearch) newestFirst(a, b int) int {
	_, knownA := s.strangers[a]
	_, knownB := s.strangers[b]
	switch {
	case knownA == knownB:
		return b - a
	case knownB:
		return -1
	}
	return 1
}

func (s *jobSearch) look(pid int, p *searchPass) {
	found, err := s.proc.Stat(pid)
	switch {
	case procfs.Vanished(err):
		if _, stranger := s.strangers[pid]; !stranger {
			p.missed = true
		}
	case err != nil:
		p.suspect(pid, "name unknown")
	case found.Kernel || found.Start < s.since:
		// the kernel's own, or older than any job of the holder
	case found.Ended():
		s.miss(found, p)
		s.strangers[pid] = found.Start // it does not start processes any more
	default:
		s.lookInto(found, p)
	}
}

// lookInto reads the environment of a process that may belong to the job.
func (s *jobSearch) lookInto(found procfs.Stat, p *searchPass) {
	environ, err := s.proc.Read(found.PID, "environ")
	switch {
	case procfs.Vanished(err):
		s.miss(found, p)
	case err != nil:
		p.suspect(found.PID, found.Name)
	case s.mark.in(environ):
		marked := evidence(Alive, "process %d (%s) carries the lock's token", found.PID, printable(found.Name))
		p.seen = &marked
	case len(environ) == 0 && s.inBetween(found.PID):
		s.miss(found, p)
	default:
		s.strangers[found.PID] = found.Start
	}
}

// miss records a process that cannot be inspected any more, or not yet.
func (s *jobSearch) miss(found procfs.Stat, p *searchPass) {
	if s.strangers[found.PID] != found.Start {
		p.missed = true
	}
}

func (p *searchPass) suspect(pid int, name string) {
	doubt := evidence(Unknown, "process %d (%s), which may not be looked into, may belong to its job", pid, printable(name))
	p.seen = &doubt
}

// inBetween reports a process without memory of its own: it is ending, or about to execute a program whose
// environment is not in place yet. No other process has no arguments.
func (s *jobSearch) inBetween(pid int) bool {
	arguments, _ := s.proc.Read(pid, "cmdline") // a process that has ended has none either
	return len(arguments) == 0
}

// in reports whether an environment has the mark.
func (m JobMark) in(environ []byte) bool {
	if m.KeyDigest == "" {
		return procfs.HasEntry(environ, TokenEntry(m.Token))
	}
	for key := range procfs.Values(environ, keyVariable) {
		if JobKey(key).Digest() == m.KeyDigest {
			return true
		}
	}
	return false
}
