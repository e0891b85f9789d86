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

// evidence is all that a verdict rests on.
type evidence struct {
	source.Evidence
	// peer is what this host knows of the process of a Python MultiLock, and legacy
	// says that such peers are reckoned with.
	peer   process.Evidence
	legacy bool
	// torn says that the lock file is empty, as a crash of the writer's machine leaves it.
	torn bool
	// strange is what is known of a record that cannot be understood.
	strange strange
	// clock is why the server's clock could not be read.
	clock error
	// shown says that this observer has seen a sign of life come.
	shown bool
	// clocks says that hosts may date signs of life, each by its own clock.
	clocks bool
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
)

// rules are how soon another look at a lock makes sense, and what a clock proves.
func (e evidence) rules() source.Rules {
	return source.Rules{Near: glance, Far: 5 * glance, NoClock: e.clocks}
}

// judge decides whether a lock's holder counts as alive. It is a pure function.
func judge(e evidence) source.Verdict {
	if v, certain := e.JudgeProcesses(e.rules()); certain {
		return v
	}
	if v, certain := judgePeer(e); certain {
		return v
	}
	limit := limits(e)
	if limit.Silence == 0 {
		return source.Verdict{State: source.StateHeld, Why: limit.Why, Next: 5 * glance} // silence proves nothing
	}
	return judgeSilence(e, limit)
}

// limits gives the silence that a holder is allowed, none if silence proves nothing.
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
		limit.Why = fmt.Sprintf("it gave a sign of life while it was watched, and none for %s since; %s", e.Unchanged.Round(time.Millisecond), e.Processes())
	}
	return limit
}

// agedWindow is how long a lock is watched of which only the age says that it is over.
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
	return fmt.Sprintf("%s; it counts as dead after %s without a sign of life (--max-age says otherwise, break --force does not wait)", s.why, limit)
}

// judgeSilence decides by the time without a sign of life, or without knowing it.
func judgeSilence(e evidence, limit source.Limit) source.Verdict {
	v := e.JudgeSilence(limit, e.rules())
	if v.State == source.StateHeld && e.blind() {
		return source.Verdict{State: source.StateSuspect, Why: blindWhy(e, limit.Silence+e.Grain), Next: limit.Window / 6}
	}
	return v
}

// blind says that nothing is known of the holder's silence but what this observer has
// seen of it himself, and that is no sign of life yet. One that lives will show before
// long, so it is worth watching; of one that nobody renews that cannot be said.
func (e evidence) blind() bool {
	return e.clock != nil && !e.shown && e.Holder.Life != process.Alive && e.Record.Heartbeat > 0
}

func blindWhy(e evidence, limit time.Duration) string {
	why := e.clock.Error()
	var number syscall.Errno
	if errors.As(e.clock, &number) {
		why = number.Error()
	}
	seen := "how long it has been silent"
	if e.Unchanged > 0 {
		seen = fmt.Sprintf("no sign of life for %s, with a limit of %s: for how long before that", e.Unchanged.Round(time.Millisecond), limit)
	}
	return fmt.Sprintf("%s is not known, as the server's clock cannot be read from here (%s)", seen, why)
}

// initialNamespace is the pid namespace of a Linux host itself (the kernel's
// PROC_PID_INIT_INO), as it stands in an Identity.
const initialNamespace = "pid:[4026531836]"

// findPeer says what this host knows of the process of a Python MultiLock, of which there
// is a host's name and a pid. Nothing, if the name is another host's, or if this process
// does not see all processes of the host. The pid may be another process's by now: that it
// exists proves little, and that it does not proves much.
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

// judgePeer decides about a Python MultiLock by what is known of its process. One that
// lives is spared whatever its age. Where such peers are reckoned with, one that does not
// exist is dead, as it is for other peers; that is watched for as long as a limbo, lest the
// peer has been slow only.
func judgePeer(e evidence) (v source.Verdict, certain bool) {
	switch {
	case e.peer.Life == process.Alive:
		const spared = "; --max-age spares it, and only break --force can clear it"
		return source.Verdict{State: source.StateHeld, Why: "it was taken by a Python MultiLock, and " + e.peer.Why + spared, Next: glance}, true
	case e.peer.Life == process.Gone && e.legacy && (e.MaxAge == 0 || e.MaxAge > limboLimit):
		v = judgeSilence(e, source.Limit{Silence: limboLimit, Window: limboWindow, Why: "it is cleared if nothing changes"})
		v.Why = "it was taken by a Python MultiLock, and " + e.peer.Why + ": " + v.Why
		return v, true
	}
	return source.Verdict{}, false
}
