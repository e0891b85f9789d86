package cloudshell

import (
	"context"
	"errors"
	"time"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/boottime"
	"github.com/multilock/go/multilock/watch"
)

// observer watches one lock.
type observer struct {
	src    *Source
	name   string
	base   string
	maxAge time.Duration

	watch   watch.Watch[string] // of the keys of its signs of life
	last    standing            // at the last look
	looked  bool
	verdict verdict
	// recent is what an attempt has just seen, for the look that follows.
	recent      *view
	recentStart boottime.Instant
}

// Observe implements multilock.Source.
func (s *Source) Observe(_ context.Context, name string, patience multilock.Patience) (multilock.Observer, error) {
	if err := s.CheckName(name); err != nil {
		return nil, err
	}
	o := s.newObserver(name, patience)
	return &o, nil
}

func (s *Source) newObserver(name string, patience multilock.Patience) observer {
	return observer{src: s, name: name, base: s.aliasOf(name), maxAge: patience.MaxAge}
}

// remember keeps what an attempt has seen: the look that follows needs no other listing.
func (o *observer) remember(start boottime.Instant, v *view) { o.recent, o.recentStart = v, start }

// sample is the lock as it is now, or was a moment ago at an attempt.
func (o *observer) sample(ctx context.Context) (boottime.Instant, *view, error) {
	start, v := o.recentStart, o.recent
	o.recent = nil
	if v != nil && start.Elapsed() < slowest {
		return start, v, nil
	}
	start = boottime.Now()
	v, err := o.src.view(ctx, o.base)
	return start, v, err
}

// Look implements multilock.Observer.
func (o *observer) Look(ctx context.Context) (multilock.Sighting, error) {
	start, v, err := o.sample(ctx)
	if err != nil {
		o.watch.Interrupt()
		return multilock.Sighting{}, opError("look", o.name, err)
	}
	o.last, o.looked = o.src.read(v), true
	o.last.record.Name = o.name
	if o.last.state == heldByOther {
		o.last.record.Foreign = o.last.why
	}
	o.watch.Add(o.last.key, start, limitsFor(o.beat()))
	e := o.evidence(ctx, clockCarried)
	if o.verdict = judge(e); o.verdict.state == multilock.Suspect || o.verdict.state == multilock.Dead {
		e = o.evidence(ctx, clockFresh)
		o.verdict = judge(e)
	}
	return o.sighting(ctx, e), nil
}

func (o *observer) sighting(ctx context.Context, e evidence) multilock.Sighting {
	seen := multilock.Sighting{State: o.verdict.state, Record: o.last.record, Why: o.verdict.why, Next: o.verdict.next, Age: multilock.Unknown, Silence: e.silence}
	if o.verdict.state == multilock.Free {
		seen.Record = multilock.Record{}
		return seen
	}
	if taken := o.last.held.taken; !taken.IsZero() {
		if early, _, ok := o.src.clock.read(ctx, o.src, clockCarried); ok {
			seen.Age = max(early.Sub(taken), 0)
		}
	}
	return seen
}

// beat is the time between two signs of life that is to be expected.
func (o *observer) beat() time.Duration {
	if beat := o.last.record.Heartbeat; beat > 0 {
		return beat
	}
	return heldNext
}

func (o *observer) evidence(ctx context.Context, age time.Duration) evidence {
	e := evidence{standing: o.last, silence: multilock.Unknown, unchanged: o.watch.Unchanged(), watched: o.watch.Watched(), maxAge: o.maxAge}
	if o.last.state != heldByTurn && o.last.state != heldByOwner {
		return e
	}
	e.holder = o.last.record.Holder.Judge(o.src.opt.Self)
	if sign := o.last.held.sign; !sign.IsZero() {
		if early, _, ok := o.src.clock.read(ctx, o.src, age); ok {
			e.silence = max(early.Sub(sign)-o.watch.Stale(), 0) // nobody was watched while the clock was read
		}
	}
	return e
}

// Close implements multilock.Observer.
func (o *observer) Close() error { return nil }

// Break implements multilock.Observer. It takes the register's next turn, which is
// refused if the holder has shown life since or somebody else was faster.
func (o *observer) Break(ctx context.Context) error {
	if o.verdict.state != multilock.Dead {
		return multilock.ErrHeld
	}
	return o.clear(ctx, func(now standing) bool { return now.key == o.last.key })
}

// Force implements multilock.Observer. The holder may have shown life since, but it
// must be the same. Of scripts that name no owner, or always the same one, nobody
// can tell whether it is.
func (o *observer) Force(ctx context.Context) error {
	if !o.looked || o.last.state == freeHere {
		return multilock.ErrFree
	}
	return o.clear(ctx, func(now standing) bool {
		if token := o.last.record.Token; token != "" {
			return now.record.Token == token
		}
		return now.state == o.last.state && now.key == o.last.key
	})
}

// clear breaks the lock if it is still the one that was meant.
func (o *observer) clear(ctx context.Context, meant func(standing) bool) error {
	v, err := o.src.view(ctx, o.base)
	if err != nil {
		return opError("break", o.name, err)
	}
	now := o.src.read(v)
	switch {
	case now.state == freeHere:
		return nil
	case !meant(now) && o.last.record.Token != "" && now.record.Token != o.last.record.Token:
		return nil // that one is gone; this is another
	case !meant(now):
		return multilock.ErrHeld
	}
	ctx = context.WithoutCancel(ctx)
	if plain, err := o.src.plain(ctx); err != nil || plain {
		return errors.Join(err, o.removePlain(ctx, plain))
	}
	l, v, err := o.src.takeTurn(ctx, o.base, o.name, o.src.breaker(), v.top())
	if errors.Is(err, multilock.ErrHeld) {
		return o.outrun(ctx)
	}
	if err != nil {
		return opError("break", o.name, err)
	}
	l.tidy(ctx, v)
	return opError("break", o.name, errors.Join(o.clearBare(ctx, l, v), l.part(ctx)))
}

// breaker is the claim of who breaks a lock. Should that process end meanwhile, the
// register stays with it for as long as one of its requests may still be under way.
func (s *Source) breaker() multilock.Claim {
	holder := multilock.Holder{Identity: s.opt.Self, Command: "multilock break"}
	return multilock.Claim{Holder: holder, TTL: s.opt.Timeout}
}

// removePlain removes a lock without an owner: there is no register, and nothing
// tells this one from the next.
func (o *observer) removePlain(ctx context.Context, plain bool) error {
	if !plain {
		return nil
	}
	if err := o.src.remove(ctx, o.base); err != nil {
		v, looked := o.src.view(ctx, o.base)
		if looked != nil || v.bare != nil {
			return opError("break", o.name, errors.Join(err, looked))
		}
	}
	return nil
}

// clearBare removes the service that scripts know, if it is the one of the lock that
// was broken, or what an earlier one left. Another is a script's, that came first.
func (o *observer) clearBare(ctx context.Context, l *lease, v *view) error {
	b := v.bare
	if b == nil || !o.src.leftBehind(b) && (o.last.state != heldByOther || b.text != o.last.key) {
		return nil
	}
	return l.clear(ctx, v)
}

// outrun is for a register that passed on before the break's step.
func (o *observer) outrun(ctx context.Context) error {
	v, err := o.src.view(ctx, o.base)
	if err != nil {
		return opError("break", o.name, err)
	}
	if now := o.src.read(v); now.state != freeHere && now.record.Token == o.last.record.Token {
		return multilock.ErrHeld // it shows life
	}
	return nil
}
