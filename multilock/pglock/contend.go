package pglock

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/multilock/go/multilock/boottime"
	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/source/remote"
)

// contender is one contender's attempts at one lock. Each that is sent has a token of its own: one
// may be carried out long after its connection was lost, and must not bring a lock back to life
// that was broken since.
type contender struct {
	observer
	claim   source.Claim
	sent    map[string]attempt // those of which it is not known what became of them
	waiting *line              // nil as long as nobody waits
}

// attempt is one that was sent.
type attempt struct {
	at     boottime.Instant
	stored remote.Record
}

// Contend implements source.Source.
func (s *Source) Contend(_ context.Context, name string, claim source.Claim, patience source.Patience) (source.Contender, error) {
	if err := s.CheckName(name); err != nil {
		return nil, err
	}
	return &contender{observer: s.newObserver(name, patience), claim: claim.By(s.Self()), sent: map[string]attempt{}}, nil
}

// Try implements source.Contender. While it waits and hears nothing, it asks nobody.
func (c *contender) Try(ctx context.Context) (source.Lease, error) {
	if c.waiting.quiet() {
		return nil, source.ErrHeld
	}
	if _, err := c.src.ready(ctx); err != nil {
		return nil, err
	}
	var err error
	for range remote.MaxAgain {
		var lease source.Lease
		if lease, err = c.attempt(ctx); !errors.Is(err, remote.ErrAgain) {
			return lease, err
		}
		if over := context.Cause(ctx); over != nil {
			return nil, over
		}
	}
	return nil, c.src.opError(ctx, "acquire", c.Name, err)
}

// attempt is one transaction that takes the lock if it is free and nobody is ahead; otherwise it
// shows who is in the way, and who waits has his place in the line then.
func (c *contender) attempt(ctx context.Context) (source.Lease, error) {
	c.waiting.begin()
	start := boottime.Now()
	answers, doubt, err := c.src.carryOut(ctx, c.src.timeout, func() []statement { return c.src.safe(c.statements()) })
	switch {
	case err != nil && doubt && c.waiting == nil: // who waits finds out with the next attempt
		return nil, errors.Join(source.ErrUnsure, c.src.opError(ctx, "acquire", c.Name, err))
	case err != nil:
		return nil, c.src.opError(ctx, "acquire", c.Name, err)
	}
	c.note(answers, start)
	if a, ours := c.sent[c.snap.token]; ours {
		return c.acquired(a), nil // perhaps by an earlier attempt, whose answer was lost
	}
	maps.DeleteFunc(c.sent, func(_ string, a attempt) bool { // those that cannot be carried out any more
		return !doubt && a.at.Since(start) >= 0 || a.at.Elapsed() > 2*longestTry
	})
	if c.snap.held || c.snap.first != "" && (c.waiting == nil || c.snap.first != c.waiting.mark) {
		c.waiting.refused(c.snap)
		return nil, source.ErrHeld
	}
	return nil, remote.ErrAgain // it became free in between, or the server's clock was set forward
}

// statements are an attempt. What is carried out when nobody waits for the answer any more counts
// for nothing: the server's clock tells.
func (c *contender) statements() []statement {
	stored := remote.NewRecord(source.NewToken(), c.claim)
	c.sent[stored.Token] = attempt{boottime.Now(), stored}
	until, group, mark := c.src.clock.after(longestTry), c.src.group, ""
	taking := ` AND NOT EXISTS (SELECT FROM @lock WHERE grp = $1 AND name = $2)` // what is seen to be held need not be written to
	otherwise := `DO NOTHING`
	var all []statement
	if c.waiting != nil {
		// The row is locked by who finds it: its holder's release then comes after this, and tells.
		mark, taking, otherwise = c.waiting.mark, ``, `(grp, name) DO UPDATE SET token = l.token WHERE false`
		all = append(all, c.src.sql(`INSERT INTO @wait (mark, grp, name, channel, listener, record, seen)
			SELECT $1, $2, $3, $4, $5::int, $6, clock_timestamp() WHERE `+micros+` < $7::bigint
			ON CONFLICT (mark) DO UPDATE SET seen = excluded.seen, listener = excluded.listener`,
			mark, group, c.Name, c.src.crowd.channel, c.src.crowd.listener.Load(), stored.Encode(), until))
	}
	all = append(all, c.src.sql(`INSERT INTO @lock AS l (grp, name, token, record, acquired, seen, server)
		SELECT $1, $2, $3, $4, clock_timestamp(), clock_timestamp(), pg_postmaster_start_time() WHERE `+micros+` < $5::bigint`+taking+`
		AND NOT EXISTS (SELECT FROM @wait w WHERE w.grp = $1 AND w.name = $2 AND `+waits+` AND w.mark <> $6
			AND (w.id < (SELECT id FROM @wait WHERE mark = $6) OR $6 = ''))
		ON CONFLICT `+otherwise, group, c.Name, stored.Token, stored.Encode(), until, mark))
	if c.waiting != nil {
		all = append(all, c.src.sql(`DELETE FROM @wait WHERE mark = $1 AND EXISTS (SELECT FROM @lock WHERE grp = $2 AND name = $3 AND token = $4)`,
			mark, group, c.Name, stored.Token))
	}
	return append(all, c.look()...)
}

// acquired makes the lease of an attempt.
func (c *contender) acquired(a attempt) source.Lease {
	c.waiting.leave()
	c.waiting = nil
	clear(c.sent)
	return c.src.newLease(c.Name, a, c.claim)
}

// Look implements source.Observer. What the attempt just before has shown need not be asked for
// again, and nobody is asked as long as there is no news of a holder who may be alive.
func (c *contender) Look(ctx context.Context) (source.Sighting, error) {
	if fresh := !c.snap.at.IsZero() && c.snap.at.Elapsed() < justNow+c.usual; fresh || c.waiting.quiet() {
		if seen := c.sight(ctx); seen.State == source.StateHeld {
			return seen, nil
		}
	}
	if err := c.ask(ctx); err != nil {
		return source.Sighting{}, err
	}
	return c.sight(ctx), nil
}

// sight is what a snapshot shows to a contender: finding an attempt of its own in place it reports
// the lock as free, and the next Try takes it. One that is free is not had by who is not the first.
func (c *contender) sight(ctx context.Context) source.Sighting {
	if _, ours := c.sent[c.snap.token]; c.snap.held && ours {
		return c.Free()
	}
	if !c.snap.held && c.snap.first != "" && (c.waiting == nil || c.snap.first != c.waiting.mark) {
		return c.sightOfWaiter(ctx)
	}
	return c.observer.sight()
}

// Close takes back what is in doubt, and the place in the line. What is carried out even later has
// no effect, or is free after its TTL.
func (c *contender) Close() error {
	if c.waiting == nil && len(c.sent) == 0 {
		return nil
	}
	mark := ""
	if c.waiting != nil {
		mark = c.waiting.mark
		c.waiting.leave()
	}
	ctx, cancel := context.WithTimeout(context.Background(), leaving-remote.Grace)
	defer cancel()
	_, err := c.src.do(ctx, "withdraw", c.Name, c.src.leave(mark),
		c.src.sql(`DELETE FROM @lock WHERE grp = $1 AND name = $2 AND token = ANY ($3::text[])`, c.src.group, c.Name, slices.Collect(maps.Keys(c.sent))),
		c.src.tellNext(c.Name))
	c.waiting = nil
	clear(c.sent)
	return err
}
