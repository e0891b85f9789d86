package mongolock

import (
	"context"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/source/remote"
)

// lock is one lock in the collection.
type lock struct {
	src  *Source
	name string
	doc  document // of the last look
}

// Observe implements source.Source.
func (s *Source) Observe(ctx context.Context, name string, policy source.StalePolicy) (source.Observer, error) {
	o, err := remote.NewObserver(s, &lock{src: s, name: name}, name, policy)
	if err == nil {
		_, err = s.ready(ctx)
	}
	return o, err
}

// sign changes with every heartbeat: each acquisition has a token of its own, and counts its
// heartbeats.
func (d document) sign() remote.Sign {
	return remote.Sign{Token: d.locked.String(), Count: d.held.Beats}
}

// See implements remote.Lock. Before a heartbeat counts as overdue, the server's clock is read
// again.
func (l *lock) See(ctx context.Context) (remote.Seen, error) {
	doc, err := l.src.read(ctx, l.name, settled)
	if err != nil {
		return remote.Seen{}, l.src.opError(ctx, "look", l.name, err)
	}
	if l.doc = doc; doc.free() {
		return remote.Seen{}, nil
	}
	seen := remote.Seen{Held: true, Record: doc.record(), Sign: doc.sign(), Age: source.Unknown, Silence: source.Unknown}
	if seen.Record.Foreign != "" {
		return seen, nil
	}
	seen.Age, seen.Silence = l.src.since(ctx, doc.acquired, source.ClockCarried), l.src.since(ctx, doc.seen, source.ClockCarried)
	if seen.Silence < 0 || seen.Silence >= seen.Record.TTL {
		seen.Silence = l.src.since(ctx, doc.seen, source.ClockFresh)
	}
	return seen, nil
}

// since returns the time since a moment, both by the server's clock, of which a reading may be as
// old as age. If that clock cannot be read, the time is unknown, and the observer's own clock
// decides.
func (s *Source) since(ctx context.Context, moment time.Time, age time.Duration) time.Duration {
	if moment.IsZero() {
		return source.Unknown
	}
	now, err := s.now(ctx, age)
	if err != nil {
		return source.Unknown
	}
	passed := now.Sub(moment)
	if passed < 0 && passed > -2*source.ClockFresh {
		return 0 // an inaccuracy of the extrapolated clock
	}
	return passed
}

// Remove implements remote.Lock. The filter has the token, and with still the heartbeat count, of
// the last look. A document without a field locked is other data, and stays.
func (l *lock) Remove(ctx context.Context, _ remote.Seen, still bool) (remote.Freed, error) {
	if l.doc.locked.Type == 0 {
		return remote.Freed{}, &source.InvalidError{What: "lock name", Got: l.name, Why: l.doc.why + "; choose another name, or another collection"}
	}
	filter := l.by(l.doc.locked)
	if still {
		filter = append(filter, bson.E{Key: beatsField, Value: l.doc.held.Beats})
	}
	var mark []bson.E
	if token := l.doc.token(); token != "" {
		mark = append(mark, bson.E{Key: brokenField, Value: token})
	}
	return l.free(ctx, "break", l.doc.token(), filter, freeing(mark...))
}

// by returns the filter for the document while the holder has the lock.
func (l *lock) by(holder any, more ...bson.E) bson.D {
	return append(bson.D{{Key: idField, Value: l.src.id(l.name)}, {Key: lockedField, Value: holder}}, more...)
}

// free makes the update that frees a lock. If nothing was freed, it reads the document to report
// why: the lock is still held, or which lock was broken last.
func (l *lock) free(ctx context.Context, op, token string, filter, update bson.D) (freed remote.Freed, err error) {
	freed.Done, freed.Doubt, err = l.unlock(ctx, l.src.timeout, filter, update)
	if err == nil && !freed.Done {
		var now document
		now, err = l.src.read(ctx, l.name, newest)
		mark, _ := now.raw.Lookup(brokenField).StringValueOK()
		freed.Held, freed.Marked = !now.free() && now.locked.Equal(l.doc.locked), token != "" && mark == token
	}
	return freed, l.src.opError(ctx, op, l.name, err)
}

// unlock repeats the update after a lost reply, but sends nothing once ctx has ended.
func (l *lock) unlock(ctx context.Context, limit time.Duration, filter, update bson.D) (done, doubt bool, err error) {
	for range maxDoubts {
		if done, err = l.src.updateWithin(ctx, limit, filter, update); !inDoubt(err) {
			break
		}
		if doubt = true; ctx.Err() != nil {
			break
		}
	}
	return done, doubt, err
}
