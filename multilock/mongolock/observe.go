package mongolock

import (
	"context"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multilock/go/multilock/boottime"
	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
)

// observer watches one lock. What it breaks is what it saw last, and nothing else.
type observer struct {
	src    *Source
	name   string
	maxAge time.Duration

	doc     document // of the last look
	record  source.Record
	watch   source.Watch[sign]
	verdict source.Verdict
	jobs    process.JobWatch
	usual   time.Duration // what the quickest look took, 0 before the first
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
	if err := CheckName(name); err != nil {
		return nil, err
	}
	if _, err := s.ready(ctx); err != nil {
		return nil, err
	}
	o := s.newObserver(name, patience)
	return &o, nil
}

func (s *Source) newObserver(name string, patience source.Patience) observer {
	return observer{src: s, name: name, maxAge: patience.MaxAge, doc: document{name: name}}
}

// Look implements source.Observer.
func (o *observer) Look(ctx context.Context) (source.Sighting, error) {
	start := boottime.Now()
	doc, err := o.src.read(ctx, o.name, settled)
	if err != nil {
		o.watch.Interrupt()
		return source.Sighting{}, o.src.opError(ctx, "look", o.name, err)
	}
	if took := start.Elapsed(); o.usual == 0 || took < o.usual {
		o.usual = took
	}
	o.doc = doc
	if doc.free() {
		o.watch, o.record, o.verdict = source.Watch[sign]{}, source.Record{}, source.Verdict{}
		return source.Sighting{State: source.StateFree, Age: source.Unknown, Silence: source.Unknown, Why: "nobody holds it"}, nil
	}
	o.record = doc.record()
	o.watch.Add(doc.sign(), start, limitsFor(o.record.Heartbeat, min(o.usual, o.record.TTL/4)))
	e := o.evidence(ctx, source.ClockCarried)
	if o.verdict = judge(e); o.verdict.State == source.StateSuspect {
		e = o.evidence(ctx, source.ClockFresh)
		o.verdict = judge(e)
	}
	if o.verdict.State != source.StateHeld || e.Holder.Life == process.Gone {
		if e.SearchJob(&o.jobs, o.src.self) {
			o.verdict = judge(e)
		}
	}
	return source.Sighting{
		State: o.verdict.State, Record: o.record, Age: o.age(ctx), Silence: told(e.Silence),
		Why: o.verdict.Why, Next: o.verdict.Next,
	}, nil
}

// evidence gathers what the verdict rests on, with a reading of the server's clock
// of at most the given age.
func (o *observer) evidence(ctx context.Context, age time.Duration) source.Evidence {
	e := source.Evidence{
		Record: o.record, MaxAge: o.maxAge, Silence: o.sinceServer(ctx, o.doc.seen, age),
		Unchanged: o.watch.Unchanged(), Watched: o.watch.Watched(),
	}
	e.AskHost(o.src.self)
	return e
}

// judge decides whether a lock's holder counts as alive. It is a pure function. The
// servers of a set have a clock each, and in a failover the holder cannot give a sign of
// life just when another clock begins to count: so the observer's own decides.
func judge(e source.Evidence) source.Verdict {
	if e.Record.Foreign != "" {
		// Nothing in such a document tells one holding from the next, so that it looked
		// the same twice is no evidence of anything.
		return source.Verdict{State: source.StateHeld, Why: e.Record.Foreign + "; only break --force can clear it", Next: glance}
	}
	return e.Judge(source.Rules{Near: nearGlance, Far: glance, OwnClock: true})
}

// Looks cost the server little, and more than a file system's.
const (
	nearGlance = time.Second
	glance     = 5 * time.Second
)

// sinceServer is the time since a moment, both by the server's clock. If that cannot
// be read the observer's own has to do.
func (o *observer) sinceServer(ctx context.Context, moment time.Time, age time.Duration) time.Duration {
	if o.record.Foreign != "" || moment.IsZero() {
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

func (o *observer) age(ctx context.Context) time.Duration {
	return told(o.sinceServer(ctx, o.doc.acquired, source.ClockCarried))
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
	if o.verdict.State != source.StateDead {
		return source.ErrHeld
	}
	dead, why := o.record, o.verdict.Why
	broken, err := o.remove(ctx, bson.E{Key: beatsField, Value: o.watch.Last().beats})
	if broken {
		// The lock is broken; that the history could not be written is no reason to say
		// anything else.
		_ = o.src.Record(ctx, []source.Event{source.BrokeEvent(dead, o.src.self, o.src.user, why)})
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
		return &source.InvalidError{What: "lock name", Got: o.name, Why: o.record.Foreign + "; choose another name, or another collection"}
	}
	_, err := o.remove(ctx)
	return err
}

// remove frees the lock that the last look saw, in one conditional write. After a
// reply that was lost it does so once more: whoever finds nothing then has broken
// the lock, or somebody else has.
func (o *observer) remove(ctx context.Context, seen ...bson.E) (broken bool, err error) {
	filter := append(bson.D{{Key: idField, Value: o.src.id(o.name)}, {Key: lockedField, Value: o.doc.locked}}, seen...)
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
			return false, o.src.opError(ctx, "break", o.name, err)
		}
		doubted = true
	}
	return false, o.src.opError(ctx, "break", o.name, err)
}

// missed explains a break that found nothing to break: the holder has shown life
// since, or the lock went away, perhaps by a break that was not answered.
func (o *observer) missed(ctx context.Context, doubted bool) (broken bool, err error) {
	now, err := o.src.read(ctx, o.name, newest)
	if err != nil {
		return false, o.src.opError(ctx, "break", o.name, err)
	}
	if !now.free() && now.locked.Equal(o.doc.locked) {
		return false, source.ErrHeld
	}
	mark, _ := now.raw.Lookup(brokenField).StringValueOK()
	return doubted && mark != "" && mark == o.doc.token(), nil
}

// Close implements source.Observer.
func (o *observer) Close() error { return nil }
