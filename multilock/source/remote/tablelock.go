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
// acquisition. Every write by the holder has that revision as a condition, or the one of its own last change.

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

// tickets is the prefix of all tickets.
func (l tableLock) tickets() string { return l.key(waitKind) + separator }

// looks returns the ranges that show a lock: its entry, and the first ticket.
func (l tableLock) looks() []Range {
	return []Range{{Key: l.key(lockKind), Life: l.key(lifeKind)}, {Key: l.tickets(), Below: true, Oldest: true, Limit: 1, Alive: true}}
}

// seen returns the state of the lock from a transaction whose first ranges are those of looks.
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
	if ticket.Pulse == 0 { // it never expires
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

// freeing returns the transaction that removes the lock which a revision created.
func (l tableLock) freeing(created int64) Txn {
	return Txn{
		If:   []Cond{{Key: l.key(lockKind), Field: IfCreated, Number: created}},
		Then: []Write{{Key: l.key(lockKind), Life: l.key(lifeKind), Tell: l.tickets()}},
		Show: []Range{{Key: l.key(lockKind)}, {Key: l.key(brokeKind)}},
	}
}

// Remove implements Lock. Its condition is the observed acquisition and, if that counts as dead
// because it sent no heartbeat, that it has sent none since. Stopping the holder's pulse afterwards
// may be late: no other lock uses it.
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

// free applies a transaction of freeing.
func (l tableLock) free(ctx context.Context, op string, txn Txn, created int64, token string) (Freed, error) {
	a, err := l.table.apply(ctx, op, l.name, txn)
	if err != nil {
		return Freed{Doubt: a.Doubt}, err
	}
	now, mark := a.first(0), a.first(1)
	marked := mark != nil && token != "" && string(mark.Value) == token
	return Freed{Done: a.Done, Held: now != nil && now.Created == created, Marked: marked, Doubt: a.Doubt}, nil
}

// TableLease is a held lock of a table.
type TableLease struct {
	*Lease
	tableLock
	Lock, Life string // the lock's keys: see Write
	Created    int64  // the revision that created it
	token      string
	pulse      Pulse
}

var _ source.Committer = (*TableLease)(nil)

var errGone = errors.New("it is gone: the lock was broken or removed, or the server has lost it")

// Gone implements Hold.
func (h *TableLease) Gone() error { return errGone }

func (h *TableLease) isMine(e *Entry) bool { return e != nil && e.Created == h.Created }

// Beat implements Hold.
func (h *TableLease) Beat(ctx context.Context, limit time.Duration) (mine bool, err error) {
	mine, err = h.pulse.Beat(ctx, h, limit)
	return mine, h.table.store.OpError(ctx, "renew", h.name, err)
}

// Free implements Hold.
func (h *TableLease) Free(ctx context.Context) (Freed, error) {
	tainted := h.pulse.Tainted()
	if tainted { // so that a pending write finds no pulse
		h.pulse.Close(false)
	}
	freed, err := h.free(ctx, "release", h.freeing(h.Created), h.Created, h.token)
	if freed.Done && !tainted {
		h.pulse.Close(true)
	}
	return freed, err
}

// Write implements Hold. One transaction verifies that the lock is held and writes the result.
func (h *TableLease) Write(ctx context.Context, op string, c Change) (Shown, error) {
	key, result := h.Lock, h.key(resultKind)
	txn := Txn{
		If:   []Cond{{Key: key, Field: IfChanged, Number: c.Before}}, // a revision of this acquisition
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

// ReadResult implements Hold. It includes a heartbeat, which a server that was replaced cannot
// confirm.
func (h *TableLease) ReadResult(ctx context.Context) (result []byte, mine bool, err error) {
	a, err := h.table.apply(ctx, "ask for the result", h.name, Txn{
		Then: []Write{{Key: h.Lock, Beat: h.Created}},
		Show: []Range{{Key: h.Lock, Keys: true}, {Key: h.key(resultKind)}},
	})
	if err != nil {
		return nil, false, err
	}
	return valueOf(a.first(1)), h.isMine(a.first(0)), nil
}

// Fence implements source.Lease. It rewrites the record: the number is the revision of that write.
func (h *TableLease) Fence(ctx context.Context) (uint64, error) {
	revision, err := h.Change(ctx, "draw a fence number", func(*Change) {})
	return uint64(max(revision, 0)), err //nolint:gosec // not negative
}
