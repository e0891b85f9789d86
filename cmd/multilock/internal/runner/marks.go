package runner

import (
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
)

// markPace is how long a job that shares its lock runs before it is recorded there, and the shortest
// time between two writes.
const markPace = time.Second

// Marks records the jobs that run under one lock, concurrently or in sequence. It writes at most
// once a second, and nothing for shorter jobs. Jobs that are over may stay recorded; running jobs are
// never removed.
type Marks struct {
	lock *multilock.Lock
	say  func(format string, args ...any)

	mu     sync.Mutex
	jobs   []*markedJob // recorded, or to be recorded
	asked  bool         // a write is due or running
	missed bool         // that write will miss a job
	last   time.Time    // end of the last write
	noted  []process.Group
	again  *time.Timer
}

type markedJob struct {
	marks  *Marks
	groups func() []process.Group
	work   process.Work
	timer  *time.Timer
	over   bool
}

// NewMarks returns Marks for a held lock. They stop when the lock ends.
func NewMarks(lock *multilock.Lock, say func(format string, args ...any)) *Marks {
	return &Marks{lock: lock, say: say}
}

func (m *Marks) add(groups func() []process.Group, work process.Work) *markedJob {
	work.After = m.lock.Age().Seconds()
	j := &markedJob{marks: m, groups: groups, work: work}
	j.timer = time.AfterFunc(markPace, func() { m.note(j) })
	return j
}

func (j *markedJob) stop() {
	j.timer.Stop()
	j.marks.mu.Lock()
	defer j.marks.mu.Unlock()
	j.over = true
}

// note adds a job that has run long enough.
func (m *Marks) note(j *markedJob) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if j.over {
		return
	}
	m.jobs = append(m.jobs, j)
	m.missed = true
	m.ask()
}

// ask schedules the next write.
func (m *Marks) ask() {
	if m.missed && !m.asked {
		m.asked = true
		time.AfterFunc(markPace-min(time.Since(m.last), markPace), m.write)
	}
}

func (m *Marks) write() {
	groups := m.living()
	wrote := slices.ContainsFunc(groups, func(g process.Group) bool { return !slices.Contains(m.noted, g) })
	if wrote {
		ctx := m.lock.Context()
		err := m.lock.MarkJob(ctx, groups...)
		if err != nil && ctx.Err() == nil && !errors.Is(err, multilock.ErrUnsupported) && !errors.Is(err, multilock.ErrLost) {
			m.say("warning: the processes of jobs could not be noted in their lock: %v", err)
		}
		if err == nil {
			m.noted = groups
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.asked = false
	if wrote {
		m.last = time.Now()
	}
	if len(groups) > 0 && m.lock.Context().Err() == nil {
		if m.again != nil {
			m.again.Stop()
		}
		m.again = time.AfterFunc(beat(m.lock), m.look) // processes may move to other groups
	}
	m.ask()
}

func (m *Marks) look() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.missed = true
	m.ask()
}

// living drops the jobs that are over, and returns the groups of the others.
func (m *Marks) living() (groups []process.Group) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.missed = false
	m.jobs = slices.DeleteFunc(m.jobs, func(j *markedJob) bool { return j.over })
	for _, j := range m.jobs {
		for _, g := range j.groups() {
			g.Work = j.work
			groups = append(groups, g)
		}
	}
	groups = slices.DeleteFunc(groups, func(g process.Group) bool { return g.PGID == 0 }) // the job has just ended
	return groups[:min(len(groups), source.MaxGroups)]
}
