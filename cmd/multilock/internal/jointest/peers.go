package jointest

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/multilock/go/internal/bounded"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
)

// peer is another participant, as this host sees it.
type peer struct {
	Host
	number int
	token  string // of its presence lock: the next participant with this number has another
	holder multilock.Holder
	beat   time.Duration // between two heartbeats
	looked time.Time     // when its presence lock was last inspected
	died   string        // why it counts as dead

	marks   int  // that it has acquired
	garbled bool // its account is of another version, or truncated
	unsafe  bool // it has seen that locks are not safe

	stale time.Duration // age of a list in which its locks were missing

	// Clients that cache attributes, and servers that replicate late, show heartbeats late.
	// A host that sees none for a TTL takes the lock of a holder that is alive.
	lastBeat   time.Duration // from the acquisition to the last heartbeat
	lastSeen   time.Time     // end of the first look that showed it
	late       time.Duration // the longest delay of one
	beatsKnown bool          // one arrived, or none for a TTL
}

func (p *peer) name() string { return fmt.Sprintf("%s pid %d", p.Host.Host, p.PID) }

// complete reports whether it took part to the end.
func (p *peer) complete() bool { return p.marks > 0 && p.Refused > 0 }

// self is this host's identity, as the source records it.
func (h *host) self() process.Identity { return h.held[0].Record().Holder.Identity }

// active are the participants that are here.
func (h *host) active() []*peer {
	return slices.DeleteFunc(slices.Clone(h.peers), func(p *peer) bool { return p.End != endUnfinished })
}

// look updates the peers: which hosts take part, and what each of them has done.
func (h *host) look(ctx context.Context) error {
	if own := h.held[0].Context(); own.Err() != nil {
		return h.fellOut(context.Cause(own))
	}
	asked := time.Now()
	names, err := bounded.Call(ctx, h.Locks.Names)
	if err != nil {
		return err
	}
	for _, p := range h.active() {
		if err := h.follow(ctx, p, names); err != nil {
			return err
		}
	}
	for _, name := range names {
		number, mark, ok := h.parseName(name)
		known := number == h.number || slices.ContainsFunc(h.active(), func(p *peer) bool { return p.number == number })
		if !ok || mark != presence || known || len(h.held) > 1 { // a newcomer that finds this host's mark would be too late
			continue
		}
		if err := h.meet(ctx, number, names); err != nil {
			return err
		}
	}
	h.listed, h.asked = names, asked
	h.Here(len(h.active()) + 1)
	return nil
}

// meet adds the holder of a presence lock to the peers.
func (h *host) meet(ctx context.Context, number int, names []string) error {
	p := &peer{number: number, looked: time.Now()}
	name := h.lockName(number, presence)
	seen, err := h.inspectOf(ctx, p, name)
	switch {
	case err != nil || seen.State != multilock.StateHeld:
		return err // it died or left, and tidy clears it away
	case seen.Record.Foreign != "" || seen.Record.Token == "":
		f := source.Warning("join", "a participant that cannot be identified took part: "+name+": "+seen.Why,
			"run it on all hosts as users that may read each other's files, with the same umask as your jobs")
		if !slices.Contains(h.found, f) {
			h.found = append(h.found, f)
		}
		return nil
	case slices.ContainsFunc(h.peers, func(q *peer) bool { return q.token == seen.Record.Token }):
		return nil
	}
	const defaultBeat = time.Second // where the source does not say how often holders renew
	p.token, p.holder, p.beat = seen.Record.Token, seen.Record.Holder, cmp.Or(seen.Record.Heartbeat, defaultBeat)
	p.Host = Host{Host: p.holder.Host, PID: p.holder.PID, User: p.holder.User, End: endUnfinished, Account: Account{Fences: []uint64{}}}
	// Only processes under one kernel may be kept apart by that kernel alone.
	p.SameHost = p.Host.Host == h.self().Host
	if boot := h.self().Boot; boot != "" && p.holder.Boot != "" {
		p.SameHost = boot == p.holder.Boot
	}
	err = h.readMarks(ctx, p, names)
	if err == nil && (p.marks == 0 || p.unsafe) { // otherwise it is about to end a test with others
		h.peers = append(h.peers, p)
	}
	return err
}

// follow notices what became of a peer. It inspects the presence lock once for each
// heartbeat, and when it is not listed: an inspection costs several requests, a list of all only one.
func (h *host) follow(ctx context.Context, p *peer, names []string) error {
	name := h.lockName(p.number, presence)
	if !slices.Contains(names, name) || time.Since(p.looked) >= p.beat {
		p.looked = time.Now()
		seen, err := h.inspectOf(ctx, p, name)
		switch {
		case err != nil:
			return err
		case seen.State == multilock.StateFree || seen.Record.Token != p.token:
			p.End = endLeft
			return nil
		case seen.State != multilock.StateHeld:
			p.End, p.died = endWentAway, seen.Why
			return nil
		}
		h.noteBeat(p, seen)
	}
	return h.readMarks(ctx, p, names)
}

// noteBeat measures how late the heartbeats of a peer are seen.
func (h *host) noteBeat(p *peer, seen multilock.Sighting) {
	now, last := time.Now(), seen.Age-seen.Silence
	switch {
	case seen.Age == source.Unknown || seen.Silence == source.Unknown || seen.Record.Heartbeat == 0:
		p.beatsKnown = true // the source does not report them
	case p.lastSeen.IsZero():
		p.lastBeat, p.lastSeen = last, now
	case last != p.lastBeat:
		p.lastBeat, p.lastSeen, p.beatsKnown = last, now, true
	default: // the next one was due a heartbeat after the last, which was sent before it was seen
		p.late = max(p.late, p.looked.Sub(p.lastSeen)-seen.Record.Heartbeat)
		p.beatsKnown = p.beatsKnown || now.Sub(p.lastSeen) > h.ttl
	}
}

// readMarks reads the accounts in the marks that a peer has acquired since the last look.
func (h *host) readMarks(ctx context.Context, p *peer, names []string) error {
	for p.marks < len(marks) {
		name := h.lockName(p.number, marks[p.marks])
		if !slices.Contains(names, name) {
			return nil
		}
		seen, err := h.inspectOf(ctx, p, name)
		if err != nil || seen.State != multilock.StateHeld || seen.Record.Holder.Identity != p.holder.Identity {
			return err // a dead participant with the same number may have left it
		}
		account, harm, ok := parseAccount(seen.Record.Holder.Command, h.Command)
		if p.marks == 0 {
			p.Account, p.garbled = account, !ok
		}
		p.unsafe = p.unsafe || harm
		p.marks++
	}
	return nil
}

// inspectOf inspects a lock of a peer. If the last list did not have it, that list may
// have come from a cache, and was at least as old as the lock at that time.
func (h *host) inspectOf(ctx context.Context, p *peer, name string) (multilock.Sighting, error) {
	seen, err := h.inspect(ctx, name)
	if err == nil && seen.State == multilock.StateHeld && seen.Age != source.Unknown && !h.asked.IsZero() && !slices.Contains(h.listed, name) {
		p.stale = max(p.stale, seen.Age-time.Since(h.asked))
	}
	return seen, err
}
