package cloudshell

import (
	"fmt"
	"time"

	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
)

// evidence is all that a verdict rests on.
type evidence struct {
	standing standing
	// holder and job are what this host knows of the processes.
	holder, job process.Evidence
	// silence is the time since the last sign of life by the server's clock, or
	// source.Unknown.
	silence time.Duration
	// unchanged is for how long this observer has seen no sign of life, watched the
	// part of it during which every listing came quickly; by its own clock.
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
	// heldNext is how soon another look at a held lock makes sense: it is a listing
	// of the whole reservation.
	heldNext = 5 * time.Second
	soonest  = 10 * time.Millisecond
	// silentWindow confirms the silence of a lock that nobody renews.
	silentWindow = time.Second
)

const onlyByForce = "; it gives no signs of life, so only break --force can clear it"

// judge decides whether a lock's holder counts as alive. It is a pure function.
func judge(e evidence) verdict {
	r := e.standing.record
	switch {
	case e.standing.state == freeHere:
		return verdict{state: source.StateFree, why: "nobody holds it"}
	case e.standing.state == heldByOther:
		return verdict{source.StateHeld, e.standing.why + onlyByForce, heldNext}
	case e.job.Life == process.Alive:
		return verdict{source.StateHeld, "its job lives: " + e.job.Why, heldNext}
	case e.holder.Life == process.Gone && (!r.Job || e.job.Life == process.Gone):
		return verdict{state: source.StateDead, why: processesWhy(e)}
	}
	limit, window := max(r.TTL, e.maxAge), r.Heartbeat*3/2
	if r.Heartbeat == 0 {
		window = min(r.TTL/10, silentWindow)
	}
	silent := max(e.silence, e.unchanged)
	told := fmt.Sprintf("no sign of life for %s, with a limit of %s", silent.Round(time.Millisecond), limit)
	switch {
	case silent < limit:
		return verdict{source.StateHeld, aliveWhy(e), max(min(limit-silent, heldNext), soonest)}
	case e.watched < window:
		return verdict{source.StateSuspect, fmt.Sprintf("%s; watching it for %s", told, window), max(window/6, soonest)}
	}
	return verdict{state: source.StateDead, why: fmt.Sprintf("%s, and none while it was watched for %s", told, e.watched.Round(time.Millisecond))}
}

func aliveWhy(e evidence) string {
	r := e.standing.record
	switch {
	case e.holder.Life == process.Alive:
		return e.holder.Why
	case r.Heartbeat == 0:
		return fmt.Sprintf("it is held for %s without being renewed", r.TTL)
	}
	return fmt.Sprintf("silent for less than its ttl of %s, and %s", r.TTL, processesWhy(e))
}

// processesWhy is what is known of a holder that does not run here, and of its job.
func processesWhy(e evidence) string {
	if e.holder.Life == process.Gone && e.standing.record.Job {
		return e.holder.Why + ", and " + e.job.Why
	}
	return e.holder.Why
}
