package process

import (
	"bytes"
	"slices"
	"strconv"
	"time"
)

const (
	// leastSearch is how often all processes are gone through at least, and searchPatience
	// for how long, while others come and go: on a busy host nearly each pass misses one.
	leastSearch    = 10
	searchPatience = time.Second
	// settledPasses is how many passes in a row have to have missed nobody. After one,
	// a process may still have slipped through whose number was a small one, because
	// the numbers had just started over.
	settledPasses = 2
)

// jobSearch looks for the processes that have the mark in their environment.
type jobSearch struct {
	mark  string
	since uint64 // when the first of them can have started, 0 if that is not known
	// strangers are the start times, by pid, of those that were seen without the mark.
	// They do not get it later, and neither do their children.
	strangers map[int]uint64
}

// searchPass is what one pass showed.
type searchPass struct {
	found  *Evidence // one that lives
	doubt  *Evidence // one that may belong to the job, and cannot be looked at
	missed bool      // one has ended before its turn, and may have left a child behind
}

// judgeJob goes over all processes until nobody can have been missed.
func judgeJob(mark string, since uint64) Evidence {
	switch {
	case !procIsOurs():
		return evidence(Unknown, "/proc shows another pid namespace than that of its job")
	case procHides():
		return evidence(Unknown, "/proc may hide processes of its job")
	}
	s := jobSearch{mark: mark, since: since, strangers: map[int]uint64{}}
	settled := 0
	for n, start := 0, time.Now(); n < leastSearch || time.Since(start) < searchPatience; n++ {
		pass, err := s.pass()
		switch {
		case err != nil:
			return evidence(Unknown, "/proc cannot be listed, to look for its job: %v", err)
		case pass.found != nil:
			return *pass.found
		case pass.doubt != nil:
			return *pass.doubt
		case pass.missed:
			settled = 0
		default:
			settled++
		}
		if settled == settledPasses {
			return evidence(Gone, "no process carries the lock's token")
		}
	}
	return evidence(Unknown, "processes start and end faster than one can look for its job")
}

// pass looks at those first that were not seen before, and of those at the youngest:
// they may be gone a moment later.
func (s *jobSearch) pass() (searchPass, error) {
	pids, err := listPIDs()
	if err != nil {
		return searchPass{}, err
	}
	var p searchPass
	slices.SortFunc(pids, s.newestFirst)
	for _, pid := range pids {
		s.look(pid, &p)
		if p.found != nil {
			break
		}
	}
	return p, nil
}

func (s *jobSearch) newestFirst(a, b int) int {
	_, knownA := s.strangers[a]
	_, knownB := s.strangers[b]
	if knownA != knownB {
		if knownB {
			return -1
		}
		return 1
	}
	return b - a
}

func (s *jobSearch) look(pid int, p *searchPass) {
	var buf statBuffer
	seen, err := readStat(statPath(pid), &buf)
	switch {
	case err != nil && vanished(err):
		_, stranger := s.strangers[pid]
		p.missed = p.missed || !stranger
	case err != nil:
		p.suspect(pid, "name unknown")
	case seen.kernel || seen.start < s.since:
		// the kernel's own, or older than any job of the holder
	case seen.dead() && !hasLiveThread(pid):
		p.missed = p.missed || s.strangers[pid] != seen.start
		s.strangers[pid] = seen.start // it starts nobody any more
	default:
		s.lookInto(pid, seen, p)
	}
}

// lookInto reads the environment of a process that may belong to the job.
func (s *jobSearch) lookInto(pid int, seen stat, p *searchPass) {
	environ, err := readSmall(environPath(pid))
	switch {
	case err != nil && vanished(err), err == nil && len(environ) == 0 && inBetween(pid):
		p.missed = p.missed || s.strangers[pid] != seen.start
	case err != nil:
		p.suspect(pid, string(seen.name))
	case hasEntry(environ, s.mark):
		found := evidence(Alive, "process %d (%s) carries the lock's token", pid, printable(string(seen.name)))
		p.found = &found
	default:
		s.strangers[pid] = seen.start
	}
}

func (p *searchPass) suspect(pid int, name string) {
	doubt := evidence(Unknown, "process %d (%s), which may not be looked into, may belong to its job", pid, printable(name))
	p.doubt = &doubt
}

// inBetween reports a process without memory of its own: it is ending, or about to
// execute a program whose environment is not in place yet. No other one is without
// arguments.
func inBetween(pid int) bool {
	arguments, err := readSmall("/proc/" + strconv.Itoa(pid) + "/cmdline")
	return err != nil || len(arguments) == 0
}

func environPath(pid int) string { return "/proc/" + strconv.Itoa(pid) + "/environ" }

func hasEntry(environ []byte, entry string) bool {
	for one := range bytes.SplitSeq(environ, []byte{0}) {
		if string(one) == entry {
			return true
		}
	}
	return false
}
