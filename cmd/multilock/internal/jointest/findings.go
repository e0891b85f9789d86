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
	SameHost bool   `json:"same_host"` // runs on the same kernel as this process
	End      string `json:"state"`
	Refused  int    `json:"not_acquired"` // attempts of this host while it held the lock
	Account
	Stale float64 `json:"stale_seconds"` // age of a list that lacked its locks
	Late  float64 `json:"late_seconds"`  // the longest delay of its heartbeats
}

// How a participant ended.
const (
	EndComplete   = "complete" // it took part to the end
	endLeft       = "left"     // before it published its account
	endWentAway   = "gone"
	endUnfinished = "unfinished"
)

func (h *host) report() Report {
	r := Report{Expect: h.Hosts, Account: h.Account, Hosts: []Host{}, Open: !h.harmKnown() && (h.open || h.complete() == 0)}
	for _, p := range h.peers {
		r.Findings = append(r.Findings, h.judge(p))
		if r.Hosts = append(r.Hosts, p.Host); p.complete() {
			r.Hosts[len(r.Hosts)-1].End = EndComplete
		}
	}
	r.Findings = append(r.Findings, h.found...)
	return r
}

// complete reports whether the peer took part until the end.
func (p *peer) complete() bool { return p.marks > 0 && p.Refused > 0 }

// complete counts the peers that took part until the end.
func (h *host) complete() int {
	return len(slices.DeleteFunc(slices.Clone(h.peers), func(p *peer) bool { return !p.complete() }))
}

const again = "run it again on all hosts"

// conclude adds the findings that are known only at the end.
func (h *host) conclude(finished bool) {
	const slowRelease = time.Second
	if h.parting >= slowRelease {
		f := source.Fine("join", fmt.Sprintf("this host needed up to %s to release the lock", console.Short(h.parting)))
		f.Advice = "use the same NFS version on all hosts, best 4.2: a v3 mount beside v4 mounts can delay each release as long"
		h.found = append(h.found, f)
	}
	complete := h.complete()
	switch {
	case !finished || h.harmKnown(): // the reason is already reported
		return
	case complete == 0:
		h.found = append(h.found, source.Unusable("join", "no other host stayed until the end", again))
		return
	}
	turns := h.Turns
	for _, p := range h.peers {
		turns += p.Turns
	}
	text := fmt.Sprintf("%d participants held one lock in %d turns, never two at the same time", complete+1, turns)
	if len(h.Fences) > 0 {
		text += "; each turn had its own fencing token"
	}
	h.found = append(h.found, source.Fine("join", text))
}

const (
	clockLimit = time.Minute // larger differences cause a warning
	// In heartbeat intervals: a busy host's heartbeats are slightly late, and a TTL should be a few times
	// longer than their delay.
	slightlyLate = 1
	tooLate      = 3
	ttlForLate   = 4
)

// judge returns the worst finding about a peer.
func (h *host) judge(p *peer) source.Finding {
	ahead := 0.0
	if p.Clock != nil {
		ahead = *p.Clock
	}
	warn := func(text, advice string) source.Finding { return source.Warning("host", text, advice) }
	for _, c := range []struct {
		found bool
		source.Finding
	}{
		{p.unsafe, source.Unusable("host", "it found that locks are NOT SAFE here", "read the report of doctor on that host")},
		{p.End == endWentAway, warn("it disappeared during the test: "+p.died, again+"; unless a user stopped it, check that host's connection to the server, and whether attribute caches delay its heartbeats")},
		{p.End == endLeft && p.marks == 0, warn("it left before it had its turns", "read the report of doctor on that host, and "+again)},
		{p.garbled, warn("its report cannot be read", "use the same version of multilock on all hosts")},
		{h.open && h.tries == 0, source.Fine("host", "joined")},
		{p.Refused == 0 && (!h.open || p.End == endLeft), warn("it held the lock only when this host did not try", again)},
		{p.Refused == 0, source.Unusable("host", fmt.Sprintf("its lock never excluded this host, in %d attempts", h.tries), "run it again with more time (--wait 2m); if the result is the same, do not use locks here")},
		{p.SameHost, warn("it runs on this host, so other hosts were not tested", "run the same command on the other hosts at the same time")},
		{p.record.Holder.SameMachineOtherBoot(h.self()), warn("it has the same name and machine ID as this host: one may be a clone", "give each host its own name and /etc/machine-id (systemd-machine-id-setup); otherwise locks do not show which of the two holds them")},
		{math.Abs(ahead) > clockLimit.Seconds(), warn("its clock is wrong", "set that host's clock (NTP): locks do not depend on it, but cron and the history do")},
		{p.Late >= tooLate*p.beat(), warn("", fmt.Sprintf("use --ttl %s or more for all locks, or mount without an attribute cache: a host that sees no heartbeat for a TTL takes the lock", console.Short(seconds(ttlForLate*p.Late).Round(time.Second))))},
		{true, source.Fine("host", "")},
	} {
		if c.found {
			c.Text = strings.Join(slices.DeleteFunc([]string{p.name(), c.Text, p.facts()}, func(s string) bool { return s == "" }), ": ")
			return c.Finding
		}
	}
	return source.Finding{} // the last case holds always
}

func seconds(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }

// facts describes what this host found out about a peer.
func (p *peer) facts() string {
	var facts []string
	add := func(known bool, format string, args ...any) {
		if known {
			facts = append(facts, fmt.Sprintf(format, args...))
		}
	}
	add(p.Refused > 0, "excluded this host %d times", p.Refused)
	add(p.Turns > 0, "%d turns", p.Turns)
	if p.Clock != nil {
		ahead := seconds(*p.Clock).Round(time.Millisecond)
		add(!p.SameHost && ahead >= 0, "its clock is %s ahead", ahead)
		add(!p.SameHost && ahead < 0, "its clock is %s behind", -ahead)
	}
	add(!p.SameHost && p.Stale >= defaultPause.Seconds(), "its locks were listed up to %s late", console.Short(seconds(p.Stale)))
	add(p.Late >= slightlyLate*p.beat(), "its heartbeats arrived up to %s late", console.Short(seconds(p.Late)))
	return strings.Join(facts, "; ")
}

// Account is what a participant reports about itself after its turns. It is stored as the command of a lock,
// because every source stores and shows that.
type Account struct {
	Turns  int      `json:"turns"`
	Fences []uint64 `json:"fences"` // the fencing tokens, if the source has any
	// Clock is how far the participant's clock is ahead of the source's, nil if the source has none.
	Clock *float64 `json:"clock_ahead_seconds"`
}

// maxFences bounds an account, because some sources have little room.
const maxFences = 8

// text encodes the account compactly, as the command of a lock.
func (a Account) text(command string, harm bool) string {
	text, _ := json.Marshal([]any{harm, a.Turns, a.Clock, a.Fences[:min(len(a.Fences), maxFences)]}) // cannot fail
	return command + ": " + string(text)
}

// parseAccount is the inverse of text; ok is false for text that another version wrote, or that the source
// has truncated.
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

// compareFences finds turns with the same fencing token, which proves that two hosts held the lock at the
// same time.
func (h *host) compareFences() {
	owners := map[uint64]string{}
	for _, fence := range h.Fences {
		owners[fence] = "this host"
	}
	for _, p := range h.peers {
		for _, fence := range p.Fences {
			if other, taken := owners[fence]; taken {
				_ = h.unsafe("a turn of %s and one of %s had the same fencing token %d: both held the lock at the same time", other, p.name(), fence)
			}
			owners[fence] = p.name()
		}
	}
}
