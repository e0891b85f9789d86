package cloudshell

import (
	"context"
	"errors"
	"time"

	"github.com/multilock/go/multilock/boottime"
	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/source/remote"
)

// observer watches one lock.
type observer struct {
	remote.Witness
	src    *Source
	base   string
	last   standing // at the last look
	looked bool
	usual  time.Duration // what the quickest listing took, 0 before the first
	recent *listed       // what an attempt has just seen, for the look that follows
}

// listed is a look at the lock.
type listed struct {
	start, end boottime.Instant // of the request
	view       *view
}

// slowest is how long a listing may take in any case: a server is no disk.
const slowest = 250 * time.Millisecond

// limitsFor says how listings have to come of a holder that gives a sign of life every
// beat, which changes its key, from a server where they take as long as distance: what
// takes twice as long is slow. With the limits of a near server nobody who died would
// ever be found dead on one that is far.
func limitsFor(beat, distance time.Duration) source.WatchLimits {
	return source.WatchLimits{Slow: max(beat/4, slowest, 2*distance), Gap: max(beat, 2*slowest) + 2*distance}
}

// Observe implements source.Source.
func (s *Source) Observe(_ context.Context, name string, patience source.Patience) (source.Observer, error) {
	if err := s.CheckName(name); err != nil {
		return nil, err
	}
	o := s.newObserver(name, patience)
	return &o, nil
}

func (s *Source) newObserver(name string, patience source.Patience) observer {
	return observer{Witness: remote.NewWitness(s.opt.Self, name, patience), src: s, base: s.aliasOf(name)}
}

// list asks for the lock as it is now.
func (o *observer) list(ctx context.Context) (*listed, error) {
	start := boottime.Now()
	v, err := o.src.view(ctx, o.base)
	if err != nil {
		return nil, err
	}
	if took := start.Elapsed(); o.usual == 0 || took < o.usual {
		o.usual = took
	}
	return &listed{start, boottime.Now(), v}, nil
}

// sample is the lock as it is now, or was a moment ago at an attempt: then the look
// that follows the attempt needs no other listing.
func (o *observer) sample(ctx context.Context) (*listed, error) {
	found := o.recent
	o.recent = nil
	if found != nil && found.end.Elapsed() < slowest {
		return found, nil
	}
	return o.list(ctx)
}

// Look implements source.Observer.
func (o *observer) Look(ctx context.Context) (source.Sighting, error) {
	found, err := o.sample(ctx)
	if err != nil {
		o.Watch.Interrupt()
		return source.Sighting{}, opError("look", o.Name, err)
	}
	o.last, o.looked = o.src.read(found.view), true
	o.Record = o.last.record
	if o.last.state != freeHere {
		o.Record.Name = o.Name
	}
	if o.last.state == heldByOther {
		o.Record.Foreign = o.last.why
	}
	o.Watch.Add(remote.Sign{Token: o.last.key}, found.start, boottime.Now(), limitsFor(o.beat(), o.distance()))
	e := o.evidence(ctx, source.ClockCarried)
	if state := o.judge(e).State; state == source.StateSuspect || state == source.StateDead {
		e = o.evidence(ctx, source.ClockFresh)
	}
	seen := o.Conclude(e, o.judge)
	if taken := o.last.held.taken; !taken.IsZero() && seen.State != source.StateFree {
		if early, _, ok := o.src.around(ctx, source.ClockCarried); ok {
			seen.Age = max(early.Sub(taken), 0)
		}
	}
	return seen, nil
}

// beat is the time between two signs of life that is to be expected.
func (o *observer) beat() time.Duration {
	if beat := o.last.record.Heartbeat; beat > 0 {
		return beat
	}
	return glance
}

// distance is how long a listing takes here if nothing is wrong. What takes half a TTL
// is wrong in any case: nobody could keep a lock where signs of life take that long.
func (o *observer) distance() time.Duration { return min(o.usual, o.last.record.TTL/4) }

func (o *observer) evidence(ctx context.Context, age time.Duration) source.Evidence {
	e := o.Evidence()
	if sign := o.last.held.sign; !sign.IsZero() {
		if early, _, ok := o.src.around(ctx, age); ok {
			e.Silence = max(early.Sub(sign)-o.Watch.Stale(boottime.Now()), 0) // nobody was watched while the clock was read
		}
	}
	return e
}

// glance is how soon another look at a held lock makes sense: it is a listing of the
// whole reservation.
const glance = 5 * time.Second

// judge decides whether the lock that was seen last is held by somebody alive.
func (o *observer) judge(e source.Evidence) source.Verdict {
	switch o.last.state {
	case freeHere:
		return source.Verdict{State: source.StateFree, Why: "nobody holds it"}
	case heldByOther:
		return source.Verdict{State: source.StateHeld, Why: o.last.why + "; it gives no signs of life, so only break --force can clear it", Next: glance}
	}
	return e.Judge(source.Rules{Near: glance, Far: glance})
}

// Break implements source.Observer. It takes the register's next turn, which is
// refused if the holder has shown life since or somebody else was faster.
func (o *observer) Break(ctx context.Context) error {
	if o.Verdict.State != source.StateDead {
		return source.ErrHeld
	}
	return o.clear(ctx, func(now standing) bool { return now.key == o.last.key })
}

// Force implements source.Observer. The holder may have shown life since, but it
// must be the same. Of scripts that name no owner, or always the same one, nobody
// can tell whether it is.
func (o *observer) Force(ctx context.Context) error {
	if !o.looked || o.last.state == freeHere {
		return source.ErrFree
	}
	return o.clear(ctx, func(now standing) bool {
		if token := o.last.record.Token; token != "" {
			return now.record.Token == token
		}
		return now.state == o.last.state && now.key == o.last.key
	})
}

// clear breaks the lock if it is still the one that was meant. Its step is refused
// when the holder has given a sign of life since the listing, as happens often where
// a request takes a second. Whether that still is the one that was meant is for meant
// to say; if so the step is made again, on what that sign of life has left.
func (o *observer) clear(ctx context.Context, meant func(standing) bool) error {
	through := context.WithoutCancel(ctx) // a step that was begun is seen through
	plain, err := o.src.plain(through)
	if err != nil {
		return err
	}
	o.src.now(through) // lest it be asked for between the listing and the step
	v, err := o.src.view(through, o.base)
	if err != nil {
		return opError("break", o.Name, err)
	}
	for {
		if gone, held := o.passed(o.src.read(v), meant); gone || held != nil {
			return held
		}
		if plain {
			return o.removePlain(through)
		}
		if over := context.Cause(ctx); over != nil {
			return over
		}
		if v, err = o.breakFrom(through, v.top()); !errors.Is(err, source.ErrHeld) {
			return opError("break", o.Name, err)
		}
	}
}

// breakFrom breaks the lock whose register has the state top. With ErrHeld somebody
// was faster, and the view shows who.
func (o *observer) breakFrom(ctx context.Context, top turn) (*view, error) {
	l, v, err := o.src.takeTurn(ctx, o.base, o.Name, o.src.breaker(), top)
	if err != nil {
		return v, err
	}
	l.tidy(ctx, v)
	return v, errors.Join(o.clearBare(ctx, l, v), l.part(ctx))
}

// passed says whether the lock is gone that the last look saw; the error is ErrHeld
// if it is there, and not to be broken any more.
func (o *observer) passed(now standing, meant func(standing) bool) (gone bool, err error) {
	seen := o.last.record.Token
	switch {
	case now.state == freeHere, seen != "" && now.record.Token != seen:
		return true, nil // whatever is there now is another
	case !meant(now):
		return false, source.ErrHeld
	}
	return false, nil
}

// breaker is the claim of who breaks a lock. Should that process end meanwhile, the
// register stays with it for as long as one of its requests may still be under way.
func (s *Source) breaker() source.Claim {
	holder := source.Holder{Identity: s.opt.Self, Command: "multilock break"}
	return source.Claim{Holder: holder, TTL: s.opt.Timeout}
}

// removePlain removes a lock without an owner: there is no register, and nothing
// tells this one from the next.
func (o *observer) removePlain(ctx context.Context) error {
	err := o.src.remove(ctx, o.base)
	if err == nil {
		return nil
	}
	v, looked := o.src.view(ctx, o.base)
	if looked == nil && v.bare == nil {
		return nil
	}
	return opError("break", o.Name, errors.Join(err, looked))
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
