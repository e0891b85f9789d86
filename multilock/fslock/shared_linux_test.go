package fslock_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/internal/testkit/sweep"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/vfs/faultfs"
)

const (
	sharedName = "db.shared"
	sharedTTL  = 500 * time.Millisecond
)

// onHost is a source of a process on another host, which knows nothing of other hosts' processes. Its disk
// operations go through the returned file system.
func onHost(t testing.TB, base, host string) (*fslock.Source, *faultfs.FS) {
	t.Helper()
	fs := sharedFS()
	id := process.Identity{Host: host, Machine: "machine of " + host, Boot: "boot of " + host, Namespace: "pid:[1]", PID: 4711, Start: 1}
	return open(t, fslock.Options{Base: base, FS: fs, Self: id}), fs
}

// witness knows which locks are valid: one writer's, or readers'. Two locks are compared when the second is
// acquired; the locks' own clocks show whether both are valid.
type witness struct {
	mu     sync.Mutex
	inside map[*multilock.Lock]bool // the value is true for a writer
	wrong  []string
	most   int // readers at a time
}

func newWitness() *witness { return &witness{inside: map[*multilock.Lock]bool{}} }

func (w *witness) enter(lock *multilock.Lock, writer bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	readers := 0
	for other, writes := range w.inside {
		if other.Remaining() == 0 || lock.Remaining() == 0 {
			continue
		}
		if writes || writer {
			w.wrong = append(w.wrong, fmt.Sprintf("%s (writer %t) came in beside %s (writer %t)", lock.Record().Name, writer, other.Record().Name, writes))
		}
		readers++
	}
	w.inside[lock] = writer
	w.most = max(w.most, readers+1)
}

func (w *witness) leave(lock *multilock.Lock) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.inside, lock)
}

func (w *witness) require(t testing.TB) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	require.Empty(t, w.wrong)
}

// goes acquires the lock, as a writer or a reader, holds it, and releases it. The error is that of the
// acquisition.
func (w *witness) goes(ctx context.Context, src multilock.Source, writer bool, stay time.Duration) error {
	take := multilock.AcquireShared
	if writer {
		take = multilock.Acquire
	}
	lock, err := take(ctx, src, sharedName, multilock.Options{TTL: sharedTTL, Poll: 20 * time.Millisecond})
	if err != nil {
		return err
	}
	w.enter(lock, writer)
	select {
	case <-time.After(stay):
	case <-lock.Context().Done():
	}
	w.leave(lock)
	_ = lock.Release(context.WithoutCancel(ctx)) // it may be lost
	return nil
}

// Many readers hold the lock at a time, and never beside a writer; each gets it, and nothing is left over.
// Rule: none (docs/decisions/0015)
func TestReadersAndWriters(t *testing.T) {
	t.Parallel()
	base, w := fresh(t), newWitness()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var group sync.WaitGroup
	for i := range 6 {
		src, _ := onHost(t, base, fmt.Sprintf("host%d", i))
		group.Go(func() {
			for range 8 {
				if err := w.goes(ctx, src, i < 2, 10*time.Millisecond); err != nil {
					t.Errorf("%d: %v", i, err)
				}
			}
		})
	}
	group.Wait()
	w.require(t)
	src, _ := onHost(t, base, "host9")
	names, err := src.Names(t.Context())
	require.NoError(t, err)
	require.Empty(t, names)
}

func share(t testing.TB, src multilock.Source) *multilock.Lock {
	t.Helper()
	lock, err := multilock.TryAcquireShared(t.Context(), src, sharedName, multilock.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { _ = lock.Release(context.Background()) })
	return lock
}

// Rule: none (docs/decisions/0015)
func TestSharedLock(t *testing.T) {
	t.Parallel()
	base := fresh(t)
	a, _ := onHost(t, base, "a")
	b, _ := onHost(t, base, "b")
	one, two := share(t, a), share(t, b)
	require.Equal(t, multilock.ReaderName(sharedName, 1), one.Record().Name)
	require.Equal(t, multilock.ReaderName(sharedName, 2), two.Record().Name)
	_, err := one.Fence(t.Context())
	require.ErrorIs(t, err, multilock.ErrUnsupported)

	var held *multilock.HeldError
	_, err = multilock.TryAcquire(t.Context(), b, sharedName, multilock.Options{})
	require.ErrorAs(t, err, &held)
	require.Equal(t, one.Record().Name, held.Name)
	_, err = multilock.TryOnce(t.Context(), b, sharedName, multilock.Options{})
	require.ErrorIs(t, err, multilock.ErrHeld)

	require.NoError(t, one.Release(t.Context()))
	require.NoError(t, two.Release(t.Context()))
	writer, err := multilock.TryAcquire(t.Context(), b, sharedName, multilock.Options{})
	require.NoError(t, err)
	_, err = multilock.TryAcquireShared(t.Context(), a, sharedName, multilock.Options{})
	require.ErrorAs(t, err, &held)
	require.Equal(t, sharedName, held.Name)
	require.NoError(t, writer.Release(t.Context()))
}

// Rule: none (docs/decisions/0015)
func TestSharedLockRefusals(t *testing.T) {
	t.Parallel()
	src, _ := onHost(t, fresh(t), "a")
	for _, name := range []string{"db", ".shared", "db.shared#reader-1"} {
		_, err := multilock.TryAcquireShared(t.Context(), src, name, multilock.Options{})
		require.ErrorIs(t, err, multilock.ErrInvalid, name)
		require.ErrorContains(t, err, `must end in ".shared"`)
	}
	for lock, want := range map[string]bool{"x.shared#reader-1": true, "x.shared#reader-01": false, "x#reader-1": false, "x.shared#reader-": false, "x.shared#reader-0": false} {
		_, _, ok := multilock.ParseReaderName(lock)
		require.Equal(t, want, ok, lock)
	}
}

// unbroken is a source that cannot judge dead holders.
type unbroken struct{ *fslock.Source }

func (u unbroken) Guarantees() []source.Guarantee {
	return []source.Guarantee{source.Lacks(source.TraitBreakByEvidence, "nobody knows")}
}

// Where a dead reader would block all others forever, shared locks are rejected.
// Rule: none (docs/decisions/0015)
func TestSharedLockWithoutEvidence(t *testing.T) {
	t.Parallel()
	src, _ := onHost(t, fresh(t), "a")
	_, err := multilock.TryAcquireShared(t.Context(), unbroken{src}, sharedName, multilock.Options{})
	require.ErrorIs(t, err, multilock.ErrInvalid)
	require.ErrorContains(t, err, "cannot find out whether a holder is dead")
	lock, err := multilock.TryAcquire(t.Context(), unbroken{src}, sharedName, multilock.Options{})
	require.NoError(t, err)
	require.NoError(t, lock.Release(t.Context()))
}

// A waiting writer is next: later readers wait for it, however many hold the lock.
// Rule: none (docs/decisions/0015)
func TestWriterWhoWaitsIsNext(t *testing.T) {
	t.Parallel()
	base := fresh(t)
	a, _ := onHost(t, base, "a")
	b, _ := onHost(t, base, "b")
	reader := share(t, a)
	got := make(chan *multilock.Lock, 1)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	go func() {
		lock, err := multilock.Acquire(ctx, b, sharedName, multilock.Options{Poll: 20 * time.Millisecond})
		if err != nil {
			t.Error(err)
		}
		got <- lock
	}()
	require.Eventually(t, func() bool {
		lock, err := multilock.TryAcquireShared(t.Context(), a, sharedName, multilock.Options{})
		if err == nil {
			err = lock.Release(t.Context()) // the writer does not wait yet
		}
		return errors.Is(err, multilock.ErrHeld)
	}, time.Minute, 10*time.Millisecond)
	require.NoError(t, reader.Verify(t.Context()))
	require.Empty(t, got, "a reader is in")
	require.NoError(t, reader.Release(t.Context()))
	writer := <-got
	require.NotNil(t, writer)
	require.NoError(t, writer.Verify(t.Context()))
	require.NoError(t, writer.Release(t.Context()))
	require.NoError(t, share(t, a).Verify(t.Context()))
}

// A dead reader is recognized like any dead holder: on its own host at once.
// Rule: none (docs/decisions/0015)
func TestDeadReader(t *testing.T) {
	t.Parallel()
	base := fresh(t)
	me := self(t)
	gone := me
	gone.Start--
	dead := open(t, fslock.Options{Base: base, Self: gone})
	lock, err := multilock.TryAcquireShared(t.Context(), dead, sharedName, multilock.Options{TTL: time.Hour})
	require.NoError(t, err)
	src := open(t, fslock.Options{Base: base})
	next := share(t, src)
	require.Equal(t, multilock.ReaderName(sharedName, 2), next.Record().Name, "nobody has to wait for a dead reader")
	require.NoError(t, next.Release(t.Context()))
	writer, err := multilock.TryAcquire(t.Context(), src, sharedName, multilock.Options{})
	require.NoError(t, err)
	require.ErrorIs(t, lock.Verify(t.Context()), multilock.ErrLost)
	require.NoError(t, writer.Release(t.Context()))
}

// forgetful is a source whose listings come from a cache for some time.
type forgetful struct {
	*fslock.Source
	stale int // listings that are old
}

func (f *forgetful) Names(ctx context.Context) ([]string, error) {
	if f.stale > 0 {
		f.stale--
		return []string{sharedName}, nil
	}
	return f.Source.Names(ctx)
}

// A writer trusts no listing that does not show the lock that it has just acquired for this purpose.
// Rule: none (docs/decisions/0015)
func TestListingThatIsOld(t *testing.T) {
	t.Parallel()
	base := fresh(t)
	a, _ := onHost(t, base, "a")
	b, _ := onHost(t, base, "b")
	reader := share(t, a)
	for stale, want := range map[int]error{1: multilock.ErrHeld, 1 << 30: multilock.ErrUnsure} {
		_, err := multilock.TryAcquire(t.Context(), &forgetful{b, stale}, sharedName, multilock.Options{TTL: sharedTTL})
		require.ErrorIs(t, err, want)
	}
	require.NoError(t, reader.Verify(t.Context()))
}

// trouble is what happens to one operation, or to all from there on.
type trouble string

const (
	fails  trouble = "fails" // with EIO: not carried out, or its reply lost
	slow   trouble = "slow"  // it takes longer than the TTL
	frozen trouble = "frozen"
)

// phases are when it happens. What hangs after an operation hangs before the next one.
func (k trouble) phases() []faultfs.Phase {
	if k == fails || sweep.Exhaustive() {
		return []faultfs.Phase{faultfs.Before, faultfs.After}
	}
	return []faultfs.Phase{faultfs.Before}
}

// step skips operations that are much like their neighbours.
func (k trouble) step() int {
	if k == fails || sweep.Exhaustive() {
		return 1
	}
	return 2
}

// injector starts the trouble at an operation.
func (k trouble) injector(n int, phase faultfs.Phase) faultfs.Injector {
	const pause = 3 * sharedTTL / 2
	var once sync.Once
	began := make(chan struct{})
	var until time.Time
	begin := func() { once.Do(func() { until = time.Now().Add(pause); close(began) }) }
	return func(op faultfs.Op) error {
		hit := op.N == n && op.Phase == phase
		if hit {
			begin()
		}
		switch {
		case hit && k == fails:
			return syscall.EIO
		case hit:
			time.Sleep(pause)
		case k == frozen && op.N > n:
			select {
			case <-began:
				time.Sleep(time.Until(until))
			default:
			}
		}
		return nil
	}
}

// Whatever operation of a reader or a writer fails, hangs for longer than its TTL, or is the last one
// before its process freezes for that time: a writer never holds the lock beside another holder, and all
// others get their turn.
// Rule: none (docs/decisions/0015)
func TestTroubleAtEveryOperationOfASharedLock(t *testing.T) {
	t.Parallel()
	slots := make(sweep.Slots, 24) // with more of them, a busy machine keeps a holder from its heartbeats
	for _, writer := range []bool{false, true} {
		count := countOperations(t, writer)
		for _, kind := range []trouble{fails, slow, frozen} {
			t.Run(fmt.Sprintf("writer=%t %s", writer, kind), func(t *testing.T) {
				t.Parallel()
				for _, phase := range kind.phases() {
					var numbers []int
					for n := 0; n < count; n += kind.step() {
						numbers = append(numbers, n)
					}
					sweep.SideBySide(t, numbers, func(t *testing.T, n int) {
						defer slots.Enter()()
						sharedTrouble(t, writer, kind, n, phase)
					})
				}
			})
		}
	}
}

// countOperations is how many operations a holder without competitors needs.
func countOperations(t *testing.T, writer bool) (count int) {
	src, fs := onHost(t, fresh(t), "alone")
	w := newWitness()
	require.NoError(t, w.goes(t.Context(), src, writer, 0)) // the file system is tested
	var mu sync.Mutex
	fs.Inject(func(op faultfs.Op) error {
		mu.Lock()
		defer mu.Unlock()
		if op.Phase == faultfs.Before {
			count++
		}
		return nil
	})
	require.NoError(t, w.goes(t.Context(), src, writer, 0))
	fs.Inject(nil)
	mu.Lock()
	defer mu.Unlock()
	require.NotZero(t, count)
	return count
}

func sharedTrouble(t *testing.T, writer bool, kind trouble, n int, phase faultfs.Phase) {
	base, w := fresh(t), newWitness()
	victim, fs := onHost(t, base, "victim")
	require.NoError(t, w.goes(t.Context(), victim, writer, 0)) // the file system is tested
	inject := kind.injector(n, phase)
	var first sync.Once
	var before int
	fs.Inject(func(op faultfs.Op) error {
		first.Do(func() { before = op.N })
		op.N -= before
		return inject(op)
	})
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	var group sync.WaitGroup
	group.Go(func() { _ = w.goes(ctx, victim, writer, 50*time.Millisecond) })
	for _, other := range []bool{true, false} {
		src, _ := onHost(t, base, fmt.Sprintf("writer-%t", other))
		group.Go(func() {
			for range 2 {
				if err := w.goes(ctx, src, other, sharedTTL/4); err != nil {
					t.Errorf("writer %t: %v", other, err)
				}
			}
		})
	}
	group.Wait()
	w.require(t)
}

// A detached lock is not renewed, except while its writer waits for readers.
// Rule: none (docs/decisions/0015)
func TestDetachedWriterWaitsForReaders(t *testing.T) {
	t.Parallel()
	base := fresh(t)
	there, _ := onHost(t, base, "reader")
	here, _ := onHost(t, base, "writer")
	reader, err := multilock.AcquireShared(t.Context(), there, sharedName, multilock.Options{TTL: sharedTTL})
	require.NoError(t, err)
	time.AfterFunc(3*sharedTTL, func() { _ = reader.Release(context.Background()) })
	lock, err := multilock.Acquire(t.Context(), here, sharedName, multilock.Detached{Options: multilock.Options{TTL: sharedTTL}})
	require.NoError(t, err)
	require.NoError(t, lock.Verify(t.Context()))
	require.NoError(t, lock.Release(t.Context()))
}
