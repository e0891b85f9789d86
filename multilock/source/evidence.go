package source

import (
	"fmt"
	"time"

	"github.com/multilock/go/multilock/process"
)

// Evidence is what one observer knows about the holder of a lock: everything that the assessment
// depends on.
type Evidence struct {
	Record Record
	// Holder and Job are what this host knows of the processes. The job is Gone only if no process
	// with the lock's token is left, not just its process group.
	Holder, Job process.Evidence
	// Probed is the reply of a Probe.
	Probed process.Evidence
	// Silence is the time since the last heartbeat by the source's clock, or Unknown. It is
	// negative if that clock was set back.
	Silence time.Duration
	// Unchanged is how long the observer has seen no heartbeat, by its own clock; Watched is the
	// part of it in which every sample was on time: see Watch.
	Unchanged, Watched time.Duration
	// Grain is the granularity of these times, 0 if it is fine: a heartbeat may be later than it
	// seems by that much, and may become visible later by as much.
	Grain time.Duration
	// MaxAge is that of the observer's StalePolicy.
	MaxAge time.Duration
}

// Assessment is the assessment of the evidence. Its fields are those of a Observation.
type Assessment struct {
	State State
	Why   string
	Next  time.Duration
}

// Rules are the parameters of the assessment that depend on the source.
type Rules struct {
	// Near is when to look again while a process of this host may end; Far is when to look again
	// because the lock may have another holder.
	Near, Far time.Duration
	// OwnClock means that the source's clock is only good for suspicion, and that the observer
	// measures the whole limit of a renewed lock with its own clock: for servers with separate
	// clocks that fail over to each other.
	OwnClock bool
	// NoClock is OwnClock for every lock, renewed or not, where the clock of some host dates the
	// heartbeats: it may be off by hours.
	NoClock bool
}

// Limit is how long a holder may go without a heartbeat.
type Limit struct {
	Silence time.Duration // beyond it the holder is suspect
	Window  time.Duration // how long a suspect is watched
	Why     string        // why it counts as alive until then
}

const (
	// leastNext keeps a record with a tiny heartbeat interval from causing a busy loop.
	leastNext = 10 * time.Millisecond
	// unrenewedWindow is the maximum watch of a lock without heartbeats after its TTL.
	unrenewedWindow = time.Second
	// clockSlack is how far a heartbeat may seem to lie in the future, because clocks have ticks
	// and readings are extrapolated.
	clockSlack = time.Second
)

// AskHost adds what this host knows of the holder and of its jobs' process groups.
func (e *Evidence) AskHost(self process.Identity) {
	if e.Record.Token != "" {
		e.Holder = e.Record.Holder.Judge(self)
	}
	if e.Record.Job {
		e.Job = judgeGroups(e.Record.Groups, self)
	}
}

// judgeGroups reports whether any of the jobs is alive. They are gone if each of them is, and if
// the list is complete: it does not name more than MaxGroups.
func judgeGroups(groups []process.Group, self process.Identity) process.Evidence {
	if len(groups) == 0 {
		return process.Group{}.Judge(self)
	}
	var all process.Evidence
	for i, g := range groups {
		e := g.Judge(self)
		if e.Life == process.Alive {
			return e
		}
		if i == 0 || e.Life == process.Unknown {
			all = e
		}
	}
	if len(groups) > MaxGroups && all.Life == process.Gone {
		return process.Evidence{Life: process.Alive, Why: fmt.Sprintf("more than %d process groups are noted in it", MaxGroups)}
	}
	return all
}

// SearchJob looks for processes of the job outside of its group. It scans all processes of the
// host, so it is called only before a lock is called dead. It reports whether it scanned.
func (e *Evidence) SearchJob(jobs *process.JobWatch, self process.Identity) bool {
	if !e.Record.Job || e.Job.Life == process.Alive {
		return false
	}
	e.Job = jobs.Judge(e.Record.Holder.Identity, e.Record.JobMark(), self)
	return true
}

// Judge decides whether the holder of a lock with a TTL counts as alive.
func (e Evidence) Judge(rules Rules) Assessment {
	if v, certain := e.JudgeProcesses(rules); certain {
		return v
	}
	return e.JudgeSilence(e.Limit(), rules)
}

// JudgeProcesses decides by what this host knows of the holder and its job, if that is sufficient.
// A holder without a token is only a pid, which proves nothing.
func (e Evidence) JudgeProcesses(rules Rules) (v Assessment, certain bool) {
	switch {
	case e.Record.Token == "":
		return Assessment{}, false
	case e.Job.Life == process.Alive:
		return Assessment{StateHeld, "its job lives: " + e.Job.Why, rules.Near}, true
	case e.Holder.Life == process.Gone && (!e.Record.Job || e.Job.Life == process.Gone):
		return Assessment{State: StateDead, Why: e.Processes()}, true
	case e.Probed.Life == process.Gone && e.Overdue(rules):
		return Assessment{State: StateDead, Why: fmt.Sprintf("%s, and it has missed a heartbeat", e.Probed.Why)}, true
	}
	return Assessment{}, false // processes of its job may be alive
}

// Overdue reports whether a heartbeat is overdue from a holder of which this host knows nothing, so
// that a Probe may be asked. The overdue heartbeat is required as a second indication because the
// batch job's ID may belong to another job or cluster by now.
func (e Evidence) Overdue(rules Rules) bool {
	if e.Record.Token == "" || e.Record.Heartbeat == 0 || e.Holder.Life != process.Unknown || e.Job.Life == process.Alive {
		return false
	}
	silent := e.Unchanged
	if !rules.NoClock && !rules.OwnClock {
		silent = max(silent, e.Silence)
	}
	return silent >= e.Record.Heartbeat*3/2+e.Grain
}

// Processes describes the state of the holder's process and, if the holder is gone, of its job.
func (e Evidence) Processes() string {
	if e.Holder.Life == process.Gone && e.Record.Job {
		return e.Holder.Why + ", and " + e.Job.Why
	}
	return e.Holder.Why
}

// Limit returns the limit of a record with a TTL. StalePolicy can only prolong it, because a holder
// relies on its TTL.
func (e Evidence) Limit() Limit {
	r := e.Record
	l := Limit{max(r.TTL, e.MaxAge), r.Heartbeat * 3 / 2, fmt.Sprintf("its ttl of %s has not passed, and %s", r.TTL, e.Processes())}
	switch {
	case r.Heartbeat == 0:
		l.Window, l.Why = min(r.TTL/10, unrenewedWindow), fmt.Sprintf("it is held for %s without being renewed", r.TTL)
	case e.Holder.Life == process.Alive:
		l.Why = e.Holder.Why
	}
	return l
}

// JudgeSilence decides by the time without a heartbeat. If a source's clock was set back,
// heartbeats seem to lie in the future; then only the observer's own clock counts.
func (e Evidence) JudgeSilence(l Limit, rules Rules) Assessment {
	again := max(l.Window/6, leastNext) // less than the maximum gap between two samples
	limit, window := l.Silence+e.Grain, l.Window+e.Grain
	silent := max(e.Silence, e.Unchanged)
	proven, unrenewed := silent, e.Record.TTL > 0 && e.Record.Heartbeat == 0 // observers do not watch its whole TTL
	if rules.NoClock || rules.OwnClock && !unrenewed {
		proven = e.Unchanged
	}
	missing := fmt.Sprintf("no heartbeat for %s, with a limit of %s", silent.Round(time.Millisecond), limit)
	switch {
	case proven >= limit && e.Watched >= window:
		return Assessment{State: StateDead, Why: fmt.Sprintf("%s, and none while it was watched for %s", missing, e.Watched.Round(time.Millisecond))}
	case e.Silence < -clockSlack && silent < limit && !unrenewed:
		return Assessment{StateSuspect, fmt.Sprintf("its last heartbeat lies in the future: the server's clock was set back; watching it for %s", limit), again}
	case rules.NoClock && unrenewed && proven < limit: // only a waiter sees it end
		return Assessment{StateHeld, l.Why, e.heldNext(limit-proven, rules)}
	case silent < limit:
		return Assessment{StateHeld, l.Why, e.heldNext(limit-silent, rules)}
	case proven < limit:
		return Assessment{StateSuspect, missing + " by the server's clock; watching it for that time", again}
	}
	return Assessment{StateSuspect, fmt.Sprintf("%s; watching it for %s", missing, window), again}
}

// heldNext returns when to look again at a held lock: when the limit may be reached, but often
// enough to notice that a process of this host has ended, or that the lock has another holder.
func (e Evidence) heldNext(left time.Duration, rules Rules) time.Duration {
	next := rules.Far
	if e.Holder.Life != process.Unknown || e.Record.Job {
		next = rules.Near
	}
	return max(min(left, next), leastNext)
}
