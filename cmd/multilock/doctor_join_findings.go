package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/multilock/source"
)

// joinView is the part of "doctor --json" that --join adds.
type joinView struct {
	Expect int        `json:"expect"`
	Turns  int        `json:"turns"`  // of this host
	Fences []uint64   `json:"fences"` // their numbers, if the source has such
	Clock  *float64   `json:"clock_ahead_seconds"`
	Hosts  []peerView `json:"hosts"` // the others
}

// peerView is another participant.
type peerView struct {
	Host     string   `json:"host"`
	PID      int      `json:"pid"`
	User     string   `json:"user,omitempty"`
	SameHost bool     `json:"same_host"`
	End      string   `json:"end"`
	Refused  int      `json:"refused"`
	Turns    int      `json:"turns"`
	Fences   []uint64 `json:"fences"`
	Clock    *float64 `json:"clock_ahead_seconds"`
	Stale    float64  `json:"stale_seconds"`
}

func (m *meeting) view() *joinView {
	v := &joinView{Expect: m.pace.expect, Turns: m.turns, Fences: append([]uint64{}, m.fences...), Clock: secondsOf(m.clock), Hosts: []peerView{}}
	for _, p := range m.peers {
		told := p.told()
		v.Hosts = append(v.Hosts, peerView{
			Host: p.holder.Host, PID: p.holder.PID, User: p.holder.User, SameHost: m.isHere(p), End: p.end(), Refused: p.refused,
			Turns: told.Turns, Fences: append([]uint64{}, told.Fences...), Clock: secondsOf(told.Clock), Stale: p.stale.Seconds(),
		})
	}
	return v
}

func secondsOf(d *time.Duration) *float64 {
	if d == nil {
		return nil
	}
	s := d.Seconds()
	return &s
}

// told is what a participant told, empty if it did not.
func (p *peer) told() account {
	if p.account == nil {
		return account{}
	}
	return *p.account
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
	case p.account != nil && p.refused > 0:
		return endComplete
	case p.away != "":
		return endAway
	case p.left:
		return endLeft
	}
	return endMissed
}

func (p *peer) name() string { return fmt.Sprintf("%s pid %d", p.holder.Host, p.holder.PID) }

// isHere says whether a participant runs under this host's own kernel, which alone
// may keep them apart.
func (m *meeting) isHere(p *peer) bool {
	self, other := m.self(), p.holder.Identity
	if self.Boot != "" && other.Boot != "" {
		return self.Boot == other.Boot
	}
	return self.Host == other.Host
}

// findings are what the meeting showed: one for each other host, and then all
// that concerns this one or everybody.
func (m *meeting) findings(where string) []source.Finding {
	var found []source.Finding
	for _, p := range m.peers {
		found = append(found, m.judge(p))
	}
	for _, text := range m.strange {
		found = append(found, source.Finding{
			Subject: "join", Severity: source.SeverityWarning, Text: "somebody who cannot be told took part: " + text,
			Advice: "run it on all hosts as users that may read each other's files, with the same umask as your jobs",
		})
	}
	for _, text := range m.harm {
		found = append(found, source.Finding{
			Subject: "join", Severity: source.SeverityUnusable, Text: "locks are NOT SAFE here: " + text,
			Advice: "do not lock in this place: two hosts would work at the same time",
		})
	}
	if m.parting >= slowParting {
		found = append(found, source.Finding{
			Subject: "join", Severity: source.SeverityFine, Text: fmt.Sprintf("this host needed up to %s to give the lock back", console.Short(m.parting)),
			Advice: "others wait that long for each of its locks; on NFS, a v3 mount beside v4 ones can do that: use one version on all hosts, best 4.2",
		})
	}
	return append(found, m.conclude(where)...)
}

// slowParting is worth a remark.
const slowParting = time.Second

// showedNothing says whether it stays open if locks are safe here.
func (m *meeting) showedNothing() bool {
	return !m.harmKnown() && (m.problem != nil || m.ended(endComplete) == 0)
}

// conclude is the finding about the meeting as a whole.
func (m *meeting) conclude(where string) []source.Finding {
	f := source.Finding{Subject: "join", Severity: source.SeverityUnusable}
	complete := m.ended(endComplete)
	switch {
	case m.problem != nil:
		f.Text, f.Advice = m.problem.text, m.problem.advice
		if m.problem.alone {
			f.Text += "; this host looks at " + where
		}
	case !m.finished || m.harmKnown():
		return nil // an error of the source tells why, or the harm is told already
	case complete == 0:
		f.Text, f.Advice = "no other host stayed to the end, so nothing was shown", "run it again on all hosts"
	default:
		f.Severity, f.Text = source.SeverityFine, m.success(complete)
	}
	return []source.Finding{f}
}

func (m *meeting) success(complete int) string {
	turns := m.turns
	for _, p := range m.peers {
		turns += p.told().Turns
	}
	text := fmt.Sprintf("%d participants took %d turns with one lock, and no two were seen at the same time", complete+1, turns)
	if len(m.fences) > 0 {
		text += ": each turn had a fencing number of its own"
	}
	return text
}

func (m *meeting) ended(end string) int {
	n := 0
	for _, p := range m.peers {
		if p.end() == end {
			n++
		}
	}
	return n
}

// judge is the finding about one participant: the worst that there is to say.
func (m *meeting) judge(p *peer) source.Finding {
	f := source.Finding{Subject: "host", Severity: source.SeverityWarning}
	told, facts := p.told(), p.facts(m.isHere(p))
	switch {
	case told.Harm:
		f.Severity, f.Text = source.SeverityUnusable, "it has seen that locks are NOT SAFE here"
		f.Advice = "read what doctor says on that host"
	case p.away != "":
		f.Text, f.Advice = "it went away in the middle: "+p.away, "run it again on all hosts; if nobody ended it there, see whether that host loses the server"
	case p.left && p.account == nil:
		f.Text, f.Advice = "it left before it had its turns", "see what doctor says on that host, and run it again on all hosts"
	case told.Garbled:
		f.Text, f.Advice = "what it told about its turns cannot be read", "use the same version of multilock on all hosts"
	case m.problem != nil && m.problem.alone:
		f.Severity, f.Text = source.SeverityFine, "it is here, too"
	case p.refused == 0 && (m.problem == nil || p.left):
		f.Text, f.Advice = "no turn of it met this host: one of the two was late", "run it again on all hosts"
	case p.refused == 0:
		f.Severity, f.Text = source.SeverityUnusable, fmt.Sprintf("its lock never kept this host out, which tried %d times", m.tries)
		f.Advice = "run it again, with more time (--timeout 2m); if it stays so, do not lock in this place"
	case m.isHere(p):
		f.Text, f.Advice = "it runs on this very host, which shows nothing about other hosts", "run the same line on the other hosts at the same time"
	case p.holder.SameMachineOtherBoot(m.self()):
		f.Text, f.Advice = "it has the name and the machine id of this host, as clones have", "give each host a name and an /etc/machine-id of its own (systemd-machine-id-setup): nobody can tell from a lock which of the two holds it"
	case told.Clock != nil && told.Clock.Abs() > clockAmiss:
		f.Text, f.Advice = "its clock is wrong", "set it (NTP): no lock depends on it, but cron starts jobs by it, and the history is written by it"
	default:
		f.Severity = source.SeverityFine
	}
	f.Text = strings.Join(slices.DeleteFunc([]string{p.name(), f.Text, facts}, func(s string) bool { return s == "" }), ": ")
	return f
}

// clockAmiss is how far a clock may be off before that is worth a warning.
const clockAmiss = time.Minute

// facts are what this host learned of a participant.
func (p *peer) facts(here bool) string {
	var facts []string
	if p.refused > 0 {
		facts = append(facts, fmt.Sprintf("its lock kept this host out %d times, and counted as alive", p.refused))
	}
	told := p.told()
	if told.Turns > 0 {
		facts = append(facts, fmt.Sprintf("it had %d turns", told.Turns))
	}
	if told.Clock != nil && !here {
		facts = append(facts, clockText(*told.Clock))
	}
	if p.stale >= joinPause && !here {
		facts = append(facts, fmt.Sprintf("lists in which its locks were missing were up to %s old", console.Short(p.stale)))
	}
	return strings.Join(facts, "; ")
}

func clockText(ahead time.Duration) string {
	if ahead < 0 {
		return fmt.Sprintf("its clock is %s behind the source's", -ahead)
	}
	return fmt.Sprintf("its clock is %s ahead of the source's", ahead)
}
