package cooklock_test

import (
	"context"
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/boottime"
	"github.com/multilock/go/multilock/cooklock"
	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/locktest"
	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/vfs"
	"github.com/multilock/go/multilock/vfs/faultfs"
)

// The steps of a swap under its lock. The ledgers' own tests (multilock/fslock, the sweeps) check
// the ledger's reply to each step; these tests check the register's reaction to the replies.
const (
	learn  = "outcome"
	commit = "commit"
	leave  = "release"
	renew  = "renew"
)

// stepped is a ledger that can interfere with each step of its holders.
type stepped struct {
	source.Ledger
	before, after func(step string) error
}

func (s stepped) Contend(ctx context.Context, name string, claim source.Claim, policy source.StalePolicy) (source.Contender, error) {
	contender, err := s.Ledger.Contend(ctx, name, claim, policy)
	return steppedContender{contender, s}, err
}

type steppedContender struct {
	source.Contender
	stepped
}

func (c steppedContender) Try(ctx context.Context) (source.Lease, error) {
	lease, err := c.Contender.Try(ctx)
	if err != nil {
		return nil, err
	}
	return steppedLease{lease, lease.(source.Committer), c.stepped}, nil
}

type steppedLease struct {
	source.Lease
	source.Committer
	stepped
}

func (l steppedLease) step(name string, f func() error) error {
	err := l.before(name)
	if err == nil {
		err = f()
	}
	if err == nil {
		err = l.after(name)
	}
	return err
}

func (l steppedLease) Outcome(ctx context.Context) (found source.Result, err error) {
	err = l.step(learn, func() (err error) {
		found, err = l.Committer.Outcome(ctx)
		return err
	})
	return found, err
}

func (l steppedLease) Commit(ctx context.Context, r source.Result) error {
	return l.step(commit, func() error { return l.Committer.Commit(ctx, r) })
}

func (l steppedLease) Release(ctx context.Context) error {
	return l.step(leave, func() error { return l.Lease.Release(ctx) })
}

func (l steppedLease) Renew(ctx context.Context) error {
	return l.step(renew, func() error { return l.Lease.Renew(ctx) })
}

// others consider the swap's process dead, break its lock, and swap.
func others(t *testing.T, base, value string) (old string) {
	t.Helper()
	files := ledger(t, base)
	_, err := multilock.Break(t.Context(), files, "nightly", multilock.BreakOptions{Alive: true})
	if err != nil {
		require.ErrorIs(t, err, source.ErrFree)
	}
	was, _, err := register(t, base, "nightly").Swap(t.Context(), []byte(value))
	require.NoError(t, err)
	return string(was)
}

var (
	errDead  = errors.New("the process is dead")
	errFails = errors.New("no space left")
)

// Whatever happens at a step of a swap, its reported outcome is true: after an error the swap has
// not taken effect and never will, unless the error is ErrUnsure; a swap that took effect is never
// reported as failed, even if its value was replaced since; and the next swap succeeds.
func TestSwapIsInterrupted(t *testing.T) {
	lost := &source.LostError{Name: "nightly", Err: errors.New("broken")}
	lostReply := errors.Join(source.ErrUnsure, errors.New("no reply"))
	for name, c := range map[string]struct {
		before, after string // the step at which others swap, or the error occurs
		others        bool   // swap at that step
		err           error  // the step's error; with errDead also that of all later steps
		told          error  // the reported error; nil if the swap succeeded
		left          string // the previous value for the next swap
	}{
		"cannot learn":                       {before: learn, err: errFails, told: errFails, left: "first"},
		"others come before it learns":       {before: learn, others: true, told: source.ErrHeld, left: "others"},
		"others come after it has learned":   {after: learn, others: true, told: source.ErrUnsure, left: "others"},
		"cannot commit":                      {before: commit, err: errFails, told: errFails, left: "first"},
		"others come before it commits":      {before: commit, others: true, told: source.ErrUnsure, left: "others"},
		"no reply to the commit":             {after: commit, err: lostReply, told: source.ErrUnsure, left: "struck"},
		"no reply, and others have come":     {after: commit, others: true, err: lost, told: source.ErrUnsure, left: "others"},
		"no reply to the release":            {after: leave, err: lostReply, left: "struck"},
		"the release has to be repeated":     {before: leave, err: lostReply, left: "struck"},
		"dies before it learns":              {before: learn, err: errDead, told: errDead, left: "first"},
		"dies before it commits":             {before: commit, err: errDead, told: errDead, left: "first"},
		"dies when it has committed":         {after: commit, err: errDead, told: errDead, left: "struck"},
		"dies before it gives its lock back": {before: leave, err: errDead, left: "struck"},
	} {
		t.Run(name, func(t *testing.T) {
			base := t.TempDir()
			others(t, base, "first")
			met := false
			at := func(where string) func(string) error {
				return func(step string) error {
					switch {
					case step == renew:
						return nil
					case met && errors.Is(c.err, errDead):
						return errDead
					case met || step != where:
						return nil
					}
					met = true
					if c.others {
						others(t, base, "others")
					}
					return c.err
				}
			}
			struck := register(t, base, "nightly")
			struck.Ledger = stepped{struck.Ledger, at(c.before), at(c.after)}
			old, n, err := struck.Swap(t.Context(), []byte("struck"))
			require.True(t, met)
			require.ErrorIs(t, err, c.told)
			require.NotErrorIs(t, err, source.ErrLost, "it is not a lock of the caller's that is lost")
			if c.told == nil {
				require.Equal(t, "first", string(old))
				require.EqualValues(t, 2, n)
			}
			require.Equal(t, errors.Is(c.told, source.ErrUnsure), errors.Is(err, source.ErrUnsure))
			if errors.Is(c.err, errDead) {
				require.Equal(t, c.left, others(t, base, "next"))
				return
			}
			old, _, err = register(t, base, "nightly").Swap(t.Context(), []byte("next"))
			require.NoError(t, err, "its lock is in the way")
			require.Equal(t, c.left, string(old))
			requireTidy(t, base)
		})
	}
}

// A process that was stopped and sent no heartbeat for so long that others may consider it dead
// does not start to commit, even if no other process has come.
func TestSwapThatStoodStill(t *testing.T) {
	base := t.TempDir()
	others(t, base, "first")
	const ttl = 200 * time.Millisecond
	begun := boottime.Now()
	slow := cooklock.LedgerRegister{Ledger: stepped{
		Ledger: ledger(t, base),
		before: func(step string) error {
			if step == renew {
				return errFails
			}
			require.NotEqual(t, commit, step)
			return nil
		},
		after: func(step string) error {
			for step == learn && begun.Elapsed() < 2*ttl {
				<-time.After(ttl / 10)
			}
			return nil
		},
	}, Name: "nightly", TTL: ttl}
	_, _, err := slow.Swap(t.Context(), []byte("slow"))
	require.ErrorIs(t, err, source.ErrHeld)
	require.NotErrorIs(t, err, source.ErrLost)
	require.Equal(t, "first", others(t, base, "second"))
}

// A swap does not wait for another one. Its error names the process that is swapping, though the
// register does not.
func TestSomebodyElseSwaps(t *testing.T) {
	base := t.TempDir()
	src := open(t, base, cooklock.Options{Period: time.Hour})
	pass := func(string) error { return nil }
	slow := register(t, base, "nightly")
	slow.Ledger = stepped{slow.Ledger, func(step string) error {
		if step != commit {
			return nil
		}
		_, err := multilock.TryAcquire(t.Context(), src, "nightly", multilock.Options{})
		var held *multilock.HeldError
		require.ErrorAs(t, err, &held)
		require.Equal(t, source.StateHeld, held.Observation.State)
		require.Contains(t, err.Error(), ": a swap of the cooking lock: ")
		return nil
	}, pass}
	old, _, err := slow.Swap(t.Context(), []byte("slow"))
	require.NoError(t, err)
	require.Nil(t, old)
	_, err = multilock.TryAcquire(t.Context(), src, "nightly", multilock.Options{})
	require.ErrorIs(t, err, source.ErrInvalid, "what was swapped in is no value of a cooking lock")
}

// A process dies during a swap, before or after any operation on disk: its later operations have no
// effect. Its swap took effect or not, the next one succeeds and shows which, and no value is lost
// or comes back.
func TestSwapDiesAtEveryOperation(t *testing.T) {
	for name, fs := range map[string]vfs.FileSystem{"local": {Type: "ext4", Local: true}, "network": {Type: "network"}} {
		for _, phase := range []faultfs.Phase{faultfs.Before, faultfs.After} {
			t.Run(name+"/"+phase.String(), func(t *testing.T) {
				t.Parallel()
				made := map[string]int{}
				n := 0
				for next := dieAt(t, fs, phase, n); next != ""; next = dieAt(t, fs, phase, n) {
					made[next]++
					n++
				}
				require.Greater(t, made["first"], 5, "deaths before the swap was made")
				require.Greater(t, made["struck"], 2, "deaths after it")
				require.Equal(t, n, made["first"]+made["struck"])
			})
		}
	}
}

// dieAt lets the process die at the nth operation of its swap. It returns the previous value for
// the next swap, "" if the swap was complete before.
func dieAt(t *testing.T, fs vfs.FileSystem, phase faultfs.Phase, n int) (found string) {
	t.Helper()
	base := t.TempDir()
	others(t, base, "first")
	faulty := faultfs.New(vfs.OS{}, nil)
	faulty.Describe(fs)
	files, err := fslock.Open(fslock.Options{Base: base, FS: faulty})
	require.NoError(t, err)
	t.Cleanup(func() { _ = files.Close() })

	dead := false
	faulty.Inject(func(op faultfs.Op) error {
		if op.N == n && op.Phase == phase {
			dead = true
		}
		if dead && !strings.HasSuffix(op.Kind, "close") {
			return syscall.EIO
		}
		return nil
	})
	events := []locktest.SwapEvent{{Op: "begin", Value: "first"}, locktest.SwapAnswer("first", nil, 1, nil), {Op: "begin", Value: "struck", Time: locktest.Now()}}
	struck := cooklock.LedgerRegister{Ledger: files, Name: "nightly", TTL: multilock.DefaultTTL}
	_, _, err = struck.Swap(t.Context(), []byte("struck"))
	if !dead {
		require.NoError(t, err)
		return ""
	}
	next := locktest.SwapEvent{Op: "begin", Value: "next", Time: locktest.Now()}
	found = others(t, base, "next")
	_, number, err := register(t, base, "nightly").Peek(t.Context())
	require.NoError(t, err)
	_, err = locktest.CheckSwaps(append(events, next, locktest.SwapAnswer("next", []byte(found), number, nil)))
	require.NoError(t, err)
	return found
}
