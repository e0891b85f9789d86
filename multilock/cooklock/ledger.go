package cooklock

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/multilock/go/multilock/source"

	"github.com/multilock/go/multilock"
)

// LedgerRegister is a register made of a lock and of the result of its name: the holder of the lock
// reads the result, and commits the next one. That is an atomic set-and-get, because a commit
// succeeds only while the lock is held (source.Committer): it replaces the result that was read
// under the lock, however long the holder was stopped in between.
//
// The outcome of a swap depends on no clock. Time, the lock's TTL, only determines when the lock of
// an unfinished swap may be broken.
type LedgerRegister struct {
	Ledger source.Ledger
	Name   string
	// TTL is the TTL of the lock under which a swap is made.
	TTL time.Duration
}

var _ Register = LedgerRegister{}

// Swap implements Register. It does not wait: the error is a *multilock.HeldError while another
// process swaps. If a process dies during a swap, its lock is free as that of any dead holder: at
// once on the same host, and for other hosts after its TTL.
func (r LedgerRegister) Swap(ctx context.Context, v []byte) (old []byte, n uint64, err error) {
	if len(v) == 0 || len(v) > MaxValue {
		return nil, 0, &source.InvalidError{What: "value", Got: fmt.Sprintf("%d bytes", len(v)), Why: fmt.Sprintf("must have 1 to %d bytes", MaxValue)}
	}
	lock, err := multilock.TryAcquire(ctx, r.Ledger, r.Name, multilock.Options{TTL: r.TTL, Command: "a swap of the cooking lock"})
	if err != nil {
		return nil, 0, fmt.Errorf("acquire the lock for a swap, with a ttl of %s: %w", r.TTL, err)
	}
	defer release(context.WithoutCancel(ctx), lock)
	old, n, err = r.content(lock.Outcome(ctx))
	if errors.Is(err, source.ErrLost) || lock.Remaining() == 0 { // a commit would not start
		return nil, 0, fmt.Errorf("%w: this process stood still before its swap, for so long that others may have taken it for dead", source.ErrHeld)
	}
	if err != nil {
		return nil, 0, err
	}
	err = lock.Commit(ctx, source.Result{
		By: lock.Record().Holder.Identity, Attempt: int(n) + 1, Final: true, Start: time.Now(), //nolint:gosec // never that many swaps
		Why: registerHead + base64.StdEncoding.EncodeToString(v),
	})
	if errors.Is(err, source.ErrLost) {
		// The register has another value now, but this one may have been stored and replaced.
		err = fmt.Errorf("%w: the swap was interrupted for so long that others took its process for dead: %s", source.ErrUnsure, err.Error())
	}
	return old, n + 1, err
}

// release releases the lock after a swap, whether it took effect or not. If that fails, the lock
// blocks other processes until its TTL has passed.
func release(ctx context.Context, lock *multilock.Lock) {
	for range releaseTries {
		if err := lock.Release(ctx); !errors.Is(err, source.ErrUnsure) {
			return
		}
	}
}

const releaseTries = 3

// Peek implements Register.
func (r LedgerRegister) Peek(ctx context.Context) ([]byte, uint64, error) {
	return r.content(r.Ledger.Result(ctx, r.Name))
}

// registerHead is the prefix of a register's value in its result.
const registerHead = "register 1 "

// content decodes a register's result. A result that is not a register is other data, and must not
// be replaced.
func (r LedgerRegister) content(result source.Result, err error) ([]byte, uint64, error) {
	if errors.Is(err, source.ErrNoResult) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	text, ours := strings.CutPrefix(result.Why, registerHead)
	value, err := base64.StdEncoding.DecodeString(text)
	if !ours || err != nil || len(value) == 0 || result.Attempt < 1 {
		return nil, 0, &source.InvalidError{
			What: "register of lock", Got: r.Name, Err: err,
			Why: "the record under its name is damaged, or is not a register; stop all users of this lock, wait for its period, and remove that result",
		}
	}
	return value, uint64(result.Attempt), nil
}

// The TTL of a swap's lock is what the death of a host during a swap costs the others: part of a
// period, in which the lock has no holder, and no more than a moment of a long one. A process that
// is slower without dying loses nothing but its swap.
const (
	partOfPeriod = 4
	longestSwap  = 30 * time.Second
)

// swapTTL is the TTL of the lock under which a swap is made.
func swapTTL(period time.Duration) time.Duration { return min(period/partOfPeriod, longestSwap) }

// onLedger uses the results of the ledger as registers.
func (o Options) onLedger() Options {
	o.Names = o.Ledger.Results
	o.Open = func(name string) (Register, error) {
		if checker, ok := o.Ledger.(source.NameChecker); ok {
			if err := checker.CheckName(name); err != nil {
				return nil, err
			}
		}
		return LedgerRegister{Ledger: o.Ledger, Name: name, TTL: swapTTL(o.Period)}, nil
	}
	return o
}
