package cloudshell

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/multilock/go/multilock/boottime"
	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/source/remote"
)

// lock makes the requests for one lock.
type lock struct {
	src        *Source
	name, base string
	self       *remote.Contender
	last       *view // the last listing
}

// Contend implements source.Source.
func (s *Source) Contend(_ context.Context, name string, claim source.Claim, policy source.StalePolicy) (source.Contender, error) {
	l := &lock{src: s, name: name, base: s.aliasOf(name)}
	contender, err := remote.NewContender(s, l, name, claim, policy)
	l.self = contender
	return rareLooks{contender}, err
}

// Observe implements source.Source.
func (s *Source) Observe(ctx context.Context, name string, policy source.StalePolicy) (source.Observer, error) {
	return s.Contend(ctx, name, source.Claim{}, policy)
}

// rareLooks inspects a held lock less often, because each look is a listing of the whole reservation.
type rareLooks struct{ *remote.Contender }

// Look implements source.Observer.
func (g rareLooks) Look(ctx context.Context) (source.Observation, error) {
	seen, err := g.Contender.Look(ctx)
	if seen.State == source.StateHeld {
		seen.Next = max(seen.Next, min(remote.Far, seen.Record.TTL/4))
	}
	return seen, err
}

// See implements remote.Lock, with one listing.
func (l *lock) See(ctx context.Context) (remote.Seen, error) {
	start := boottime.Now()
	v, err := l.src.view(ctx, l.base)
	if err != nil {
		return remote.Seen{}, l.src.Named(ctx, "look", l.name, err)
	}
	l.last = v
	now := l.src.read(v)
	if !now.isHeld {
		return remote.Seen{}, nil
	}
	now.record.Name = l.name
	seen := remote.Seen{Held: true, Record: now.record, Sign: remote.Sign{Token: now.key}, OneClock: true}
	seen.Silence = l.src.since(ctx, now.sign, start, source.ClockCarried)
	if seen.Silence > now.record.TTL/2 {
		seen.Silence = l.src.since(ctx, now.sign, start, source.ClockFresh)
	}
	seen.Age = l.src.since(ctx, now.taken, start, source.ClockCarried)
	return seen, nil
}

// since returns the time from a moment by the server's clock to an instant, or source.Unknown. It
// returns the shortest possible time, which favours the holder.
func (s *Source) since(ctx context.Context, moment time.Time, until boottime.Instant, age time.Duration) time.Duration {
	early, _ := s.around(ctx, age)
	if moment.IsZero() || early.IsZero() {
		return source.Unknown
	}
	return max(early.Sub(moment)-until.Elapsed(), 0)
}

// Attempt implements remote.Attempts. If the lock is held, it takes one listing. A free lock is
// acquired in two steps: first the register, which excludes all users of this package, and then the
// service that scripts know.
func (l *lock) Attempt(ctx context.Context) (source.Lease, error) {
	start := boottime.Now()
	seen, err := l.See(ctx)
	if err != nil {
		return nil, err
	}
	if seen.Held {
		l.self.Note(start, seen)
		return nil, source.ErrHeld
	}
	ctx = context.WithoutCancel(ctx) // from here on requests are not cancelled
	lease, v, err := l.takeTurn(ctx, l.self.Claim, l.last.top())
	if err != nil {
		return nil, err
	}
	if err := lease.place(ctx, v); err != nil {
		return nil, lease.undo(ctx, err)
	}
	lease.tidy(ctx, v)
	return lease, nil
}

// takeTurn takes the register, whose state is top. With ErrHeld another client was faster, and the
// view shows its turn.
func (l *lock) takeTurn(ctx context.Context, claim source.Claim, top turn) (*lease, *view, error) {
	_, now := l.src.around(ctx, source.ClockCarried)
	text := held{record: source.Record{Token: newToken(), Claim: claim}, reservation: l.src.digest, sign: now, taken: cmp.Or(now, time.Now())}.encode()
	written := newTurn(1, "", text) // the record as others read it: its texts may be shortened
	if written.why != "" {
		return nil, nil, l.src.Named(ctx, "write the record", l.name, errors.New(written.why))
	}
	written.held.record.Name = l.name
	sign := boottime.Now()
	le := &lease{Holding: remote.NewHolding(written.held.record, sign), src: l.src, base: l.base, number: top.number, sign: sign}
	v, err := l.src.advance(ctx, l.base, top.number, text)
	switch {
	case err == nil:
		le.number = v.top().number
		return le, v, nil
	case errors.Is(err, errTaken):
		return nil, v, source.ErrHeld
	case errors.Is(err, errNoOwner):
		_ = l.src.remove(ctx, turnAlias(l.base, top.number+1)) // the server reported that it added this one
	case errors.Is(err, source.ErrUnsure):
		// Another step makes it harmless: however late it is carried out, it is rejected, or is not the top.
		if _, undone := le.step(ctx, le.free()); undone == nil || errors.Is(undone, errGone) {
			err = errors.New("the attempt was taken back: " + err.Error())
		}
	}
	return nil, nil, l.src.Named(ctx, "take the register", l.name, l.src.explainModel(err))
}

// Remove implements remote.Lock. It takes the register's next turn, which fails if the holder has
// sent a heartbeat since, or another client was faster. Then it tries again with the current turn,
// unless the heartbeat counts or it is another lock.
func (l *lock) Remove(ctx context.Context, seen remote.Seen, still bool) (remote.Freed, error) {
	through := context.WithoutCancel(ctx) // a step that has begun is not cancelled
	// If this process dies, it holds the register for the maximum duration of a request.
	claim := source.Claim{Holder: source.Holder{Identity: l.src.Self(), Command: "multilock break"}, TTL: l.src.opt.Timeout}
	for {
		lease, v, err := l.takeTurn(through, claim, l.last.top())
		if err == nil {
			lease.tidy(through, v)
			if b := v.bare; b != nil && (b.why == "" || b.text == seen.Sign.Token) {
				err = lease.clear(through, v) // of the broken lock, or left behind; otherwise it is a script's
			}
			return remote.Freed{Done: true}, l.src.Named(ctx, "break", l.name, errors.Join(err, lease.freeRegister(through)))
		}
		if !errors.Is(err, source.ErrHeld) {
			return remote.Freed{}, err
		}
		l.last = v
		now := l.src.read(v)
		same := now.record.Token == seen.Record.Token && (seen.Record.Token != "" || now.key == seen.Sign.Token)
		switch {
		case !now.isHeld || !same:
			return remote.Freed{}, nil
		case still && now.key != seen.Sign.Token:
			return remote.Freed{Held: true}, nil
		case ctx.Err() != nil:
			return remote.Freed{}, context.Cause(ctx)
		}
	}
}
