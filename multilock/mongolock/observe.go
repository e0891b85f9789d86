package mongolock

import (
	"context"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multilock/go/multilock/boottime"
	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/source/remote"
)

// observer watches one lock.
type observer struct {
	remote.Observer[sign]
	src   *Source
	doc   document      // of the last look
	usual time.Duration // what the quickest look took, 0 before the first
}

// sign is what a sign of life changes: each acquisition has a token of its own, and
// counts its signs.
type sign struct {
	token string
	beats int64
}

func (d document) sign() sign { return sign{token: d.locked.String(), beats: d.held.Beats} }

// shortestGap is how late a sample may be on a loaded machine.
const shortestGap = 500 * time.Millisecond

// limitsFor says how samples have to come of a holder that gives a sign of life every
// beat. They may take as long as they like: an answer counts up to when it was asked for. But
// between two of them a waiter makes an attempt, and asks for the server's clock; each
// takes as long as it is far to the server.
func limitsFor(beat, distance time.Duration) source.WatchLimits {
	return source.WatchLimits{Gap: max(beat, shortestGap) + 3*distance}
}

// Observe implements source.Source.
func (s *Source) Observe(ctx context.Context, name string, patience source.Patience) (source.Observer, error) {
	if err := s.CheckName(name); err != nil {
		return nil, err
	}
	if _, err := s.ready(ctx); err != nil {
		return nil, err
	}
	o := s.newObserver(name, patience)
	return &o, nil
}

func (s *Source) newObserver(name string, patience source.Patience) observer {
	return observer{Observer: remote.NewObserver[sign](s.Self(), name, patience), src: s, doc: document{name: name}}
}

// Look implements source.Observer.
func (o *observer) Look(ctx context.Context) (source.Sighting, error) {
	start := boottime.Now()
	doc, err := o.src.read(ctx, o.Name, settled)
	if err != nil {
		o.Watch.Interrupt()
		return source.Sighting{}, o.src.opError(ctx, "look", o.Name, err)
	}
	if took := start.Elapsed(); o.usual == 0 || took < o.usual {
		o.usual = took
	}
	o.doc = doc
	if doc.free() {
		return o.Free(), nil
	}
	o.Record = doc.record()
	o.Watch.Add(doc.sign(), start, limitsFor(o.Record.Heartbeat, min(o.usual, o.Record.TTL/4)))
	e := o.evidence(ctx, source.ClockCarried)
	if remote.Judge(e).State == source.StateSuspect {
		e = o.evidence(ctx, source.ClockFresh)
	}
	seen := o.Conclude(e, remote.Judge)
	seen.Age, seen.Silence = told(o.sinceServer(ctx, o.doc.acquired, source.ClockCarried)), told(e.Silence)
	return seen, nil
}

// evidence gathers what the verdict rests on, with a reading of the server's clock
// of at most the given age.
func (o *observer) evidence(ctx context.Context, age time.Duration) source.Evidence {
	e := o.Evidence()
	e.Silence = o.sinceServer(ctx, o.doc.seen, age)
	return e
}

// sinceServer is the time since a moment, both by the server's clock. If that cannot
// be read the observer's own has to do.
func (o *observer) sinceServer(ctx context.Context, moment time.Time, age time.Duration) time.Duration {
	if o.Record.Foreign != "" || moment.IsZero() {
		return source.Unknown
	}
	now, err := o.src.now(ctx, age)
	if err != nil {
		return source.Unknown
	}
	passed := now.Sub(moment)
	if passed < 0 && passed > -2*source.ClockFresh {
		return 0 // the clock was read before, and carried forward
	}
	return passed
}

// told is a time as people are told it: the server's clock may have been set back.
func told(passed time.Duration) time.Duration {
	if passed == source.Unknown {
		return source.Unknown
	}
	return max(passed, 0)
}

// Break implements source.Observer. The filter has the token and the count of
// the last look: another holder, or one that has shown life since, is out of reach.
func (o *observer) Break(ctx context.Context) error {
	if o.Verdict.State != source.StateDead {
		return source.ErrHeld
	}
	broken, err := o.remove(ctx, bson.E{Key: beatsField, Value: o.Watch.Last().beats})
	if broken {
		// The lock is broken; that the history could not be written is no reason to say
		// anything else.
		_ = o.src.Record(ctx, o.src.Broke(o.Record, o.Verdict.Why))
	}
	return err
}

// Force implements source.Observer. It leaves the history to its caller, who
// knows why. A document without a field locked is somebody's data, and stays.
func (o *observer) Force(ctx context.Context) error {
	if o.doc.free() {
		return source.ErrFree
	}
	if o.doc.locked.Type == 0 {
		return &source.InvalidError{What: "lock name", Got: o.Name, Why: o.Record.Foreign + "; choose another name, or another collection"}
	}
	_, err := o.remove(ctx)
	return err
}

// remove frees the lock that the last look saw, in one conditional write. After a
// reply that was lost it does so once more: whoever finds nothing then has broken
// the lock, or somebody else has.
func (o *observer) remove(ctx context.Context, seen ...bson.E) (broken bool, err error) {
	filter := append(bson.D{{Key: idField, Value: o.src.id(o.Name)}, {Key: lockedField, Value: o.doc.locked}}, seen...)
	var mark []bson.E
	if token := o.doc.token(); token != "" {
		mark = append(mark, bson.E{Key: brokenField, Value: token})
	}
	doubted := false
	for range maxDoubts {
		broken, err = o.src.updateWithin(ctx, o.src.timeout, filter, freeing(mark...))
		switch {
		case broken:
			return true, nil
		case err == nil:
			return o.missed(ctx, doubted)
		case !inDoubt(err):
			return false, o.src.opError(ctx, "break", o.Name, err)
		}
		doubted = true
	}
	return false, o.src.opError(ctx, "break", o.Name, err)
}

// missed explains a break that found nothing to break: the holder has shown life
// since, or the lock went away, perhaps by a break that was not answered.
func (o *observer) missed(ctx context.Context, doubted bool) (broken bool, err error) {
	now, err := o.src.read(ctx, o.Name, newest)
	if err != nil {
		return false, o.src.opError(ctx, "break", o.Name, err)
	}
	if !now.free() && now.locked.Equal(o.doc.locked) {
		return false, source.ErrHeld
	}
	mark, _ := now.raw.Lookup(brokenField).StringValueOK()
	return doubted && mark != "" && mark == o.doc.token(), nil
}
