package pglock

import (
	"context"
	"maps"

	"github.com/multilock/go/multilock/boottime"
	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/source/remote"
)

// contender is one contender's attempts at one lock. Each that is sent has a token of its own: one
// may be carried out long after its connection was lost, and must not bring a lock back to life
// that was broken since.
type contender struct {
	*remote.Contender
	lock
	sent    map[string]attempt // those of which it is not known what became of them
	waiting *line              // nil as long as nobody waits
}

// attempt is one that was sent.
type attempt struct {
	at     boottime.Instant
	stored remote.Record
}

// Contend implements source.Source.
func (s *Source) Contend(_ context.Context, name string, claim source.Claim, policy source.StalePolicy) (_ source.Contender, err error) {
	c := &contender{lock: lock{s, name}, sent: map[string]attempt{}}
	c.Contender, err = remote.NewContender(s, c, name, claim, policy)
	return c, err
}

// Attempt implements remote.Attempts: one transaction that takes the lock if it is free and nobody is
// ahead; otherwise it shows who is in the way, and who waits has his place in the line then.
func (c *contender) Attempt(ctx context.Context) (source.Lease, error) {
	if _, err := c.src.ready(ctx, false); err != nil {
		return nil, err
	}
	c.News.Begin()
	start := boottime.Now()
	answers, doubt, err := c.src.carryOut(ctx, c.src.timeout, func() []statement { return c.src.safe(c.statements()) })
	if err != nil {
		return nil, c.Failed(c.src.opError(ctx, remote.Acquire, c.name, err), doubt)
	}
	seen := c.own(c.seen(answers))
	c.Note(start, seen)
	if seen.Ours { // perhaps by an earlier attempt, whose answer was lost
		return c.acquired(c.sent[seen.Sign.Token]), nil
	}
	maps.DeleteFunc(c.sent, func(_ string, a attempt) bool { // those that cannot be carried out any more
		return !doubt && a.at.Since(start) >= 0 || a.at.Elapsed() > 2*longestTry
	})
	if seen.Held || seen.Waiter != nil {
		c.waiting.refused(seen.Sign.Token)
		return nil, source.ErrHeld
	}
	return nil, remote.ErrAgain // it became free in between, or the server's clock was set forward
}

// statements are an attempt. What is carried out when nobody waits for the answer any more counts
// for nothing: the server's clock tells.
func (c *contender) statements() []statement {
	stored := remote.NewRecord(source.NewToken(), c.Claim)
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
			mark, group, c.name, c.src.crowd.channel, c.src.crowd.listener.Load(), stored.Encode(), until))
	}
	all = append(all, c.src.sql(`INSERT INTO @lock AS l (grp, name, token, record, acquired, seen, server)
		SELECT $1, $2, $3, $4, clock_timestamp(), clock_timestamp(), pg_postmaster_start_time() WHERE `+micros+` < $5::bigint`+taking+`
		AND NOT EXISTS (SELECT FROM @wait w WHERE w.grp = $1 AND w.name = $2 AND `+waits+` AND w.mark <> $6
			AND (w.id < (SELECT id FROM @wait WHERE mark = $6) OR $6 = ''))
		ON CONFLICT `+otherwise, group, c.name, stored.Token, stored.Encode(), until, mark))
	if c.waiting != nil {
		all = append(all, c.src.sql(`DELETE FROM @wait WHERE mark = $1 AND EXISTS (SELECT FROM @lock WHERE grp = $2 AND name = $3 AND token = $4)`,
			mark, group, c.name, stored.Token))
	}
	return append(all, c.look()...)
}

// acquired makes the lease of an attempt.
func (c *contender) acquired(a attempt) source.Lease {
	c.leaveLine()
	clear(c.sent)
	l := &lease{lock: c.lock, token: a.stored.Token}
	l.Lease = c.Acquired(l, a.stored, a.at, 0)
	return l
}

func (c *contender) leaveLine() {
	c.waiting.leave()
	c.waiting, c.News = nil, nil
}

// See implements remote.Lock.
func (c *contender) See(ctx context.Context) (remote.Seen, error) {
	seen, err := c.lock.See(ctx)
	return c.own(seen), err
}

// own finds the contender's own in what was seen.
func (c *contender) own(seen remote.Seen) remote.Seen {
	_, seen.Ours = c.sent[seen.Sign.Token]
	if w := seen.Waiter; w != nil && c.waiting != nil && w.ID == c.waiting.mark {
		seen.Waiter = nil
	}
	return seen
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
	}
	c.leaveLine()
	ctx, cancel := context.WithTimeout(context.Background(), leaving-remote.Grace)
	defer cancel()
	all := []statement{c.src.leave(mark)}
	for token := range c.sent {
		all = append(all, c.src.sql(`DELETE FROM @lock WHERE`+mine, c.src.group, c.name, token))
	}
	clear(c.sent)
	_, err := c.src.do(ctx, "withdraw", c.name, append(all, c.src.tellNext(c.name))...)
	return err
}
