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
	verdict verdict
	jobs    process.JobWatch
	usual   time.Duration // what the quickest look took, 0 before the first
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
		o.watch, o.record, o.verdict = source.Watch[sign]{}, source.Record{}, verdict{}
		return source.Sighting{State: source.StateFree, Age: source.Unknown, Silence: source.Unknown, Why: "nobody holds it"}, nil
	}
	o.record = doc.record()
	o.watch.Add(doc.sign(), start, limitsFor(o.record.Heartbeat, min(o.usual, o.record.TTL/4)))
	e := o.evidence(ctx, clockCarried)
	if o.verdict = judge(e); o.verdict.state == source.StateSuspect {
		e = o.evidence(ctx, clockFresh)
		o.verdict = judge(e)
	}
	if o.verdict.state != source.StateHeld || e.holder.Life == process.Gone {
		o.lookForJob(&e)
	}
	return source.Sighting{
		State: o.verdict.state, Record: o.record, Age: o.age(ctx), Silence: told(e.silence),
		Why: o.verdict.why, Next: o.verdict.next,
	}, nil
}

// evidence gathers what the verdict rests on, with a reading of the server's clock
// of at most the given age.
func (o *observer) evidence(ctx context.Context, age time.Duration) evidence {
	self := o.src.self
	e := evidence{
		record: o.record, maxAge: o.maxAge, silence: o.sinceServer(ctx, o.doc.seen, age),
		unchanged: o.watch.Unchanged(), watched: o.watch.Watched(),
	}
	if o.record.Token != "" {
		e.holder = o.record.Holder.Judge(self)
	}
	if o.record.Job {
		e.job = o.record.Group.Judge(self)
	}
	return e
}

// lookForJob looks for what a job may have left outside of its group before its lock
// is called dead: at all processes of the host, so only then.
func (o *observer) lookForJob(e *evidence) {
	if o.record.Job && e.job.Life != process.Alive {
		e.job = o.jobs.Judge(o.record.Holder.Identity, o.record.Token, o.src.self)
		o.verdict = judge(*e)
	}
}

// sinceServer is the time since a moment, both by the server's clock. If that cannot
// be read the observer's own has to do.
func (o *observer) sinceServer(ctx context.Context, moment time.Time, age time.Duration) time.Duration {
	if o.record.Foreign != "" || moment.IsZero() {
		return source.Unknown
	}
	now, err := o.src.clock.now(ctx, o.src, age)
	if err != nil {
		return source.Unknown
	}
	passed := now.Sub(moment)
	if passed < 0 && passed > -clockSlack {
		return 0 // the clock was read before, and carried forward
	}
	return passed
}

func (o *observer) age(ctx context.Context) time.Duration {
	return told(o.sinceServer(ctx, o.doc.acquired, clockCarried))
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
	if o.verdict.state != source.StateDead {
		return source.ErrHeld
	}
	dead, why := o.record, o.verdict.why
	broken, err := o.remove(ctx, bson.E{Key: beatsField, Value: o.watch.Last().beats})
	if broken {
		// The lock is broken; that the history could not be written is no reason to say
		// anything else.
		_ = o.src.Record(ctx, []source.Event{o.src.brokeEvent(dead, why)})
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
