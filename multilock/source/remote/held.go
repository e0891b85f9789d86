package remote

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
)

// A lock is an entry that its contender creates: its record. The revision that created it names the
// acquisition, and every write by its holder asks for it.

// tableLock is one lock in a table.
type tableLock struct {
	table *Table
	name  string
}

// Observe implements source.Source.
func (t *Table) Observe(_ context.Context, name string, policy source.StalePolicy) (source.Observer, error) {
	return NewObserver(t, tableLock{t, name}, name, policy)
}

func (l tableLock) key(kind string) string { return l.table.key(kind, l.name) }

// tickets is what all tickets begin with.
func (l tableLock) tickets() string { return l.key(waitKind) + separator }

// looks are the ranges that show a lock: its entry, and the first ticket.
func (l tableLock) looks() []Range {
	return []Range{{Key: l.key(lockKind), Life: l.key(lifeKind)}, {Key: l.tickets(), Below: true, Oldest: true, Limit: 1, Alive: true}}
}

// seen is what a transaction has shown that began with looks.
func (l tableLock) seen(a Applied) Seen {
	seen := Seen{Age: source.Unknown, Silence: source.Unknown}
	if e := a.first(0); e != nil {
		r, stored := DecodeRecord(l.name, e.Value)
		seen = Seen{Held: true, Record: r, Lease: e.Life, Age: e.Age, Silence: e.Silence, OneClock: e.OneClock, entry: e, token: stored.Token}
		seen.Sign = Sign{Token: fmt.Sprint(stored.Token, "@", e.Created), Count: e.Beats}
	}
	if e := a.first(1); e != nil {
		seen.Waiter = l.waiter(*e)
	}
	return seen
}

func (l tableLock) waiter(ticket Entry) *Waiter {
	r, _ := DecodeRecord(l.name, ticket.Value)
	w := &Waiter{ID: ticket.Key, Record: r, Leave: func(ctx context.Context) {
		_, _ = l.table.store.Apply(ctx, Txn{
			If:   []Cond{{Key: ticket.Key, Field: IfCreated, Number: ticket.Created}},
			Then: []Write{{Key: ticket.Key, Tell: l.tickets()}},
		})
	}}
	if ticket.Pulse == 0 { // it would stay there for ever
		w.Why = fmt.Sprintf("an entry is in the way that multilock has not made: remove %q", ticket.Key)
	}
	return w
}

// See implements Lock.
func (l tableLock) See(ctx context.Context) (Seen, error) {
	a, err := l.table.show(ctx, "look", l.name, l.looks()...)
	if err != nil {
		return Seen{}, err
	}
	return l.seen(a), nil
}

// freeing removes the lock that a revision created.
func (l tableLock) freeing(created int64) Txn {
	return Txn{
		If:   []Cond{{Key: l.key(lockKind), Field: IfCreated, Number: created}},
		Then: []Write{{Key: l.key(lockKind), Life: l.key(lifeKind), Tell: l.tickets()}},
		Show: []Range{{Key: l.key(lockKind)}, {Key: l.key(brokeKind)}},
	}
}

// Remove implements Lock. It asks for the acquisition that was seen; and if that is dead for its silence, for
// the silence to last. In the end it stops the holder's pulse, however late that is: no other lock will
// hang on it.
func (l tableLock) Remove(ctx context.Context, seen Seen, still bool) (Freed, error) {
	txn := l.freeing(seen.entry.Created)
	if still && seen.entry.Life != process.Alive {
		txn.If = append(txn.If, Cond{Key: l.key(lockKind), Field: IfSilent, Number: seen.entry.Beats, Life: l.key(lifeKind)})
	}
	if seen.token != "" {
		txn.Then = append(txn.Then, Write{Key: l.key(brokeKind), Value: []byte(seen.token)})
	}
	freed, err := l.free(ctx, "break", txn, seen.entry.Created, seen.token)
	if (freed.Done || freed.Doubt && freed.Marked) && seen.entry.Pulse != 0 {
		l.table.store.Stop(seen.entry.Pulse)
	}
	return freed, err
}

// free frees the lock of one acquisition.
func (l tableLock) free(ctx context.Context, op string, txn Txn, created int64, token string) (Freed, error) {
	a, err := l.table.apply(ctx, op, l.name, txn)
	if err != nil {
		return Freed{Doubt: a.Doubt}, err
	}
	now, mark := a.first(0), a.first(1)
	return Freed{
		Done: a.Done, Held: !a.Done && now != nil && now.Created == created, Doubt: a.Doubt,
		Marked: !a.Done && mark != nil && token != "" && string(mark.Value) == token,
	}, nil
}

// Held is a lock of a table that is held.
type Held struct {
	*Lease
	tableLock
	Lock, Life string // its keys: see Write
	Created    int64  // the revision that created it
	token      string
	pulse      Pulse
}

var _ source.Committer = (*Held)(nil)

var errGone = errors.New("it is not there any more: the lock was broken or removed, or the server has lost it")

// Gone implements Hold.
func (h *Held) Gone() error { return errGone }

func (h *Held) isMine(e *Entry) bool { return e != nil && e.Created == h.Created }

// Beat implements Hold.
func (h *Held) Beat(ctx context.Context, limit time.Duration) (mine bool, err error) {
	mine, err = h.pulse.Beat(ctx, h, limit)
	return mine, h.table.store.OpError(ctx, "renew", h.name, err)
}

// Free implements Hold.
func (h *Held) Free(ctx context.Context) (Freed, error) {
	tainted := h.pulse.Tainted()
	if tainted { // what may still come has no pulse then
		h.pulse.Close(false)
	}
	freed, err := h.free(ctx, "release", h.freeing(h.Created), h.Created, h.token)
	if freed.Done && !tainted {
		h.pulse.Close(true)
	}
	return freed, err
}

// Write implements Hold. The last result of a name is an entry beside its lock: nobody can take the lock and
// not see it.
func (h *Held) Write(ctx context.Context, op string, c Change) (Shown, error) {
	key, result := h.Lock, h.key(resultKind)
	txn := Txn{
		If:   []Cond{{Key: key, Field: IfCreated, Number: h.Created}, {Key: key, Field: IfChanged, Number: c.Before}},
		Then: []Write{{Key: key, Value: []byte(c.Record.Encode())}},
		Show: []Range{{Key: key}, {Key: result}},
	}
	if c.Forget || c.Result != nil {
		txn.Then = append(txn.Then, Write{Key: result, Value: c.Result}, h.table.touch())
	}
	a, err := h.table.apply(ctx, op, h.name, txn)
	if err != nil {
		return Shown{Doubt: a.Doubt}, err
	}
	if now := a.first(0); h.isMine(now) {
		_, stored := DecodeRecord(h.name, now.Value)
		return Shown{Mine: true, Step: stored.Step, Left: now.Changed, Doubt: a.Doubt}, nil
	}
	return Shown{Done: c.Result != nil && string(valueOf(a.first(1))) == string(c.Result), Doubt: a.Doubt}, nil
}

// ReadResult implements Hold. With the result there comes a sign of life, which no server confirms that was
// replaced.
func (h *Held) ReadResult(ctx context.Context) (result []byte, mine bool, err error) {
	a, err := h.table.apply(ctx, "ask for the result", h.name, Txn{
		Then: []Write{{Key: h.Lock, Beat: h.Created}},
		Show: []Range{{Key: h.Lock, Keys: true}, {Key: h.key(resultKind)}},
	})
	if err != nil {
		return nil, false, err
	}
	return valueOf(a.first(1)), h.isMine(a.first(0)), nil
}

// Fence implements source.Lease: the number is the revision in which the record was written for it. No other
// write has it, and all that come later have larger ones.
func (h *Held) Fence(ctx context.Context) (uint64, error) {
	revision, err := h.Change(ctx, "draw a fence number", func(*Change) {})
	return uint64(max(revision, 0)), err //nolint:gosec // not negative
}
