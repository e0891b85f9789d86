package mongolock

import (
	"fmt"
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
	// silence is the time since the last sign of life by the server's clock, or
	// source.Unknown.
	silence time.Duration
	// unchanged is for how long this observer has seen no sign of life, by its own
	// clock; watched is the part of it in which no sample was missing.
	unchanged, watched time.Duration
	maxAge             time.Duration
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
	// distantGlance is the same for a lock that may have passed on to somebody else.
	distantGlance = 5 * glance
	// leastGlance keeps a record with a tiny heartbeat, whoever wrote it, from having
	// the server asked without a pause.
	leastGlance = 10 * time.Millisecond
	// vigil confirms the end of a lock that nobody renews.
	vigil = time.Second
	// clockSlack is how far a sign of life may seem to lie in the future: a reading of
	// the server's clock is carried forward.
	clockSlack = 2 * clockFresh
)

// judge decides whether a lock's holder counts as alive. It is a pure function.
func judge(e evidence) verdict {
	switch {
	case e.record.Foreign != "":
		// Nothing in such a document tells one holding from the next, so that it looked
		// the same twice is no evidence of anything.
		return verdict{source.StateHeld, e.record.Foreign + "; only break --force can clear it", distantGlance}
	case e.job.Life == process.Alive:
		return verdict{source.StateHeld, "its job lives: " + e.job.Why, glance}
	case e.holder.Life == process.Gone && (!e.record.Job || e.job.Life == process.Gone):
		return verdict{state: source.StateDead, why: processesWhy(e)}
	case e.record.Heartbeat == 0:
		return judgeUnrenewed(e)
	}
	return judgeSilence(e)
}

// judgeSilence is for a holder that gives signs of life. The server's clock only
// says whom to suspect: the servers of a set have a clock each, and in a failover
// the holder cannot give a sign of life just when another clock begins to count. The
// observer's own clock decides, and it has to see the whole limit pass.
func judgeSilence(e evidence) verdict {
	limit, window := max(e.record.TTL, e.maxAge), e.record.Heartbeat*3/2
	silent := max(e.silence, e.unchanged)
	told := fmt.Sprintf("no sign of life for %s, with a limit of %s", silent.Round(time.Millisecond), limit)
	switch {
	case e.unchanged >= limit && e.watched >= window:
		return verdict{state: source.StateDead, why: fmt.Sprintf("%s, and none while it was watched for %s", told, e.unchanged.Round(time.Millisecond))}
	case e.silence < -clockSlack:
		return verdict{source.StateSuspect, "its last sign of life lies in the future: the server's clock was set back; watching it for " + limit.String(), watchNext(window)}
	case silent < limit:
		return verdict{source.StateHeld, aliveWhy(e), heldNext(e, limit-silent)}
	}
	return verdict{source.StateSuspect, fmt.Sprintf("%s by the server's clock; watching it for that time", told), watchNext(window)}
}

// judgeUnrenewed is for a lock that is held for a time, whether or not its holder
// lives. That time can only be told by the server's clock: nobody watches for hours.
func judgeUnrenewed(e evidence) verdict {
	limit, window := max(e.record.TTL, e.maxAge), min(e.record.TTL/10, vigil)
	silent := max(e.silence, e.unchanged)
	switch {
	case silent < limit:
		return verdict{source.StateHeld, fmt.Sprintf("it is held for %s without being renewed", e.record.TTL), heldNext(e, limit-silent)}
	case e.watched < window:
		return verdict{source.StateSuspect, fmt.Sprintf("its time of %s is over; watching it for %s", limit, window), watchNext(window)}
	}
	return verdict{state: source.StateDead, why: fmt.Sprintf("its time of %s is over", limit)}
}

func aliveWhy(e evidence) string {
	if e.holder.Life == process.Alive {
		return e.holder.Why
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

// heldNext says when another look makes sense: soon where a process of this host
// may end, otherwise when the silence may have become too long.
func heldNext(e evidence, left time.Duration) time.Duration {
	next := distantGlance
	if e.holder.Life != process.Unknown || e.record.Job {
		next = glance
	}
	return max(min(left, next), leastGlance)
}

// watchNext has a watch of a whole window take several samples.
func watchNext(window time.Duration) time.Duration { return max(window/6, leastGlance) }
