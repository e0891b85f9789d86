package cloudshell_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/integration/fakecloudshell"
	"github.com/multilock/go/lockgroup/batch"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

// plainLab has a model without the owner's attribute.
func plainLab(t *testing.T) *lab {
	t.Helper()
	opt := serverOptions()
	opt.Models[0] = fakecloudshell.PlainMutex()
	return newLab(t, opt)
}

func TestPlainLock(t *testing.T) {
	l := plainLab(t)
	a, b := l.open(t), l.open(t)
	lock := try(t, a, "MUTEX", multilock.Options{})
	require.Equal(t, []string{"MUTEX"}, l.aliases())
	require.NoError(t, lock.Verify(t.Context()))
	seen := requireHeld(t, b, "MUTEX")
	require.Contains(t, seen.Why, "break --force")
	require.NotEmpty(t, seen.Record.Foreign)
	_, err := multilock.Break(t.Context(), b, "MUTEX", multilock.BreakOptions{Patience: multilock.Patience{MaxAge: time.Nanosecond}})
	require.ErrorIs(t, err, multilock.ErrHeld, "nobody knows for how long it has been there")
	names, err := b.Names(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"MUTEX"}, names)
	release(t, lock)
	require.Empty(t, l.aliases())
	require.ErrorIs(t, lock.Release(t.Context()), multilock.ErrReleased)
}

func TestPlainLockThatIsGoneIsLost(t *testing.T) {
	l := plainLab(t)
	lock := try(t, l.open(t), "MUTEX", multilock.Options{})
	_, err := multilock.Break(t.Context(), l.open(t), "MUTEX", multilock.BreakOptions{Alive: true})
	require.NoError(t, err)
	require.ErrorIs(t, lock.Verify(t.Context()), multilock.ErrLost)
	next := try(t, l.open(t), "MUTEX", multilock.Options{})
	require.ErrorIs(t, lock.Release(t.Context()), multilock.ErrLost)
	require.NoError(t, next.Verify(t.Context()))
	release(t, next)
}

// Without an owner a lost answer cannot be settled: that is said, and nobody acts
// on a guess.
func TestPlainLockInDoubt(t *testing.T) {
	l := plainLab(t)
	src := l.open(t)
	lost := fakecloudshell.Fault{Reply: fakecloudshell.Dropped}
	l.server.Inject(fakecloudshell.At(fakecloudshell.AddService, 1, lost))
	_, err := multilock.TryAcquire(t.Context(), src, "MUTEX", multilock.Options{})
	require.ErrorIs(t, err, multilock.ErrUnsure)
	require.ErrorContains(t, err, "break --force")
	require.Equal(t, []string{"MUTEX"}, l.aliases())

	_, err = multilock.Break(t.Context(), src, "MUTEX", multilock.BreakOptions{Alive: true})
	require.NoError(t, err)
	lock := try(t, src, "MUTEX", multilock.Options{})
	late := fakecloudshell.Fault{Execute: fakecloudshell.OnceGone, Reply: fakecloudshell.Dropped}
	l.server.Inject(fakecloudshell.At(fakecloudshell.RemoveServices, 1, late))
	require.ErrorIs(t, lock.Release(t.Context()), multilock.ErrUnsure, "the service that is there may be another's")
	require.Equal(t, []string{"MUTEX"}, l.aliases())
	require.Equal(t, 1, l.server.Land())
	require.NoError(t, lock.Release(t.Context()))
}

func TestPlainLocksKeepNoResults(t *testing.T) {
	l := plainLab(t)
	src := l.open(t)
	jobs := []batch.Job{{Name: "one"}}
	b, err := batch.New(src, jobs, batch.Options{})
	require.NoError(t, err)
	_, err = b.Run(t.Context())
	require.ErrorIs(t, err, multilock.ErrUnsupported)
	require.ErrorContains(t, err, `no attribute "Mutex Owner"`)
	lock := try(t, src, "MUTEX", multilock.Options{})
	require.ErrorIs(t, lock.Commit(t.Context(), multilock.Result{}), multilock.ErrUnsupported)
	_, err = lock.Fence(t.Context())
	require.ErrorIs(t, err, multilock.ErrUnsupported)
	release(t, lock)
	promise, ok := source.PromiseOf(src, source.TraitResults)
	require.True(t, ok)
	require.False(t, promise.Kept)
}

// A server that drops the attribute without a word is found out at the first attempt.
func TestOwnerThatIsNotKept(t *testing.T) {
	opt := serverOptions()
	opt.Models[0] = fakecloudshell.PlainMutex()
	opt.Policy.IgnoreUnknownAttributes = true
	opt.Policy.Without = []fakecloudshell.Method{fakecloudshell.GetServices} // nobody can ask for the model
	l := newLab(t, opt)
	_, err := multilock.TryAcquire(t.Context(), l.open(t), "MUTEX", multilock.Options{})
	require.ErrorContains(t, err, "does not keep the owner's attribute")
	require.Empty(t, l.aliases())
}
