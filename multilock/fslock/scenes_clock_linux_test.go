package fslock_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/boottime"
	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/vfs"
	"github.com/multilock/go/multilock/vfs/faultfs"
)

// No clock is compared with another host's. A holder with a wrong clock cannot be made with faketime(1),
// which replaces calls of the C library that Go programs do not use, nor with a time namespace, which does
// not shift CLOCK_REALTIME (time_namespaces(7)).

// TTL and heartbeat of the holders here, which send heartbeats when the test says so.
const (
	clockTTL  = 1500 * time.Millisecond
	clockBeat = 500 * time.Millisecond
)

// In a bubble of synctest the wall clock shows the year 2000, and real files work.
// Rule: I5, silence
func TestHolderAndContenderWithClocksYearsApart(t *testing.T) {
	t.Parallel()
	base := fresh(t)
	behind := claim(elsewhere(t), clockTTL, clockBeat)
	synctest.Test(t, func(t *testing.T) {
		require.Less(t, time.Now().Year(), 2010)
		for _, name := range []string{"dead", "living"} {
			plant(t, open(t, fslock.Options{Base: base}), name, behind)
		}
	})
	src := open(t, fslock.Options{Base: base})
	neverDead(t, src, "living", clockTTL, func() { setTime(t, base, "living", time.Now()) })
	acquire(t, src, "dead", multilock.Options{TTL: long})

	plant(t, src, "ahead", claim(elsewhere(t), long, clockBeat))
	synctest.Test(t, func(t *testing.T) {
		_, err := multilock.TryAcquire(t.Context(), open(t, fslock.Options{Base: base}), "ahead", multilock.Options{})
		require.ErrorIs(t, err, source.ErrHeld)
	})
}

// The server's clock was set back by an hour: the last heartbeat is in the future, and the waiter's own
// clock decides, after a whole TTL of watching.
// Rule: silence, I5
func TestServerClockSetBackUnderADeadHolder(t *testing.T) {
	t.Parallel()
	base := fresh(t)
	src := open(t, fslock.Options{Base: base})
	plant(t, src, "job", claim(elsewhere(t), clockTTL, clockBeat))
	inAnHour := time.Now().Add(time.Hour)
	setTime(t, base, "job", inAnHour)

	o := observe(t, src, "job", source.StalePolicy{})
	start := boottime.Now()
	seen := look(t, o)
	require.Equal(t, source.StateSuspect.String(), seen.State.String())
	require.Contains(t, seen.Why, "set back")
	lookUntil(t, o, source.StateDead, nil)
	require.GreaterOrEqual(t, start.Elapsed(), clockTTL)
	require.NoError(t, o.Break(t.Context()))
	acquire(t, src, "job", multilock.Options{TTL: long})
}

// As long as the holder is alive its time changes, wherever it is: in the future, if the server's clock was
// set back, or an hour ago, if it was set forward.
// Rule: silence, I5
func TestServerClockSetUnderALivingHolder(t *testing.T) {
	for name, by := range map[string]time.Duration{"back": time.Hour, "forward": -time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			base := fresh(t)
			src := open(t, fslock.Options{Base: base})
			lease := plant(t, src, "job", claim(elsewhere(t), clockTTL, clockBeat))
			beat := time.Now().Add(by)
			neverDead(t, src, "job", clockTTL, func() {
				beat = beat.Add(clockBeat)
				setTime(t, base, "job", beat)
			})
			require.NoError(t, lease.Renew(t.Context()))
		})
	}
}

func setTime(t *testing.T, base, name string, to time.Time) {
	t.Helper()
	require.NoError(t, os.Chtimes(filepath.Join(base, fslock.DefaultGroup, name), to, to))
}

// neverDead watches a lock for twice the limit after which it would be taken over. It looks twice after
// each heartbeat, which keeps it exact on the slowest machine: Dead needs at least two looks within the
// window, and if the test stalls between them the window starts over.
func neverDead(t *testing.T, src *fslock.Source, name string, limit time.Duration, sign func()) {
	t.Helper()
	o := observe(t, src, name, source.StalePolicy{})
	for start := boottime.Now(); start.Elapsed() < 2*limit; {
		sign()
		for range 2 {
			seen := look(t, o)
			require.NotEqual(t, source.StateDead.String(), seen.State.String(), seen.Why)
			require.NotEqual(t, source.StateFree.String(), seen.State.String())
			require.ErrorIs(t, o.Break(t.Context()), source.ErrHeld)
			time.Sleep(10 * time.Millisecond)
		}
	}
}

// coarseDir rounds times to steps, as ext4 with small inodes, FAT and some servers do.
type coarseDir struct {
	vfs.Dir
	step time.Duration
}

func (d coarseDir) Stat() (vfs.Info, error) { return d.truncate(d.Dir.Stat()) }

func (d coarseDir) StatCached() (vfs.Info, error) { return d.truncate(d.Dir.StatCached()) }

func (d coarseDir) StatName(name string) (vfs.Info, error) { return d.truncate(d.Dir.StatName(name)) }

func (d coarseDir) truncate(info vfs.Info, err error) (vfs.Info, error) {
	info.ModTime, info.ChangeTime = info.ModTime.Truncate(d.step), info.ChangeTime.Truncate(d.step)
	return info, err
}

// coarse is a filesystem with such times that other hosts use as well.
func coarse(step time.Duration) vfs.FS { return coarsely(sharedFS(), step) }

func coarsely(fs vfs.FS, step time.Duration) vfs.FS {
	return wrapped{fs, func(d vfs.Dir) vfs.Dir { return coarseDir{d, step} }}
}

// A holder whose heartbeats leave the same time, or an old one, is alive. It is broken in the end if it
// sends no more heartbeats.
// Rule: coarse-times
func TestHolderOnCoarseTimes(t *testing.T) {
	for name, step := range map[string]time.Duration{"1s": time.Second, "2s": 2 * time.Second} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			base := fresh(t)
			// The holder must not see the coarse times, or its TTL would be rejected.
			holder := plant(t, open(t, fslock.Options{Base: base}), "job", claim(self(t), time.Second, 100*time.Millisecond))
			o := observe(t, open(t, fslock.Options{Base: base, FS: coarse(step), Self: elsewhere(t)}), "job", source.StalePolicy{})
			for start := boottime.Now(); start.Elapsed() < 4*time.Second; time.Sleep(20 * time.Millisecond) {
				require.NoError(t, holder.Renew(t.Context()))
				seen := look(t, o)
				require.NotEqual(t, source.StateDead.String(), seen.State.String(), seen.Why)
			}
			lookUntil(t, o, source.StateDead, nil)
			require.NoError(t, o.Break(t.Context()))
		})
	}
}

// A TTL with heartbeats faster than the times can show is rejected, with the shortest valid one; by a host
// that ran the test, and by one that found its mark.
// Rule: coarse-times
func TestTTLThatIsTooShortForCoarseTimes(t *testing.T) {
	for step, least := range map[time.Duration]string{time.Second: "10s", 2 * time.Second: "20s"} {
		t.Run(step.String(), func(t *testing.T) {
			t.Parallel()
			base := fresh(t)
			for range 2 {
				src := open(t, fslock.Options{Base: base, FS: coarse(step)})
				_, err := multilock.TryAcquire(within(t), src, "job", multilock.Options{TTL: 9 * time.Second})
				require.ErrorIs(t, err, source.ErrInvalid)
				require.ErrorContains(t, err, "resolution of "+step.String())
				require.ErrorContains(t, err, "use a ttl of "+least+" or more")
				enough, err := time.ParseDuration(least)
				require.NoError(t, err)
				giveBack(t, acquire(t, src, "job", multilock.Options{TTL: enough}))
			}
		})
	}
}

// A directory whose time does not change when it is touched shows no heartbeat at all.
// Rule: fs-test
func TestTimesThatStandStill(t *testing.T) {
	t.Parallel()
	src := open(t, fslock.Options{Base: fresh(t), FS: coarse(24 * time.Hour)})
	_, err := multilock.TryAcquire(within(t), src, "job", multilock.Options{})
	require.ErrorIs(t, err, source.ErrInvalid)
	require.ErrorContains(t, err, `breaks the rule "a touch changes the time of a directory"`)
}

// A host that could not measure the resolution of file times does not record it as exact.
// Rule: fs-test, coarse-times
func TestTimesThatCannotBeRead(t *testing.T) {
	for _, kind := range []string{"stat", "touch"} {
		for after := range 2 {
			base, faulty := fresh(t), sharedFS()
			src := open(t, fslock.Options{Base: base, FS: coarsely(faulty, time.Second)})
			met := 0
			faulty.Inject(func(op faultfs.Op) error {
				if op.Kind != kind || op.Phase != faultfs.Before || !strings.HasSuffix(op.Path, ".selftest") {
					return nil
				}
				if met++; met <= after {
					return nil
				}
				return syscall.EACCES
			})
			_, err := src.Contend(t.Context(), "job", longClaim(), source.StalePolicy{})
			require.ErrorIs(t, err, syscall.EACCES)
			require.Equal(t, []string{"staging"}, namesIn(t, filepath.Join(base, ".multilock")))
		}
	}
}

// On NFS the directory's times replace a look at the lock file, unless a breaker leaves the same time as
// the touch before it.
// Rule: coarse-times, heartbeat
func TestBreakerOnCoarseTimesLeavesTheTimesOfTheTouch(t *testing.T) {
	t.Parallel()
	base := fresh(t)
	src := open(t, fslock.Options{Base: base, FS: coarse(time.Second)})
	for n := range 5 {
		lease := contendAndTry(t, src, "job", longClaim())
		for range 1 + n {
			require.NoError(t, lease.Renew(t.Context()))
		}
		require.NoError(t, os.Remove(filepath.Join(base, fslock.DefaultGroup, "job", "job.locked")))
		require.ErrorIs(t, lease.Renew(t.Context()), source.ErrLost)
		_ = lease.Release(t.Context())
	}
}

// A real filesystem: inodes of 128 bytes have no room for fractions of a second.
// Rule: coarse-times
func TestFileSystemWithSmallInodes(t *testing.T) {
	d := newDisk(t, "-I", "128")
	base := mounted(t, d.dir, "mount -o loop "+d.image+" .", "cd "+d.dir)
	here, there := open(t, fslock.Options{Base: base}), open(t, fslock.Options{Base: base, Self: elsewhere(t)})

	err := attempt(t, fslock.Options{Base: base}, "job", source.StalePolicy{})(t.Context())
	require.NoError(t, err)
	_, err = multilock.TryAcquire(within(t), here, "short", multilock.Options{TTL: time.Second})
	require.ErrorContains(t, err, "use a ttl of 10s or more")
	require.True(t, strings.HasSuffix(markIn(t, base), ".replaces-1s"))

	lock := acquire(t, here, "job", multilock.Options{TTL: 10 * time.Second})
	neverDead(t, there, "job", 3*time.Second, func() { require.NoError(t, lock.Verify(t.Context())) })
}
