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

// markPace is how long a job that shares its lock has run when it is noted there, and the
// time between two notes.
const markPace = time.Second

// Marks notes the jobs that run under one lock, side by side and one after the other. It
// writes at most once in a second, and nothing for jobs that are shorter. What is over may
// stay noted; what is noted and lives is never taken back.
type Marks struct {
	lock *multilock.Lock
	say  func(format string, args ...any)

	mu     sync.Mutex
	jobs   []*markedJob // those that are noted, or are to be
	asked  bool         // a write is due, or under way
	missed bool         // it came too late for a job
	last   time.Time    // when the last one ended
	noted  []process.Group
	again  *time.Timer
}

type markedJob struct {
	marks  *Marks
	groups func() []process.Group
	timer  *time.Timer
	over   bool
}

// NewMarks is for the jobs under a lock that is held. It has an end with the lock.
func NewMarks(lock *multilock.Lock, say func(format string, args ...any)) *Marks {
	return &Marks{lock: lock, say: say}
}

func (m *Marks) add(groups func() []process.Group) *markedJob {
	j := &markedJob{marks: m, groups: groups}
	j.timer = time.AfterFunc(markPace, func() { m.note(j) })
	return j
}

func (j *markedJob) stop() {
	j.timer.Stop()
	j.marks.mu.Lock()
	defer j.marks.mu.Unlock()
	j.over = true
}

// note has a job noted that has run for long enough.
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

// ask has the next write made when it may be.
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
		m.again = time.AfterFunc(beat(m.lock), m.look) // their processes may move to other groups
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
		groups = append(groups, j.groups()...)
	}
	groups = slices.DeleteFunc(groups, func(g process.Group) bool { return g.PGID == 0 }) // it has just ended
	return groups[:min(len(groups), source.MaxGroups)]
}
