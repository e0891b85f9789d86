package fslock

import (
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
)

// evidence is all that a verdict rests on.
type evidence struct {
	record source.Record
	// holder and job are what this host knows of the processes. That a job is Gone is
	// said only of all that carries the lock's token, not of its process group alone.
	holder, job process.Evidence
	// peer is what this host knows of the process of a Python MultiLock, and legacy
	// says that such peers are reckoned with.
	peer   process.Evidence
	legacy bool
	// torn says that the lock file is empty, as a crash of the writer's machine leaves it.
	torn bool
	// strange is what is known of a record that cannot be understood.
	strange strange
	// silence is the time since the last sign of life by the server's clock, or
	// source.Unknown.
	silence time.Duration
	// clock is why that clock could not be read.
	clock error
	// shown says that this observer has seen a sign of life come.
	shown bool
	// unchanged is for how long this observer has seen no sign of life, by its own
	// clock; watched is the part of it during which every sample came quickly.
	unchanged, watched time.Duration
	// grain is the step of the times by which all that is told.
	grain  time.Duration
	maxAge time.Duration
}

// verdict is what the evidence says.
type verdict struct {
	state source.State
	why   string
	next  time.Duration
}

const (
	// glance is how soon a look at a process of this host may show something new.
	glance = time.Second
	// tornBeat stands for the heartbeat of a record that was lost: the longest.
	tornBeat = 30 * time.Second
	// tornLimit stands for its TTL. The machine that wrote it went down, and with it
	// whoever relied on more.
	tornLimit = 3 * tornBeat
	// strangeLimit is for a holder whose record cannot be understood, though multilock
	// wrote it. It touches the directory every tornBeat at the latest; a whole hour spares
	// one whose server is away for long.
	strangeLimit = time.Hour
	// silentWindow confirms the silence of a lock that nobody renews.
	silentWindow = time.Second
	// clockSlack is how far a sign of life may seem to lie in the future: a reading
	// of the server's clock has that clock's ticks, some milliseconds each, and is
	// carried forward.
	clockSlack = time.Second
)

// judge decides whether a lock's holder counts as alive. It is a pure function.
func judge(e evidence) verdict {
	if v, certain := judgeProcesses(e); certain {
		return v
	}
	if v, certain := judgePeer(e); certain {
		return v
	}
	limit, window, why := limits(e)
	if limit == 0 {
		return verdict{source.StateHeld, why, 5 * glance}
	}
	return judgeSilence(e, limit, window, why)
}

// judgeProcesses looks at what this host knows of the holder and its job.
func judgeProcesses(e evidence) (v verdict, certain bool) {
	if e.record.Token == "" {
		return verdict{}, false // a pid without a boot and a namespace proves nothing
	}
	if e.job.Life == process.Alive {
		return verdict{source.StateHeld, "its job lives: " + e.job.Why, glance}, true
	}
	if e.holder.Life != process.Gone {
		return verdict{}, false
	}
	if e.record.Job && e.job.Life != process.Gone {
		return verdict{}, false // something of its job may live on
	}
	return verdict{state: source.StateDead, why: processesWhy(e)}, true
}

// limits gives the silence after which a holder is suspect, the time for which
// that silence must then be watched, and why it counts as alive until then. No
// limit means that silence proves nothing.
func limits(e evidence) (limit, window time.Duration, why string) {
	r := e.record
	switch {
	case e.torn:
		return max(tornLimit, e.maxAge), tornBeat * 3 / 2, "its record is empty"
	case e.strange.ours && e.maxAge == 0:
		limit = strangeLimit + e.strange.ttl
		return limit, tornBeat * 3 / 2, strangeWhy(e.strange, limit)
	case e.strange.ours:
		limit = max(e.maxAge, e.strange.ttl)
		return limit, min(limit/10, tornBeat) + silentWindow/10, strangeWhy(e.strange, limit)
	case r.TTL == 0:
		return e.maxAge, min(e.maxAge/10, tornBeat) + silentWindow/10, foreignWhy(e)
	case r.Heartbeat == 0:
		return max(r.TTL, e.maxAge), min(r.TTL/10, silentWindow), fmt.Sprintf("it is held for %s without being renewed", r.TTL)
	}
	return max(r.TTL, e.maxAge), r.Heartbeat * 3 / 2, aliveWhy(e)
}

func foreignWhy(e evidence) string {
	const clear = "; it has no ttl, so only --max-age or break --force can clear it"
	switch {
	case e.record.Foreign != "":
		return e.record.Foreign + clear
	case e.peer.Life == process.Gone:
		return "it was taken by a Python MultiLock, and " + e.peer.Why + clear
	}
	return "it was taken by a Python MultiLock" + clear
}

func strangeWhy(s strange, limit time.Duration) string {
	return fmt.Sprintf("%s; it counts as dead after %s without a sign of life (--max-age says otherwise, break --force does not wait)", s.why, limit)
}

func aliveWhy(e evidence) string {
	if e.holder.Life == process.Alive {
		return e.holder.Why
	}
	if e.clock != nil && e.shown {
		return fmt.Sprintf("it gave a sign of life while it was watched, and none for %s since; %s", e.unchanged.Round(time.Millisecond), processesWhy(e))
	}
	return fmt.Sprintf("silent for less than its ttl of %s, and %s", e.record.TTL, processesWhy(e))
}

// processesWhy is what is known of a holder that does not run here, and of its job.
func processesWhy(e evidence) string {
	if e.holder.Life == process.Gone && e.record.Job {
		return e.holder.Why + ", and " + e.job.Why
	}
	return e.holder.Why
}

// judgeSilence decides by the time without a sign of life. A server clock that
// was set back makes signs of life seem to lie in the future; then the
// observer's own clock decides alone.
//
// Where times have a coarse step, a sign of life may be later than it seems by that
// much, and may show by as much later.
func judgeSilence(e evidence, limit, window time.Duration, why string) verdict {
	pause := window / 6 // which is shorter than any gap between two samples may be
	limit, window = limit+e.grain, window+e.grain
	silent := max(e.silence, e.unchanged)
	told := fmt.Sprintf("no sign of life for %s, with a limit of %s", silent.Round(time.Millisecond), limit)
	switch {
	case e.silence < -clockSlack && silent < limit:
		return verdict{source.StateSuspect, "its last sign of life lies in the future: the server's clock was set back", pause}
	case silent < limit && e.blind():
		return verdict{source.StateSuspect, blindWhy(e, limit), pause}
	case silent < limit:
		return verdict{source.StateHeld, why, heldNext(e, limit-silent)}
	case e.watched < window:
		return verdict{source.StateSuspect, fmt.Sprintf("%s; watching it for %s", told, window), pause}
	}
	return verdict{state: source.StateDead, why: fmt.Sprintf("%s, and none while it was watched for %s", told, e.watched.Round(time.Millisecond))}
}

// blind says that nothing is known of the holder's silence but what this observer has
// seen of it himself, and that is no sign of life yet. One that lives will show before
// long, so it is worth watching; of one that nobody renews that cannot be said.
func (e evidence) blind() bool {
	return e.clock != nil && !e.shown && e.holder.Life != process.Alive && e.record.Heartbeat > 0
}

func blindWhy(e evidence, limit time.Duration) string {
	why := e.clock.Error()
	var number syscall.Errno
	if errors.As(e.clock, &number) {
		why = number.Error()
	}
	return fmt.Sprintf("watched for %s without a sign of life, with a limit of %s: how long it was silent before is not known, for the server's clock cannot be read from here (%s)",
		e.unchanged.Round(time.Millisecond), limit, why)
}

// heldNext says when another look makes sense: soon where a process of this host
// may end, otherwise when the silence may have become too long, but often enough
// to notice that the lock has passed on to somebody else.
func heldNext(e evidence, left time.Duration) time.Duration {
	next := 5 * glance
	if e.holder.Life != process.Unknown || e.record.Job {
		next = glance
	}
	return max(min(left, next), 10*time.Millisecond)
}
