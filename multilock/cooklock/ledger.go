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

// LedgerRegister is a register made of a lock and of the result that is kept under its
// name: whoever holds the lock learns the result, and commits the next one. That is an
// atomic set-and-get, because a commit succeeds only while the lock is its holder's
// (source.Committer): what was learned under the lock is what is replaced, however
// long the holder stood still in between.
//
// No clock decides what a swap does. Time, the lock's TTL, only says when the lock of a
// swap that came to nothing may be broken.
type LedgerRegister struct {
	Ledger source.Ledger
	Name   string
	// TTL is that of the lock under which a swap is made.
	TTL time.Duration
}

var _ Register = LedgerRegister{}

// Swap implements Register. It waits for nobody: the error is a *multilock.HeldError
// while somebody else swaps. A swap in which somebody died is that of a dead holder:
// with the process on its own host, and for others when its TTL has passed.
func (r LedgerRegister) Swap(ctx context.Context, v []byte) (old []byte, n uint64, err error) {
	if len(v) == 0 || len(v) > MaxValue {
		return nil, 0, &source.InvalidError{What: "value", Got: fmt.Sprintf("%d bytes", len(v)), Why: fmt.Sprintf("must have 1 to %d bytes", MaxValue)}
	}
	lock, err := multilock.TryAcquire(ctx, r.Ledger, r.Name, multilock.Options{TTL: r.TTL, Command: "a swap of the cooking lock"})
	if err != nil {
		return nil, 0, fmt.Errorf("take the lock for a swap, with a ttl of %s: %w", r.TTL, err)
	}
	defer giveBack(context.WithoutCancel(ctx), lock)
	old, n, err = r.content(lock.Outcome(ctx))
	if errors.Is(err, source.ErrLost) || lock.Remaining() == 0 { // then a commit would not even begin
		return nil, 0, fmt.Errorf("%w: this process stood still before its swap, for so long that others may have taken it for dead", source.ErrHeld)
	}
	if err != nil {
		return nil, 0, err
	}
	err = lock.Commit(ctx, source.Result{
		By: lock.Record().Holder.Identity, Attempt: int(n) + 1, Final: true, Start: time.Now(), //nolint:gosec // nobody swaps that often
		Why: registerHead + base64.StdEncoding.EncodeToString(v),
	})
	if errors.Is(err, source.ErrLost) {
		// It is not what the register holds now, but others may have replaced it.
		err = fmt.Errorf("%w: the swap was interrupted for so long that others took its process for dead: %s", source.ErrUnsure, err.Error())
	}
	return old, n + 1, err
}

// giveBack releases the lock of a swap, which is made or not by then. Where that fails
// the lock would be in everybody's way until its TTL has passed.
func giveBack(ctx context.Context, lock *multilock.Lock) {
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

// registerHead begins what a register says in its result; the value follows.
const registerHead = "register 1 "

// content takes a register's result apart. One that is no register's is somebody
// else's, and nothing that may be replaced.
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
			Why: "what is recorded under its name is damaged, or no register; stop everybody who uses this lock, wait for its period, and remove that result",
		}
	}
	return value, uint64(result.Attempt), nil
}

// What a death in the middle of a swap, with its host, costs the others: part of a
// period, in which nobody works, and no more than a moment of a long one. Who is slower
// than that without having died has lost nothing but its swap.
const (
	partOfPeriod = 4
	longestSwap  = 30 * time.Second
)

// swapTTL is the TTL of the lock under which a swap is made.
func swapTTL(period time.Duration) time.Duration { return min(period/partOfPeriod, longestSwap) }

// onLedger makes the results of the ledger the registers.
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
