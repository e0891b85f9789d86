package fslock

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
)

// evidence is everything that an assessment is based on.
type evidence struct {
	source.Evidence
	// peer is what this host knows of a Python MultiLock's process; legacy is set if such peers may contend
	// here.
	peer   process.Evidence
	legacy bool
	// torn means that the lock file is empty, as a crash of the writer's machine leaves it.
	torn bool
	// strange is what is known of a record in an unknown format.
	strange strange
	// clock is the error with which reading the server's clock failed.
	clock error
	// shown means that this observer has seen a new heartbeat.
	shown bool
	// clocks means that each host dates its heartbeats by its own clock.
	clocks bool
}

const (
	// glance is the interval at which a process of this host is checked.
	glance = time.Second
	// tornBeat stands for the heartbeat interval of a record that was lost: the longest.
	tornBeat = 30 * time.Second
	// tornLimit stands for the TTL of a record that was lost. The machine that wrote it went down, and with
	// it the holder, whatever TTL it had.
	tornLimit = 3 * tornBeat
	// strangeLimit is for a holder whose record has an unknown format, though multilock wrote it. The
	// holder touches the directory at least every tornBeat; a whole hour allows for a long outage of its
	// server.
	strangeLimit = time.Hour
)

// rules are how soon to look at a lock again, and whether a clock proves anything.
func (e evidence) rules() source.Rules {
	return source.Rules{Near: glance, Far: 5 * glance, NoClock: e.clocks}
}

// judge decides whether a lock's holder counts as alive. It is a pure function.
func judge(e evidence) source.Assessment {
	if v, certain := e.JudgeProcesses(e.rules()); certain {
		return v
	}
	if v, certain := judgePeer(e); certain {
		return v
	}
	limit := limits(e)
	if limit.Silence == 0 {
		return source.Assessment{State: source.StateHeld, Why: limit.Why, Next: 5 * glance} // a missing heartbeat proves nothing
	}
	return judgeSilence(e, limit)
}

// limits returns how long a holder may send no heartbeat, 0 if that proves nothing.
func limits(e evidence) source.Limit {
	switch limit := strangeLimit + e.strange.ttl; {
	case e.torn:
		return source.Limit{Silence: max(tornLimit, e.MaxAge), Window: tornBeat * 3 / 2, Why: "its record is empty"}
	case e.strange.ours && e.MaxAge == 0:
		return source.Limit{Silence: limit, Window: tornBeat * 3 / 2, Why: strangeWhy(e.strange, limit)}
	case e.strange.ours:
		limit = max(e.MaxAge, e.strange.ttl)
		return source.Limit{Silence: limit, Window: agedWindow(limit), Why: strangeWhy(e.strange, limit)}
	case e.Record.TTL == 0:
		return source.Limit{Silence: e.MaxAge, Window: agedWindow(e.MaxAge), Why: foreignWhy(e)}
	}
	limit := e.Limit()
	if e.Record.Heartbeat > 0 && e.Holder.Life != process.Alive && e.clock != nil && e.shown {
		limit.Why = fmt.Sprintf("it sent a heartbeat while it was watched, and none for %s since; %s", e.Unchanged.Round(time.Millisecond), e.Processes())
	}
	return limit
}

// agedWindow is how long to watch a lock whose age is the only evidence that it is over.
func agedWindow(limit time.Duration) time.Duration {
	return min(limit/10, tornBeat) + 100*time.Millisecond
}

func foreignWhy(e evidence) string {
	const clear = "; it has no ttl, so only --max-age or break --force can clear it"
	switch {
	case e.Record.Foreign != "":
		return e.Record.Foreign + clear
	case e.peer.Life == process.Gone:
		return "it was taken by a Python MultiLock, and " + e.peer.Why + clear
	}
	return "it was taken by a Python MultiLock" + clear
}

func strangeWhy(s strange, limit time.Duration) string {
	return fmt.Sprintf("%s; it counts as dead after %s without a heartbeat (--max-age changes that, break --force does not wait)", s.why, limit)
}

// judgeSilence decides by the time without a heartbeat, even if that time is unknown.
func judgeSilence(e evidence, limit source.Limit) source.Assessment {
	v := e.JudgeSilence(limit, e.rules())
	if v.State == source.StateHeld && e.blind() {
		return source.Assessment{State: source.StateSuspect, Why: blindWhy(e, limit.Silence+e.Grain), Next: limit.Window / 6}
	}
	return v
}

// blind means that the time since the last heartbeat is known only from this observer's own watching, and
// that it has not seen a heartbeat yet. A live holder will soon send one, so it is worth watching; a lock
// that is not renewed never shows one.
func (e evidence) blind() bool {
	return e.clock != nil && !e.shown && e.Holder.Life != process.Alive && e.Record.Heartbeat > 0
}

func blindWhy(e evidence, limit time.Duration) string {
	why := e.clock.Error()
	var number syscall.Errno
	if errors.As(e.clock, &number) {
		why = number.Error()
	}
	seen := "how long it has sent no heartbeat"
	if e.Unchanged > 0 {
		seen = fmt.Sprintf("no heartbeat for %s, with a limit of %s: for how long before that", e.Unchanged.Round(time.Millisecond), limit)
	}
	return fmt.Sprintf("%s is not known, as the server's clock cannot be read from here (%s)", seen, why)
}

// initialNamespace is the pid namespace of a Linux host itself (the kernel's PROC_PID_INIT_INO), in the
// form that an Identity has.
const initialNamespace = "pid:[4026531836]"

// findPeer returns what this host knows of a Python MultiLock's process, whose record has only a host's
// name and a pid. It returns nothing if the name is another host's, or if this process does not see all
// processes of the host. The pid may have been reused: that it exists proves little, that it does not exist
// proves much.
func findPeer(r source.Record, self process.Identity) process.Evidence {
	if r.Token != "" || r.Foreign != "" || r.Holder.PID <= 0 || r.Holder.Host != self.Host || !seesTheHost(self) {
		return process.Evidence{}
	}
	switch _, err := process.Find(r.Holder.PID); {
	case err == nil:
		return process.Evidence{Life: process.Alive, Why: fmt.Sprintf("process %d lives on this host", r.Holder.PID)}
	case errors.Is(err, process.ErrNotFound):
		return process.Evidence{Life: process.Gone, Why: fmt.Sprintf("there is no process %d on this host", r.Holder.PID)}
	}
	return process.Evidence{}
}

func seesTheHost(self process.Identity) bool {
	return strings.HasPrefix(self.Namespace, initialNamespace) || self.Namespace == runtime.GOOS
}

// judgePeer decides about a Python MultiLock by what is known of its process. A live process keeps the lock
// at any age. Where such peers contend, a process that does not exist is dead, as it is for other peers.
// The lock is then watched for as long as an orphaned entry, in case the peer was only slow.
func judgePeer(e evidence) (v source.Assessment, certain bool) {
	switch {
	case e.peer.Life == process.Alive:
		const spared = "; --max-age spares it, and only break --force can clear it"
		return source.Assessment{State: source.StateHeld, Why: "it was taken by a Python MultiLock, and " + e.peer.Why + spared, Next: glance}, true
	case e.peer.Life == process.Gone && e.legacy && (e.MaxAge == 0 || e.MaxAge > orphanLimit):
		v = judgeSilence(e, source.Limit{Silence: orphanLimit, Window: orphanWindow, Why: "it is cleared if nothing changes"})
		v.Why = "it was taken by a Python MultiLock, and " + e.peer.Why + ": " + v.Why
		return v, true
	}
	return source.Assessment{}, false
}
