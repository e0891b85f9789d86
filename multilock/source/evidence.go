package source

import (
	"fmt"
	"time"

	"github.com/multilock/go/multilock/process"
)

// Evidence is what one observer has found out about the holder of a lock: all that a
// verdict on its life rests on.
type Evidence struct {
	Record Record
	// Holder and Job are what this host knows of the processes. That a job is Gone is
	// said only of all that carries the lock's token, not of its process group alone.
	Holder, Job process.Evidence
	// Probed is the answer of a Probe.
	Probed process.Evidence
	// Silence is the time since the last sign of life by the source's clock, or Unknown.
	// It is negative if that clock was set back.
	Silence time.Duration
	// Unchanged is for how long the observer has seen no sign of life, by its own clock;
	// Watched is the part of it in which every sample came as it should: see Watch.
	Unchanged, Watched time.Duration
	// Grain is the step of the times by which all that is told, 0 if they are fine: a sign
	// of life may be later than it seems by that much, and may show by as much later.
	Grain time.Duration
	// MaxAge is the observer's StalePolicy.
	MaxAge time.Duration
}

// Verdict is what the evidence says. Its parts are those of a Sighting.
type Verdict struct {
	State State
	Why   string
	Next  time.Duration
}

// Rules are what the verdicts of one source do in their own way.
type Rules struct {
	// Near is how soon another look may show something new where a process of this host
	// may end, Far how soon the lock may have passed on to somebody else.
	Near, Far time.Duration
	// OwnClock says that the source's clock only tells whom to suspect, and that the
	// observer has to see a renewed lock's whole limit pass by its own: for servers that
	// have a clock each, and take each other's place.
	OwnClock bool
	// NoClock says that of every lock, for where the clock of some host dates the signs of
	// life: it may be off by hours.
	NoClock bool
}

// Limit is the silence that a holder is allowed.
type Limit struct {
	Silence time.Duration // a longer one makes it suspect
	Window  time.Duration // for so long it is watched then
	Why     string        // why it counts as alive until then
}

const (
	// leastNext keeps a record with a tiny heartbeat, whoever wrote it, from having a
	// source asked without a pause.
	leastNext = 10 * time.Millisecond
	// unrenewedWindow confirms the end of a lock that nobody renews.
	unrenewedWindow = time.Second
	// clockSlack is how far a sign of life may seem to lie in the future: a clock's
	// readings have its ticks, and are carried forward.
	clockSlack = time.Second
)

// AskHost adds what this host knows of the holder, and of its jobs' process groups.
func (e *Evidence) AskHost(self process.Identity) {
	if e.Record.Token != "" {
		e.Holder = e.Record.Holder.Judge(self)
	}
	if e.Record.Job {
		e.Job = judgeGroups(e.Record.Groups, self)
	}
}

// judgeGroups says whether any of the jobs lives. They are over if each of them is, and if
// these are all: of more than anybody names nobody knows.
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

// SearchJob looks for what a job may have left outside of its group: at all processes of
// the host, so only before its lock is called dead. It reports whether it did.
func (e *Evidence) SearchJob(jobs *process.JobWatch, self process.Identity) bool {
	if !e.Record.Job || e.Job.Life == process.Alive {
		return false
	}
	e.Job = jobs.Judge(e.Record.Holder.Identity, e.Record.JobMark(), self)
	return true
}

// Judge decides whether the holder of a lock with a TTL counts as alive.
func (e Evidence) Judge(rules Rules) Verdict {
	if v, certain := e.JudgeProcesses(rules); certain {
		return v
	}
	return e.JudgeSilence(e.Limit(), rules)
}

// JudgeProcesses decides by what this host knows of the holder and its job, if that is
// enough. A holder without a token is only a pid, which proves nothing.
func (e Evidence) JudgeProcesses(rules Rules) (v Verdict, certain bool) {
	switch {
	case e.Record.Token == "":
		return Verdict{}, false
	case e.Job.Life == process.Alive:
		return Verdict{StateHeld, "its job lives: " + e.Job.Why, rules.Near}, true
	case e.Holder.Life == process.Gone && (!e.Record.Job || e.Job.Life == process.Gone):
		return Verdict{State: StateDead, Why: e.Processes()}, true
	case e.Probed.Life == process.Gone && e.Overdue(rules):
		return Verdict{State: StateDead, Why: fmt.Sprintf("%s, and it has missed a sign of life", e.Probed.Why)}, true
	}
	return Verdict{}, false // something of its job may live on
}

// Overdue says that a sign of life has not come that should have, from a holder of which this
// host knows nothing: a Probe may be asked about it. Without that second witness its answer
// is not believed, for a number may be that of another job by now, or of another cluster.
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

// Processes is what is known of a holder that does not run here, and of its job.
func (e Evidence) Processes() string {
	if e.Holder.Life == process.Gone && e.Record.Job {
		return e.Holder.Why + ", and " + e.Job.Why
	}
	return e.Holder.Why
}

// Limit is what a record with a TTL allows. StalePolicy can only prolong it: a holder
// trusts its TTL.
func (e Evidence) Limit() Limit {
	r := e.Record
	l := Limit{max(r.TTL, e.MaxAge), r.Heartbeat * 3 / 2, fmt.Sprintf("silent for less than its ttl of %s, and %s", r.TTL, e.Processes())}
	switch {
	case r.Heartbeat == 0:
		l.Window, l.Why = min(r.TTL/10, unrenewedWindow), fmt.Sprintf("it is held for %s without being renewed", r.TTL)
	case e.Holder.Life == process.Alive:
		l.Why = e.Holder.Why
	}
	return l
}

// JudgeSilence decides by the time without a sign of life. A source's clock that was set
// back makes signs of life seem to lie in the future; then the observer's own clock
// decides alone.
func (e Evidence) JudgeSilence(l Limit, rules Rules) Verdict {
	again := max(l.Window/6, leastNext) // which is shorter than any gap between two samples may be
	limit, window := l.Silence+e.Grain, l.Window+e.Grain
	silent := max(e.Silence, e.Unchanged)
	proven, unrenewed := silent, e.Record.TTL > 0 && e.Record.Heartbeat == 0 // whose time nobody watches as a whole
	if rules.NoClock || rules.OwnClock && !unrenewed {
		proven = e.Unchanged
	}
	told := fmt.Sprintf("no sign of life for %s, with a limit of %s", silent.Round(time.Millisecond), limit)
	switch {
	case proven >= limit && e.Watched >= window:
		return Verdict{State: StateDead, Why: fmt.Sprintf("%s, and none while it was watched for %s", told, e.Watched.Round(time.Millisecond))}
	case e.Silence < -clockSlack && silent < limit && !unrenewed:
		return Verdict{StateSuspect, fmt.Sprintf("its last sign of life lies in the future: the server's clock was set back; watching it for %s", limit), again}
	case rules.NoClock && unrenewed && proven < limit: // only who waits for the lock sees it end
		return Verdict{StateHeld, l.Why, e.heldNext(limit-proven, rules)}
	case silent < limit:
		return Verdict{StateHeld, l.Why, e.heldNext(limit-silent, rules)}
	case proven < limit:
		return Verdict{StateSuspect, told + " by the server's clock; watching it for that time", again}
	}
	return Verdict{StateSuspect, fmt.Sprintf("%s; watching it for %s", told, window), again}
}

// heldNext says when another look at a held lock makes sense: when the silence may have
// become too long, but often enough to notice that a process of this host has ended, or
// that the lock has passed on.
func (e Evidence) heldNext(left time.Duration, rules Rules) time.Duration {
	next := rules.Far
	if e.Holder.Life != process.Unknown || e.Record.Job {
		next = rules.Near
	}
	return max(min(left, next), leastNext)
}
