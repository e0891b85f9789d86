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

// peer is another participant, as observed by this host.
type peer struct {
	Host
	number int
	record source.Record // of its presence lock; a later participant with the same number has another token
	looked time.Time     // when the presence lock was last inspected
	died   string        // why it counts as dead

	marks   int  // number of marks that it has acquired
	garbled bool // its account is of another version, or truncated
	unsafe  bool // it has reported that locks are not safe

	// Clients that cache attributes, and servers that replicate late, show heartbeats late. A host that sees
	// none for a TTL would take over the lock of a live holder.
	lastBeat   time.Duration // from the acquisition to the last heartbeat
	lastSeen   time.Time     // when the heartbeat was first observed
	beatsKnown bool          // one has arrived, or none for a TTL
}

func (p *peer) name() string { return fmt.Sprintf("%s pid %d", p.Host.Host, p.PID) }

// beat returns the heartbeat interval in seconds, with a default if the source does not report it.
func (p *peer) beat() float64 { return cmp.Or(p.record.Heartbeat, time.Second).Seconds() }

// self returns this host's identity, as the source records it.
func (h *host) self() process.Identity { return h.held[0].Record().Holder.Identity }

// active returns the peers that have not left.
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
	all := h.active()
	for _, name := range names {
		number, mark, ok := h.parseName(name)
		known := number == h.number || slices.ContainsFunc(all, func(p *peer) bool { return p.number == number })
		if ok && mark == presence && !known && len(h.held) == 1 { // after the first mark, it is too late
			all = append(all, &peer{number: number})
		}
	}
	for _, p := range all {
		if err := h.follow(ctx, p, names); err != nil {
			return err
		}
	}
	h.listed, h.asked = names, asked
	h.Here(len(h.active()) + 1)
	return nil
}

// follow updates the state of a peer. It inspects the presence lock once per heartbeat, and when the lock is
// not listed: an inspection costs several requests, and a list of all locks only one.
func (h *host) follow(ctx context.Context, p *peer, names []string) error {
	name, isNew := h.lockName(p.number, presence), p.record.Token == ""
	if !slices.Contains(names, name) || time.Since(p.looked).Seconds() >= p.beat() {
		p.looked = time.Now()
		seen, err := h.inspectOf(ctx, p, name)
		switch {
		case err != nil, isNew && (seen.State != multilock.StateHeld || !h.meet(p, seen)):
			return err // if it died or left, tidy removes its locks
		case seen.State == multilock.StateFree || seen.Record.Token != p.record.Token:
			p.End = endLeft
			return nil
		case seen.State != multilock.StateHeld:
			p.End, p.died = endWentAway, seen.Why
			return nil
		case !isNew:
			h.noteBeat(p, seen)
		}
	}
	err := h.readMarks(ctx, p, names)
	// A new participant that has marks is about to end a test with other hosts.
	if err == nil && isNew && (p.marks == 0 || p.unsafe) {
		h.peers = append(h.peers, p)
	}
	return err
}

// meet records the holder of a presence lock. It returns false if the holder is unreadable, or already known.
func (h *host) meet(p *peer, seen multilock.Observation) bool {
	if seen.Record.Foreign != "" || seen.Record.Token == "" {
		f := source.Warning("join", "a participant cannot be identified: "+seen.Record.Name+": "+seen.Why,
			"run doctor on all hosts as users that can read each other's files, with the umask of your jobs")
		if !slices.Contains(h.found, f) {
			h.found = append(h.found, f)
		}
		return false
	}
	holder, self := seen.Record.Holder, h.self()
	p.record = seen.Record
	p.Host = Host{Host: holder.Host, PID: holder.PID, User: holder.User, End: endUnfinished, Account: Account{Fences: []uint64{}}}
	// Processes under the same kernel may be excluded by that kernel alone, so they prove less.
	p.SameHost = holder.Host == self.Host
	if self.Boot != "" && holder.Boot != "" {
		p.SameHost = self.Boot == holder.Boot
	}
	return !slices.ContainsFunc(h.peers, func(q *peer) bool { return q.record.Token == p.record.Token })
}

// noteBeat measures how late this host sees a peer's heartbeats.
func (h *host) noteBeat(p *peer, seen multilock.Observation) {
	now, last := time.Now(), seen.Age-seen.Silence
	switch {
	case seen.Age == source.Unknown || seen.Silence == source.Unknown || seen.Record.Heartbeat == 0:
		p.beatsKnown = true // the source does not report heartbeats
	case p.lastSeen.IsZero():
		p.lastBeat, p.lastSeen = last, now
	case last != p.lastBeat:
		p.lastBeat, p.lastSeen, p.beatsKnown = last, now, true
	default: // the next heartbeat was due one interval after the last, which was sent before it was seen
		p.Late = max(p.Late, (p.looked.Sub(p.lastSeen) - seen.Record.Heartbeat).Round(time.Millisecond).Seconds())
		p.beatsKnown = p.beatsKnown || now.Sub(p.lastSeen) > h.ttl
	}
}

// readMarks reads the accounts in marks that a peer has acquired since the last observation.
func (h *host) readMarks(ctx context.Context, p *peer, names []string) error {
	for p.marks < len(marks) {
		name := h.lockName(p.number, marks[p.marks])
		if !slices.Contains(names, name) {
			return nil
		}
		seen, err := h.inspectOf(ctx, p, name)
		if err != nil || seen.State != multilock.StateHeld || seen.Record.Holder.Identity != p.record.Holder.Identity {
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

// inspectOf inspects a lock of a peer. If the last list lacked a lock that existed then, the list came from a
// cache, and its age was at least the lock's age at that time.
func (h *host) inspectOf(ctx context.Context, p *peer, name string) (multilock.Observation, error) {
	seen, err := h.inspect(ctx, name)
	if err == nil && seen.State == multilock.StateHeld && seen.Age != source.Unknown && !h.asked.IsZero() && !slices.Contains(h.listed, name) {
		p.Stale = max(p.Stale, (seen.Age - time.Since(h.asked)).Seconds())
	}
	return seen, err
}
