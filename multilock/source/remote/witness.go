package remote

import (
	"time"

	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
)

// Sign is a value that every heartbeat changes: no two acquisitions, and no two heartbeats of one
// holder, have the same.
type Sign struct {
	Token string
	Count int64
}

// Witness is the state of an observer of one lock, for embedding.
type Witness struct {
	Name       string
	Record     source.Record      // of the last look; zero if the lock was free
	Watch      source.Watch[Sign] // of the heartbeats
	Assessment source.Assessment  // of the last look
	self       process.Identity
	maxAge     time.Duration
	jobs       process.JobWatch
}

// NewWitness returns a Witness without observations.
func NewWitness(self process.Identity, name string, policy source.StalePolicy) Witness {
	return Witness{Name: name, self: self, maxAge: policy.MaxAge}
}

// Free is the observation of a lock that is free, or that an attempt of this contender holds: the next
// Try takes it.
func (w *Witness) Free() source.Observation {
	w.Record, w.Assessment, w.Watch = source.Record{}, source.Assessment{}, source.Watch[Sign]{}
	return source.Observation{State: source.StateFree, Age: source.Unknown, Silence: source.Unknown, Why: "no process holds it"}
}

// Evidence returns what this host knows of the holder, and the observed heartbeats. The caller adds
// the time without a heartbeat by the source's clock, if it knows it.
func (w *Witness) Evidence() source.Evidence {
	e := source.Evidence{
		Record: w.Record, MaxAge: w.maxAge, Silence: source.Unknown, Unchanged: w.Watch.Unchanged(), Watched: w.Watch.Watched(),
	}
	e.AskHost(w.self)
	return e
}

// Conclude assesses a held lock. Before it is called dead, the host is searched for processes of
// its job.
func (w *Witness) Conclude(e source.Evidence, judge func(source.Evidence) source.Assessment) source.Observation {
	if w.Assessment = judge(e); w.Assessment.State != source.StateHeld || e.Holder.Life == process.Gone {
		if e.SearchJob(&w.jobs, w.self) {
			w.Assessment = judge(e)
		}
	}
	return source.Observation{
		State: w.Assessment.State, Record: w.Record, Age: source.Unknown, Silence: e.Silence, Why: w.Assessment.Why, Next: w.Assessment.Next,
	}
}

// Close implements source.Observer.
func (w *Witness) Close() error { return nil }

// Near is when to look again while a process of this host may end, Far because the lock may have
// another holder: a look costs a server little, but more than a filesystem.
const (
	Near = time.Second
	Far  = 5 * time.Second
)

// Judge assesses whether a lock's holder is alive. It is a pure function. The observer's own clock
// decides, unless one clock has dated everything: with servers that have separate clocks and fail
// over to each other, the server's clock is only good for suspicion. A foreign record does not
// identify the acquisition, so equal samples are no evidence.
func Judge(e source.Evidence, oneClock bool) source.Assessment {
	if e.Record.Foreign != "" {
		return source.Assessment{State: source.StateHeld, Why: e.Record.Foreign + "; only break --force can clear it", Next: Far}
	}
	return e.Judge(source.Rules{Near: Near, Far: Far, OwnClock: !oneClock})
}
