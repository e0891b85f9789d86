package jointest

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/multilock/source"
)

// Report is the result of a test on this host, as "doctor --json" prints it.
type Report struct {
	Expect  int    `json:"expect"`
	Account        // of this host
	Hosts   []Host `json:"hosts"` // the others

	// Findings has one for each other host, and then those about this host or all of them.
	Findings []source.Finding `json:"-"`
	// Open means that the test did not show whether locks are safe.
	Open bool `json:"-"`
}

// Host is another participant.
type Host struct {
	Host     string `json:"host"`
	PID      int    `json:"pid"`
	User     string `json:"user,omitempty"`
	SameHost bool   `json:"same_host"` // it runs under this host's own kernel
	End      string `json:"end"`
	Refused  int    `json:"refused"` // attempts of this host that its lock refused
	Account
	Stale float64 `json:"stale_seconds"` // age of a list in which its locks were missing
	Late  float64 `json:"late_seconds"`  // the longest delay of its heartbeats
}

// The ends of a participant.
const (
	endComplete   = "complete"
	endLeft       = "left" // before its account
	endWentAway   = "went away"
	endUnfinished = "unfinished"
)

func (h *host) report() Report {
	r := Report{Expect: h.Hosts, Account: h.Account, Hosts: []Host{}}
	complete := 0
	for _, p := range h.peers {
		other := p.Host
		other.Stale, other.Late = p.stale.Seconds(), p.late.Round(time.Millisecond).Seconds()
		if p.complete() {
			other.End = endComplete
			complete++
		}
		r.Hosts = append(r.Hosts, other)
		r.Findings = append(r.Findings, h.judge(p))
	}
	r.Findings = append(r.Findings, h.found...)
	r.Findings = append(r.Findings, h.conclusion(complete)...)
	r.Open = !h.harmKnown() && (h.problem != nil || complete == 0)
	return r
}

// conclusion returns the findings that are known only in the end.
func (h *host) conclusion(complete int) (found []source.Finding) {
	const slowRelease = time.Second
	if h.parting >= slowRelease {
		f := source.Fine("join", fmt.Sprintf("this host needed up to %s to give the lock back", console.Short(h.parting)))
		f.Advice = "others wait that long for each of its locks; on NFS, a v3 mount beside v4 ones can do that: use one version on all hosts, best 4.2"
		found = append(found, f)
	}
	switch {
	case h.problem != nil:
		return append(found, source.Unusable("join", h.problem.text, h.problem.advice))
	case !h.finished || h.harmKnown(): // an error of the source, or the harm, is reported already
		return found
	case complete == 0:
		return append(found, source.Unusable("join", "no other host stayed to the end, so nothing was shown", "run it again on all hosts"))
	}
	turns := h.Turns
	for _, p := range h.peers {
		turns += p.Turns
	}
	text := fmt.Sprintf("%d participants took %d turns with one lock, and no two were seen at the same time", complete+1, turns)
	if len(h.Fences) > 0 {
		text += ": each turn had a fencing number of its own"
	}
	return append(found, source.Fine("join", text))
}

const (
	clockLimit = time.Minute // a clock that is further off is worth a warning
	// In heartbeats: a busy host's are slightly late, and a TTL should be a few times longer
	// than they are late.
	slightlyLate = 1
	tooLate      = 3
	ttlForLate   = 4
)

// judge returns the worst finding about a peer.
func (h *host) judge(p *peer) source.Finding {
	const again = "run it again on all hosts"
	ahead := 0.0
	if p.Clock != nil {
		ahead = *p.Clock
	}
	warn := func(text, advice string) source.Finding { return source.Warning("host", text, advice) }
	for _, c := range []struct {
		found bool
		source.Finding
	}{
		{p.unsafe, source.Unusable("host", "it has seen that locks are NOT SAFE here", "read what doctor says on that host")},
		{p.End == endWentAway, warn("it went away in the middle: "+p.died, again+"; if it was not ended there, see whether that host loses the server, or its heartbeats come late to this one (caches of attributes)")},
		{p.End == endLeft && p.marks == 0, warn("it left before it had its turns", "see what doctor says on that host, and "+again)},
		{p.garbled, warn("what it reported about its turns cannot be read", "use the same version of multilock on all hosts")},
		{h.problem != nil && h.tries == 0, source.Fine("host", "it is here, too")},
		{p.Refused == 0 && (h.problem == nil || p.End == endLeft), warn("no turn of it met this host: one of the two was late", again)},
		{p.Refused == 0, source.Unusable("host", fmt.Sprintf("its lock never kept this host out, which tried %d times", h.tries), "run it again, with more time (--wait 2m); if it stays so, do not lock in this place")},
		{p.SameHost, warn("it runs on this very host, which shows nothing about other hosts", "run the same line on the other hosts at the same time")},
		{p.holder.SameMachineOtherBoot(h.self()), warn("it has the name and the machine id of this host, as clones have", "give each host a name and an /etc/machine-id of its own (systemd-machine-id-setup): a lock does not show which of the two holds it")},
		{math.Abs(ahead) > clockLimit.Seconds(), warn("its clock is wrong", "set it (NTP): no lock depends on it, but cron starts jobs by it, and the history is written by it")},
		{p.late >= tooLate*p.beat, warn("", fmt.Sprintf("mount without a cache of attributes, or give all locks a --ttl of %s or more: a host that sees no heartbeat for a TTL takes the lock", console.Short((ttlForLate*p.late).Round(time.Second))))},
		{true, source.Fine("host", "")},
	} {
		if c.found {
			c.Text = strings.Join(slices.DeleteFunc([]string{p.name(), c.Text, p.facts()}, func(s string) bool { return s == "" }), ": ")
			return c.Finding
		}
	}
	return source.Finding{} // the last case holds always
}

// facts are what this host learned of a peer.
func (p *peer) facts() string {
	var facts []string
	add := func(known bool, format string, args ...any) {
		if known {
			facts = append(facts, fmt.Sprintf(format, args...))
		}
	}
	add(p.Refused > 0, "its lock kept this host out %d times, and counted as alive", p.Refused)
	add(p.Turns > 0, "it had %d turns", p.Turns)
	if p.Clock != nil {
		ahead := time.Duration(*p.Clock * float64(time.Second)).Round(time.Millisecond)
		add(!p.SameHost && ahead >= 0, "its clock is %s ahead of the source's", ahead)
		add(!p.SameHost && ahead < 0, "its clock is %s behind the source's", -ahead)
	}
	add(!p.SameHost && p.stale >= defaultPause, "lists in which its locks were missing were up to %s old", console.Short(p.stale))
	add(p.late >= slightlyLate*p.beat, "its heartbeats were seen up to %s late", console.Short(p.late))
	return strings.Join(facts, "; ")
}

// Account is what a participant reports of itself when it has had its turns. It is the
// command of a lock, because every source keeps and shows that.
type Account struct {
	Turns  int      `json:"turns"`
	Fences []uint64 `json:"fences"` // their numbers, if the source has any
	// Clock is how far its clock is ahead of the source's, nil if that has none.
	Clock *float64 `json:"clock_ahead_seconds"`
}

// maxFences bounds an account: some sources have little room.
const maxFences = 8

// text is the account as the command of a lock, as short as can be.
func (a Account) text(command string, harm bool) string {
	text, _ := json.Marshal([]any{harm, a.Turns, a.Clock, a.Fences[:min(len(a.Fences), maxFences)]}) // cannot fail
	return command + ": " + string(text)
}

// parseAccount is the inverse of text; ok is false for a text of another version, or one
// that the source has truncated.
func parseAccount(text, command string) (a Account, harm, ok bool) {
	a.Fences = []uint64{}
	fields := []any{&harm, &a.Turns, &a.Clock, &a.Fences}
	want := len(fields)
	rest, ours := strings.CutPrefix(text, command+": ")
	if !ours || json.Unmarshal([]byte(rest), &fields) != nil || len(fields) != want {
		return Account{Fences: []uint64{}}, false, false
	}
	return a, harm, true
}

// compareFences finds turns with one fencing number, which were at the same time.
func (h *host) compareFences() {
	owners := map[uint64]string{}
	for _, fence := range h.Fences {
		owners[fence] = "this host"
	}
	for _, p := range h.peers {
		for _, fence := range p.Fences {
			if other, taken := owners[fence]; taken {
				_ = h.unsafe("a turn of %s and one of %s had the same fencing number %d: both held the lock at the same time", other, p.name(), fence)
			}
			owners[fence] = p.name()
		}
	}
}
