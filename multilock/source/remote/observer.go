package remote

import (
	"time"

	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
)

// Observer is what an observer of one lock remembers from look to look, for embedding. What it
// breaks is what it saw last, and nothing else. S is what a sign of life changes.
type Observer[S comparable] struct {
	Name    string
	Record  source.Record   // of the last look; zero if nobody held it
	Watch   source.Watch[S] // of the signs of life
	Verdict source.Verdict  // of the last look
	self    process.Identity
	maxAge  time.Duration
	jobs    process.JobWatch
}

// NewObserver is one that has seen nothing yet.
func NewObserver[S comparable](self process.Identity, name string, patience source.Patience) Observer[S] {
	return Observer[S]{Name: name, self: self, maxAge: patience.MaxAge}
}

// Free is what is to be seen of a lock that nobody holds, or that an attempt of this very
// contender's holds: the next Try takes it.
func (o *Observer[S]) Free() source.Sighting {
	o.Record, o.Verdict, o.Watch = source.Record{}, source.Verdict{}, source.Watch[S]{}
	return source.Sighting{State: source.StateFree, Age: source.Unknown, Silence: source.Unknown, Why: "nobody holds it"}
}

// Evidence is what this host knows of the holder, and what was seen of its signs of life. For how
// long there was none by the source's own clock is left to its author.
func (o *Observer[S]) Evidence() source.Evidence {
	e := source.Evidence{
		Record: o.Record, MaxAge: o.maxAge, Silence: source.Unknown, Unchanged: o.Watch.Unchanged(), Watched: o.Watch.Watched(),
	}
	e.AskHost(o.self)
	return e
}

// Conclude is what is to be seen of a lock that somebody holds. Before it is called dead, the
// host is searched for what is left of its job.
func (o *Observer[S]) Conclude(e source.Evidence, judge func(source.Evidence) source.Verdict) source.Sighting {
	if o.Verdict = judge(e); o.Verdict.State != source.StateHeld || e.Holder.Life == process.Gone {
		if e.SearchJob(&o.jobs, o.self) {
			o.Verdict = judge(e)
		}
	}
	return source.Sighting{
		State: o.Verdict.State, Record: o.Record, Age: source.Unknown, Silence: e.Silence, Why: o.Verdict.Why, Next: o.Verdict.Next,
	}
}

// Close implements source.Observer.
func (o *Observer[S]) Close() error { return nil }

// Near is how soon a process of this host may end, Far how soon a lock may have passed on: looks
// cost a server little, and more than a filesystem's.
const (
	Near = time.Second
	Far  = 5 * time.Second
)

// Judge decides whether a lock's holder counts as alive where servers have a clock each: the
// observer's own decides. It is a pure function. Nothing in a foreign record tells one holding
// from the next, so that it looked the same twice is no evidence of anything.
func Judge(e source.Evidence) source.Verdict {
	if e.Record.Foreign != "" {
		return source.Verdict{State: source.StateHeld, Why: e.Record.Foreign + "; only break --force can clear it", Next: Far}
	}
	return e.Judge(source.Rules{Near: Near, Far: Far, OwnClock: true})
}
