package remote

import (
	"time"

	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
)

// Sign is what a heartbeat changes: two holdings, or two signs of one holder, never have the same.
type Sign struct {
	Token string
	Count int64
}

// Witness is what an observer of one lock remembers from look to look, for embedding. What it
// breaks is what it saw last, and nothing else.
type Witness struct {
	Name    string
	Record  source.Record      // of the last look; zero if nobody held it
	Watch   source.Watch[Sign] // of the heartbeats
	Verdict source.Verdict     // of the last look
	self    process.Identity
	maxAge  time.Duration
	jobs    process.JobWatch
}

// NewWitness is one that has seen nothing yet.
func NewWitness(self process.Identity, name string, policy source.StalePolicy) Witness {
	return Witness{Name: name, self: self, maxAge: policy.MaxAge}
}

// Free is what is to be seen of a lock that nobody holds, or that an attempt of this very
// contender's holds: the next Try takes it.
func (w *Witness) Free() source.Sighting {
	w.Record, w.Verdict, w.Watch = source.Record{}, source.Verdict{}, source.Watch[Sign]{}
	return source.Sighting{State: source.StateFree, Age: source.Unknown, Silence: source.Unknown, Why: "nobody holds it"}
}

// Evidence is what this host knows of the holder, and what was seen of its heartbeats. For how
// long there was none by the source's own clock is left to who knows that.
func (w *Witness) Evidence() source.Evidence {
	e := source.Evidence{
		Record: w.Record, MaxAge: w.maxAge, Silence: source.Unknown, Unchanged: w.Watch.Unchanged(), Watched: w.Watch.Watched(),
	}
	e.AskHost(w.self)
	return e
}

// Conclude is what is to be seen of a lock that somebody holds. Before it is called dead, the
// host is searched for what is left of its job.
func (w *Witness) Conclude(e source.Evidence, judge func(source.Evidence) source.Verdict) source.Sighting {
	if w.Verdict = judge(e); w.Verdict.State != source.StateHeld || e.Holder.Life == process.Gone {
		if e.SearchJob(&w.jobs, w.self) {
			w.Verdict = judge(e)
		}
	}
	return source.Sighting{
		State: w.Verdict.State, Record: w.Record, Age: source.Unknown, Silence: e.Silence, Why: w.Verdict.Why, Next: w.Verdict.Next,
	}
}

// Close implements source.Observer.
func (w *Witness) Close() error { return nil }

// Near is how soon a process of this host may end, Far how soon a lock may have passed on: looks
// cost a server little, and more than a filesystem's.
const (
	Near = time.Second
	Far  = 5 * time.Second
)

// Judge decides whether a lock's holder counts as alive. It is a pure function. The observer's own
// clock decides, unless one clock has dated all: where servers have a clock each, and take each
// other's place, that of the server only tells whom to suspect. Nothing in a foreign record tells
// one holding from the next, so that it looked the same twice is no evidence of anything.
func Judge(e source.Evidence, oneClock bool) source.Verdict {
	if e.Record.Foreign != "" {
		return source.Verdict{State: source.StateHeld, Why: e.Record.Foreign + "; only break --force can clear it", Next: Far}
	}
	return e.Judge(source.Rules{Near: Near, Far: Far, OwnClock: !oneClock})
}
