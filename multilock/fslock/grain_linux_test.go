package fslock_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/boottime"
	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/vfs"
	"github.com/multilock/go/multilock/vfs/faultfs"
)

// coarseFS keeps times in steps, as ext4 with small inodes, FAT and some servers do.
type coarseFS struct {
	vfs.FS
	step time.Duration
}

func (f coarseFS) OpenDir(path string) (vfs.Dir, error) {
	dir, err := f.FS.OpenDir(path)
	return coarseDir{dir, f.step}.unless(err)
}

type coarseDir struct {
	vfs.Dir
	step time.Duration
}

func (d coarseDir) unless(err error) (vfs.Dir, error) {
	if err != nil {
		return nil, err
	}
	return d, nil
}

func (d coarseDir) OpenDir(name string) (vfs.Dir, error) {
	dir, err := d.Dir.OpenDir(name)
	return coarseDir{dir, d.step}.unless(err)
}

func (d coarseDir) Stat() (vfs.Info, error) { return d.truncate(d.Dir.Stat()) }

func (d coarseDir) StatCached() (vfs.Info, error) { return d.truncate(d.Dir.StatCached()) }

func (d coarseDir) StatName(name string) (vfs.Info, error) { return d.truncate(d.Dir.StatName(name)) }

func (d coarseDir) truncate(info vfs.Info, err error) (vfs.Info, error) {
	info.ModTime, info.ChangeTime = info.ModTime.Truncate(d.step), info.ChangeTime.Truncate(d.step)
	return info, err
}

// coarse is a filesystem with such times that other hosts use as well.
func coarse(step time.Duration) vfs.FS { return coarseFS{sharedFS(), step} }

// A holder whose signs of life leave the same time, or an old one, is alive. It is given
// up in the end when it stays silent.
func TestHolderOnCoarseTimes(t *testing.T) {
	for name, step := range map[string]time.Duration{"1s": time.Second, "2s": 2 * time.Second} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			base := fresh(t)
			// Whoever takes it here knows nothing of the times, or would be refused.
			holder := plant(t, open(t, fslock.Options{Base: base}), "job", claim(self(t), time.Second, 100*time.Millisecond))
			o := observe(t, open(t, fslock.Options{Base: base, FS: coarse(step), Self: elsewhere(t)}), "job", source.Patience{})
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

// Who would show his signs of life faster than the times can tell is refused, and told
// what would do; by a host that made the test, and by one that found its mark.
func TestTTLThatIsTooShortForCoarseTimes(t *testing.T) {
	for step, least := range map[time.Duration]string{time.Second: "10s", 2 * time.Second: "20s"} {
		t.Run(step.String(), func(t *testing.T) {
			t.Parallel()
			base := fresh(t)
			for range 2 {
				src := open(t, fslock.Options{Base: base, FS: coarse(step)})
				_, err := multilock.TryAcquire(within(t), src, "job", multilock.Options{TTL: 9 * time.Second})
				require.ErrorIs(t, err, source.ErrInvalid)
				require.ErrorContains(t, err, "steps of "+step.String())
				require.ErrorContains(t, err, "use a ttl of "+least+" or more")
				enough, err := time.ParseDuration(least)
				require.NoError(t, err)
				giveBack(t, acquire(t, src, "job", multilock.Options{TTL: enough}))
			}
		})
	}
}

// A directory whose time does not move when it is touched shows no sign of life at all.
func TestTimesThatStandStill(t *testing.T) {
	t.Parallel()
	src := open(t, fslock.Options{Base: fresh(t), FS: coarse(24 * time.Hour)})
	_, err := multilock.TryAcquire(within(t), src, "job", multilock.Options{})
	require.ErrorIs(t, err, source.ErrInvalid)
	require.ErrorContains(t, err, `breaks the rule "a touch moves the time of a directory"`)
}

// Whoever could not learn the step of the times does not note that there is none.
func TestTimesThatCannotBeRead(t *testing.T) {
	for _, kind := range []string{"stat", "touch"} {
		for after := range 2 {
			base, faulty := fresh(t), sharedFS()
			src := open(t, fslock.Options{Base: base, FS: coarseFS{faulty, time.Second}})
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
			_, err := src.Contend(t.Context(), "job", longClaim(), source.Patience{})
			require.ErrorIs(t, err, syscall.EACCES)
			require.Equal(t, []string{"staging"}, namesIn(t, filepath.Join(base, ".multilock")))
		}
	}
}

// On NFS the directory's times stand for a look at the lock file, unless a breaker leaves
// the same time as the touch before him.
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

// The real thing: inodes of 128 bytes have no room for fractions of a second.
func TestFileSystemWithSmallInodes(t *testing.T) {
	requireRoot(t, "mounts")
	place := fresh(t)
	image := filepath.Join(place, "image")
	require.NoError(t, os.WriteFile(image, nil, 0o600))
	require.NoError(t, os.Truncate(image, 16<<20))
	if out, err := exec.Command("mkfs.ext4", "-q", "-I", "128", image).CombinedOutput(); err != nil {
		t.Skipf("no ext4 can be made here: %v %s", err, out)
	}
	dir := filepath.Join(place, "mounted")
	require.NoError(t, os.Mkdir(dir, 0o777))
	base := mounted(t, dir, "mount -o loop "+image+" .", "cd "+dir)
	here, there := open(t, fslock.Options{Base: base}), open(t, fslock.Options{Base: base, Self: elsewhere(t)})

	err := attempt(t, fslock.Options{Base: base}, "job", source.Patience{})(t.Context())
	require.NoError(t, err)
	_, err = multilock.TryAcquire(within(t), here, "short", multilock.Options{TTL: time.Second})
	require.ErrorContains(t, err, "use a ttl of 10s or more")
	require.True(t, strings.HasSuffix(markIn(t, base), ".replaces-1s"))

	lock := acquire(t, here, "job", multilock.Options{TTL: 10 * time.Second})
	neverDead(t, there, "job", 3*time.Second, func() { require.NoError(t, lock.Verify(t.Context())) })
}
