package pglock

import (
	"context"
	"time"

	"github.com/multilock/go/multilock/boottime"
	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/source/remote"
)

// sign is what a sign of life changes: each acquisition has a token of its own, and counts them.
type sign struct {
	token string
	beats int64
}

// observer watches one lock.
type observer struct {
	remote.Observer[sign]
	src   *Source
	snap  snapshot // of the last look
	usual time.Duration
}

// snapshot is a lock at one instant.
type snapshot struct {
	sign
	at      boottime.Instant // when it was there at the latest: what is doubtful counts for the holder
	held    bool
	record  string
	age     time.Duration // since the acquisition, by the server's clock
	silence time.Duration // since the last sign of life, likewise
	same    bool          // the server has not been started anew since
	first   string        // the mark of the first who waits, "" if nobody does
	waiter  string        // his record
}

// look are the statements that make a snapshot. They are simple: planning them costs more than
// anything else.
func (o *observer) look() []statement {
	return []statement{
		o.src.sql(`SELECT `+micros+`, token, beats, record, (extract(epoch FROM clock_timestamp() - acquired) * 1000000)::bigint,
			(extract(epoch FROM clock_timestamp() - seen) * 1000000)::bigint, server = pg_postmaster_start_time()
			FROM (SELECT) AS now LEFT JOIN @lock ON grp = $1 AND name = $2`, o.src.group, o.Name),
		o.src.sql(`SELECT mark, record FROM @wait w WHERE grp = $1 AND name = $2 AND `+waits+` ORDER BY id LIMIT 1`, o.src.group, o.Name),
	}
}

// note takes in what the answers have shown that end with those to a look, which was begun at start.
func (o *observer) note(answers []answer, start boottime.Instant) {
	r, waiters := answers[len(answers)-2].rows[0], answers[len(answers)-1].rows
	o.src.clock.set(r.number(0))
	if took := start.Elapsed(); o.usual == 0 || took < o.usual {
		o.usual = took
	}
	o.snap = snapshot{
		sign: sign{r.text(1), r.number(2)}, at: boottime.Now(), held: !r.isNull(1), record: r.text(3), age: r.micros(4), silence: r.micros(5), same: r.is(6),
	}
	if len(waiters) > 0 {
		o.snap.first, o.snap.waiter = waiters[0].text(0), waiters[0].text(1)
	}
	if !o.snap.held {
		o.Free()
		return
	}
	o.Record, _ = remote.DecodeRecord(o.Name, []byte(o.snap.record))
	o.Watch.Add(o.snap.sign, start, limitsFor(o.Record.Heartbeat, min(o.usual, o.Record.TTL/4)))
}

// shortestGap is how late a sample may be on a loaded machine.
const shortestGap = 500 * time.Millisecond

// limitsFor says how samples have to come of a holder that gives a sign of life every beat. They
// may take as long as they like: an answer counts up to when it was asked for. But between two of
// them a waiter makes an attempt, which takes as long as it is far to the server.
func limitsFor(beat, distance time.Duration) source.WatchLimits {
	return source.WatchLimits{Gap: max(beat, shortestGap) + 2*distance}
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
	return observer{Observer: remote.NewObserver[sign](s.Self(), name, patience), src: s}
}

// Look implements source.Observer.
func (o *observer) Look(ctx context.Context) (source.Sighting, error) {
	if err := o.ask(ctx); err != nil {
		return source.Sighting{}, err
	}
	return o.sight(), nil
}

func (o *observer) ask(ctx context.Context) error {
	start := boottime.Now()
	answers, err := o.src.do(ctx, "look", o.Name, o.look()...)
	if err != nil {
		o.Watch.Interrupt()
		return err
	}
	o.note(answers, start)
	return nil
}

// sight is what the snapshot shows, as far as it has gone on since.
func (o *observer) sight() source.Sighting {
	if !o.snap.held {
		return o.Free()
	}
	since := o.snap.at.Elapsed()
	e := o.Evidence()
	if e.Silence = o.snap.silence; e.Silence > 0 {
		e.Silence += since
	}
	same := o.snap.same
	seen := o.Conclude(e, func(e source.Evidence) source.Verdict { return judge(e, same) })
	seen.Age = max(o.snap.age+since, 0)
	seen.Silence = max(seen.Silence, 0)
	return seen
}

// judge decides whether a lock's holder counts as alive. It is a pure function. The server's clock
// tells for how long he was silent, unless another server has dated his last sign of life, or this
// one before it was started anew: just then he cannot give any, and the clock may be another one.
func judge(e source.Evidence, same bool) source.Verdict {
	if e.Record.Foreign != "" {
		return source.Verdict{State: source.StateHeld, Why: e.Record.Foreign + "; only break --force can clear it", Next: remote.Far}
	}
	return e.Judge(source.Rules{Near: remote.Near, Far: remote.Far, OwnClock: !same})
}

// Break implements source.Observer: another holder, or one that has shown life since, is out of reach.
func (o *observer) Break(ctx context.Context) error {
	if o.Verdict.State != source.StateDead {
		return source.ErrHeld
	}
	dead, why := o.Record, o.Verdict.Why
	broken, err := o.remove(ctx, o.snap.beats)
	if broken {
		// That the history could not be written is no reason to say anything else.
		_ = o.src.Record(ctx, o.src.Broke(dead, why))
	}
	return err
}

// Force implements source.Observer. It leaves the history to its caller, who knows why.
func (o *observer) Force(ctx context.Context) error {
	if !o.snap.held {
		return source.ErrFree
	}
	_, err := o.remove(ctx, -1)
	return err
}

// remove frees the lock that the last look saw, with so many signs of life if that is not negative,
// and leaves its token, so that its holder learns it even if the answer to his own release was lost.
func (o *observer) remove(ctx context.Context, beats int64) (broken bool, err error) {
	token := o.snap.token
	answers, doubt, err := o.src.repeat(ctx, o.src.timeout,
		o.src.sql(`WITH gone AS (DELETE FROM @lock WHERE grp = $1 AND name = $2 AND token = $3 AND (beats = $4::bigint OR $4::bigint < 0) RETURNING token)
			INSERT INTO @broken (grp, name, token) SELECT $1, $2, token FROM gone ON CONFLICT (grp, name) DO UPDATE SET token = excluded.token`,
			o.src.group, o.Name, token, beats),
		o.src.tellNext(o.Name),
		o.src.sql(`SELECT (SELECT token FROM @lock WHERE grp = $1 AND name = $2), (SELECT token FROM @broken WHERE grp = $1 AND name = $2)`, o.src.group, o.Name))
	if err != nil {
		return false, o.src.opError(ctx, "break", o.Name, err)
	}
	now := answers[2].rows[0]
	switch {
	case answers[0].changed > 0:
		return true, nil
	case now.text(0) == token:
		return false, source.ErrHeld
	}
	return doubt && now.text(1) == token, nil
}

// sightOfWaiter is a free lock that the first who waits is about to take. One that died here is
// taken out of the line; elsewhere his time has to end.
func (o *observer) sightOfWaiter(ctx context.Context) source.Sighting {
	o.Free()
	r, _ := remote.DecodeRecord(o.Name, []byte(o.snap.waiter))
	if r.Foreign == "" && r.Holder.Judge(o.src.Self()).Life == process.Gone {
		_, _ = o.src.do(ctx, "pass over who waits", o.Name, o.src.leave(o.snap.first), o.src.tellNext(o.Name))
	}
	r.Token = ""
	return source.Sighting{
		State: source.StateHeld, Record: r, Age: source.Unknown, Silence: source.Unknown, Why: "it is free, and who waits for it comes first", Next: remote.Near,
	}
}
