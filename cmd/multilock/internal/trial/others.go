package trial

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/internal/bounded"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

// others are the other participants, as this host sees them.
type others struct {
	place
	peers   []*peer
	strange []string  // seats of which nobody can tell whose they are
	blocker string    // who has the lock that all contend for and takes no part, "" if nobody
	listed  []string  // the names of the last look
	asked   time.Time // when that was
}

// peer is one of them.
type peer struct {
	Host   // what it told is empty before that
	seat   int
	token  string // of its seat: that very participant, and nobody who sits there later
	holder multilock.Holder

	stale   time.Duration // the age of a list in which its locks were missing
	signs   signs
	heard   bool   // it has told how its turns were
	garbled bool   // another version did, or the source has cut it
	unsafe  bool   // it has seen that locks are not safe
	read    bool   // it has read what all others told
	left    bool   // it gave its seat back
	away    string // why it counts as gone without a word, "" if it does not
	looked  time.Time
	beat    time.Duration // between two signs of life of its seat
}

func (p *peer) isActive() bool { return !p.left && p.away == "" }

func (p *peer) name() string { return fmt.Sprintf("%s pid %d", p.Host.Host, p.PID) }

// active are the participants that are there.
func (o *others) active() []*peer {
	return slices.DeleteFunc(slices.Clone(o.peers), func(p *peer) bool { return !p.isActive() })
}

// look finds out who is there, and how far they are; own is this host's seat.
func (o *others) look(ctx context.Context, own int, newcomers bool) error {
	asked := time.Now()
	names, err := bounded.Call(ctx, o.Locks.Names)
	if err != nil {
		return err
	}
	for _, p := range o.active() {
		if err := o.follow(ctx, p, names); err != nil {
			return err
		}
	}
	if newcomers {
		err = o.meet(ctx, own, names)
	}
	o.listed, o.asked = names, asked
	return err
}

// meet gets to know those who have just come.
func (o *others) meet(ctx context.Context, own int, names []string) error {
	for _, name := range names {
		seat, mark, ok := o.cutSeat(name)
		if !ok || mark != "" || seat == own || slices.ContainsFunc(o.active(), func(p *peer) bool { return p.seat == seat }) {
			continue
		}
		if err := o.greet(ctx, &peer{seat: seat, looked: time.Now()}, names); err != nil {
			return err
		}
	}
	return nil
}

// greet looks who has a seat.
func (o *others) greet(ctx context.Context, p *peer, names []string) error {
	name := o.seatName(p.seat)
	seen, err := o.sight(ctx, p, name)
	switch {
	case err != nil || seen.State != multilock.StateHeld:
		return err // it died or left; what it leaves is cleared away in the end
	case seen.Record.Foreign != "" || seen.Record.Token == "":
		if text := name + ": " + seen.Why; !slices.Contains(o.strange, text) {
			o.strange = append(o.strange, text)
		}
		return nil
	}
	p.token, p.holder, p.beat = seen.Record.Token, seen.Record.Holder, cmp.Or(seen.Record.Heartbeat, untoldBeat)
	p.Host = Host{Host: p.holder.Host, PID: p.holder.PID, User: p.holder.User, Account: Account{Fences: []uint64{}}}
	if slices.ContainsFunc(o.peers, func(q *peer) bool { return q.token == p.token }) {
		return nil
	}
	told, err := o.hasMark(ctx, p, names, toldMark)
	if err == nil && (told == nil || o.tellsOfHarm(told)) { // else it is about to end, with others
		o.peers = append(o.peers, p)
	}
	return err
}

// tellsOfHarm says whether a participant who has told its account has seen that locks are not
// safe, of which nobody hears too late.
func (o *others) tellsOfHarm(told *multilock.Sighting) bool {
	_, harm, _ := parseAccount(told.Record.Holder.Command, o.Command)
	return harm
}

// follow notices what has become of a participant.
func (o *others) follow(ctx context.Context, p *peer, names []string) error {
	if err := o.checkLife(ctx, p, slices.Contains(names, o.seatName(p.seat))); err != nil || !p.isActive() {
		return err
	}
	if !p.heard {
		told, err := o.hasMark(ctx, p, names, toldMark)
		if told == nil || err != nil {
			return err
		}
		var ok bool
		p.Account, p.unsafe, ok = parseAccount(told.Record.Holder.Command, o.Command)
		p.heard, p.garbled = true, !ok
	}
	read, err := o.hasMark(ctx, p, names, readMark)
	if read != nil {
		_, harm, _ := parseAccount(read.Record.Holder.Command, o.Command)
		p.read, p.unsafe = true, p.unsafe || harm
	}
	return err
}

// untoldBeat is that of a source that does not say how often a holder gives signs of life.
const untoldBeat = time.Second

// checkLife looks at the seat of a participant now and then, as often as that gives signs of
// life, and when it is not listed any more. Each look costs several requests, and a list of all
// of them only one.
func (o *others) checkLife(ctx context.Context, p *peer, listed bool) error {
	if listed && time.Since(p.looked) < p.beat {
		return nil
	}
	p.looked = time.Now()
	start := p.looked
	seen, err := o.sight(ctx, p, o.seatName(p.seat))
	switch {
	case err != nil:
		return err
	case seen.State == multilock.StateFree || seen.Record.Token != p.token:
		p.left = true
	case seen.State != multilock.StateHeld:
		p.away = seen.Why
	default:
		p.signs.note(seen, start)
	}
	return nil
}

// hasMark is a look at a mark of a participant's; nil if it has not made that yet.
// An earlier one of the same seat may have died and left its own.
func (o *others) hasMark(ctx context.Context, p *peer, names []string, mark string) (*multilock.Sighting, error) {
	name := o.markName(p.seat, mark)
	if !slices.Contains(names, name) {
		return nil, nil
	}
	seen, err := o.sight(ctx, p, name)
	if err != nil || seen.State != multilock.StateHeld || seen.Record.Holder.Identity != p.holder.Identity {
		return nil, err
	}
	return &seen, nil
}

// sight inspects a lock of a participant's. The first time it also tells how old the
// list was in which that was still missing: that is a cache's doing.
func (o *others) sight(ctx context.Context, p *peer, name string) (multilock.Sighting, error) {
	seen, err := o.inspect(ctx, name)
	if err == nil && seen.State == multilock.StateHeld && seen.Age != source.Unknown && !o.asked.IsZero() && !slices.Contains(o.listed, name) {
		p.stale = max(p.stale, seen.Age-time.Since(o.asked))
	}
	return seen, err
}

// keptOut counts whose lock was in the way. It counts only if the holder is known
// for a participant that lives.
func (o *others) keptOut(inTheWay *multilock.Sighting) {
	o.blocker = ""
	if inTheWay == nil {
		return
	}
	o.blocker = console.HeldBy(*inTheWay)
	for _, p := range o.peers {
		if inTheWay.State == multilock.StateHeld && p.holder.Identity == inTheWay.Record.Holder.Identity {
			p.Refused++
			o.blocker = ""
		}
	}
}
