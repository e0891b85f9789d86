package trial

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

// Report is what a trial showed to this host, as "doctor --json" prints it.
type Report struct {
	Expect  int    `json:"expect"`
	Account        // of this host
	Hosts   []Host `json:"hosts"` // the others

	// Findings are one for each other host, and then all that concerns this one or
	// everybody.
	Findings []source.Finding `json:"-"`
	// Open says that it was not shown whether locks are safe.
	Open bool `json:"-"`
}

// Host is another participant.
type Host struct {
	Host     string `json:"host"`
	PID      int    `json:"pid"`
	User     string `json:"user,omitempty"`
	SameHost bool   `json:"same_host"` // it runs under this host's own kernel
	End      string `json:"end"`
	Refused  int    `json:"refused"` // how often its lock kept this host out
	Account
	Stale float64 `json:"stale_seconds"` // how old a list was in which its locks were missing
	Late  float64 `json:"late_seconds"`  // how late its signs of life were seen
}

func (h *host) report() Report {
	r := Report{Expect: h.Hosts, Account: h.account(), Hosts: []Host{}}
	for _, p := range h.others.peers {
		p.SameHost, p.End, p.Stale, p.Late = h.isHere(p), p.end(), p.stale.Seconds(), p.signs.late.Round(time.Millisecond).Seconds()
		r.Hosts = append(r.Hosts, p.Host)
	}
	r.Findings, r.Open = h.findings(), !h.harmKnown() && (h.problem != nil || h.completed() == 0)
	return r
}

// The ends of a participant.
const (
	endComplete = "complete"
	endLeft     = "left" // before it told anything
	endAway     = "went away"
	endMissed   = "unfinished"
)

func (p *peer) end() string {
	switch {
	case p.heard && p.Refused > 0:
		return endComplete
	case p.away != "":
		return endAway
	case p.left:
		return endLeft
	}
	return endMissed
}

// completed counts the others that stayed to the end.
func (h *host) completed() int {
	n := 0
	for _, p := range h.others.peers {
		if p.end() == endComplete {
			n++
		}
	}
	return n
}

// isHere says whether a participant runs under this host's own kernel, which alone
// may keep them apart.
func (h *host) isHere(p *peer) bool {
	self, other := h.self(), p.holder.Identity
	if self.Boot != "" && other.Boot != "" {
		return self.Boot == other.Boot
	}
	return self.Host == other.Host
}

// slowParting is worth a remark.
const slowParting = time.Second

func (h *host) findings() []source.Finding {
	var found []source.Finding
	add := func(severity source.Severity, text, advice string) {
		found = append(found, source.Finding{Subject: "join", Severity: severity, Text: text, Advice: advice})
	}
	for _, p := range h.others.peers {
		found = append(found, h.judge(p))
	}
	for _, text := range h.others.strange {
		add(source.SeverityWarning, "somebody who cannot be told took part: "+text,
			"run it on all hosts as users that may read each other's files, with the same umask as your jobs")
	}
	for _, text := range h.harm {
		add(source.SeverityUnusable, "locks are NOT SAFE here: "+text, "do not lock in this place: two hosts would work at the same time")
	}
	if h.turns.parting >= slowParting {
		add(source.SeverityFine, fmt.Sprintf("this host needed up to %s to give the lock back", console.Short(h.turns.parting)),
			"others wait that long for each of its locks; on NFS, a v3 mount beside v4 ones can do that: use one version on all hosts, best 4.2")
	}
	switch complete := h.completed(); {
	case h.problem != nil && h.problem.alone:
		add(source.SeverityUnusable, h.problem.text+"; this host looks at "+h.Where, h.problem.advice)
	case h.problem != nil:
		add(source.SeverityUnusable, h.problem.text, h.problem.advice)
	case !h.finished || h.harmKnown(): // an error of the source tells why, or the harm is told already
	case complete == 0:
		add(source.SeverityUnusable, "no other host stayed to the end, so nothing was shown", "run it again on all hosts")
	default:
		add(source.SeverityFine, h.success(complete), "")
	}
	return found
}

func (h *host) success(complete int) string {
	turns := h.turns.had
	for _, p := range h.others.peers {
		turns += p.Turns
	}
	text := fmt.Sprintf("%d participants took %d turns with one lock, and no two were seen at the same time", complete+1, turns)
	if len(h.turns.fences) > 0 {
		text += ": each turn had a fencing number of its own"
	}
	return text
}

// clockAmiss is how far a clock may be off before that is worth a warning.
const clockAmiss = time.Minute

// judge is the finding about one participant: the worst that there is to say.
func (h *host) judge(p *peer) source.Finding {
	f := source.Finding{Subject: "host", Severity: source.SeverityWarning}
	switch {
	case p.unsafe:
		f.Severity, f.Text = source.SeverityUnusable, "it has seen that locks are NOT SAFE here"
		f.Advice = "read what doctor says on that host"
	case p.away != "":
		f.Text, f.Advice = "it went away in the middle: "+p.away, "run it again on all hosts; if nobody ended it there, see whether that host loses the server, or its signs of life come late to this one (caches of attributes)"
	case p.left && !p.heard:
		f.Text, f.Advice = "it left before it had its turns", "see what doctor says on that host, and run it again on all hosts"
	case p.garbled:
		f.Text, f.Advice = "what it told about its turns cannot be read", "use the same version of multilock on all hosts"
	case h.problem != nil && h.problem.alone:
		f.Severity, f.Text = source.SeverityFine, "it is here, too"
	case p.Refused == 0 && (h.problem == nil || p.left):
		f.Text, f.Advice = "no turn of it met this host: one of the two was late", "run it again on all hosts"
	case p.Refused == 0:
		f.Severity, f.Text = source.SeverityUnusable, fmt.Sprintf("its lock never kept this host out, which tried %d times", h.turns.tries)
		f.Advice = "run it again, with more time (--timeout 2m); if it stays so, do not lock in this place"
	case p.SameHost:
		f.Text, f.Advice = "it runs on this very host, which shows nothing about other hosts", "run the same line on the other hosts at the same time"
	case p.holder.SameMachineOtherBoot(h.self()):
		f.Text, f.Advice = "it has the name and the machine id of this host, as clones have", "give each host a name and an /etc/machine-id of its own (systemd-machine-id-setup): nobody can tell from a lock which of the two holds it"
	case p.Clock != nil && math.Abs(*p.Clock) > clockAmiss.Seconds():
		f.Text, f.Advice = "its clock is wrong", "set it (NTP): no lock depends on it, but cron starts jobs by it, and the history is written by it"
	case p.signs.areLate(p.beat):
		f.Advice = p.signs.advice()
	default:
		f.Severity = source.SeverityFine
	}
	f.Text = strings.Join(slices.DeleteFunc([]string{p.name(), f.Text, p.facts()}, func(s string) bool { return s == "" }), ": ")
	return f
}

// facts are what this host learned of a participant.
func (p *peer) facts() string {
	var facts []string
	if p.Refused > 0 {
		facts = append(facts, fmt.Sprintf("its lock kept this host out %d times, and counted as alive", p.Refused))
	}
	if p.Turns > 0 {
		facts = append(facts, fmt.Sprintf("it had %d turns", p.Turns))
	}
	if p.Clock != nil && !p.SameHost {
		facts = append(facts, clockText(time.Duration(*p.Clock*float64(time.Second)).Round(time.Millisecond)))
	}
	if p.stale >= defaultPause && !p.SameHost {
		facts = append(facts, fmt.Sprintf("lists in which its locks were missing were up to %s old", console.Short(p.stale)))
	}
	if late := p.signs.fact(p.beat); late != "" {
		facts = append(facts, late)
	}
	return strings.Join(facts, "; ")
}

func clockText(ahead time.Duration) string {
	if ahead < 0 {
		return fmt.Sprintf("its clock is %s behind the source's", -ahead)
	}
	return fmt.Sprintf("its clock is %s ahead of the source's", ahead)
}

// Account is what a participant tells of itself when it has had its turns. It is told
// as the command of a lock, because that is what every source keeps and shows.
type Account struct {
	Turns  int      `json:"turns"`
	Fences []uint64 `json:"fences"` // their numbers, if the source has such
	// Clock is how far its clock is ahead of the source's, nil if that has none.
	Clock *float64 `json:"clock_ahead_seconds"`
}

// maxTold bounds the numbers that are told: some sources have little room.
const maxTold = 8

// text is the account as the command of a lock, as short as can be.
func (a Account) text(command string, harm bool) string {
	text, _ := json.Marshal([]any{harm, a.Turns, a.Clock, a.Fences[:min(len(a.Fences), maxTold)]}) // nothing that could fail
	return command + ": " + string(text)
}

// parseAccount reads what another participant told; ok is false if another version told
// it, or the source has cut it.
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

// account is this host's.
func (h *host) account() Account {
	return Account{Turns: h.turns.had, Fences: append([]uint64{}, h.turns.fences...), Clock: h.clock}
}

// compare finds turns of one number: those were at the same time.
func (h *host) compare() {
	owners := map[uint64]string{}
	for _, number := range h.turns.fences {
		owners[number] = "this host"
	}
	for _, p := range h.others.peers {
		for _, number := range p.Fences {
			if other, taken := owners[number]; taken {
				_ = h.noteHarm(unsafef("a turn of %s and one of %s had the same fencing number %d: both held the lock at the same time", other, p.name(), number))
			}
			owners[number] = p.name()
		}
	}
}
