package fslock_test

import (
	"bufio"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/multilock/go/internal/testkit/actor"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/source"
)

// mounted runs mount commands in their own mount namespace, which disappears with the test, and returns the
// path by which root reaches the directory dir in there.
func mounted(t *testing.T, dir string, commands ...string) string {
	t.Helper()
	requireRoot(t, "mounts")
	script := strings.Join(append(commands, "echo mounted", "exec cat"), " && ")
	cmd := exec.Command("unshare", "--mount", "--propagation", "private", "sh", "-c", "cd "+dir+" && "+script)
	cmd.Stderr = os.Stderr
	_, err := cmd.StdinPipe() // cat waits until it is closed
	require.NoError(t, err)
	output, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	said, err := bufio.NewReader(output).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "mounted\n", said)
	return fmt.Sprintf("/proc/%d/root%s", cmd.Process.Pid, dir)
}

// tiny is a filesystem of 64 KiB with that many inodes, with a base directory in it.
func tiny(t *testing.T, inodes int) string {
	t.Helper()
	base := mounted(t, fresh(t), fmt.Sprintf("mount -t tmpfs -o size=64k,nr_inodes=%d none .", inodes), "cd .")
	use(t, base)
	return base
}

// fill uses up all the space, or with size 0 all the inodes.
func fill(t *testing.T, base string, size int) {
	t.Helper()
	dir := filepath.Join(base, "ballast")
	require.NoError(t, os.Mkdir(dir, 0o777))
	for i := 0; ; i++ {
		err := os.WriteFile(filepath.Join(dir, fmt.Sprint(i)), make([]byte, size), 0o666)
		if err != nil {
			require.ErrorIs(t, err, syscall.ENOSPC)
			return
		}
	}
}

// Rule: stage, I4
func TestFullFileSystem(t *testing.T) {
	for what, c := range map[string]struct{ inodes, size int }{
		"out of space":  {1000, 4096},
		"out of inodes": {40, 0},
	} {
		t.Run(what, func(t *testing.T) {
			base := tiny(t, c.inodes)
			fill(t, base, c.size)
			refused(t, base, syscall.ENOSPC, []string{"full", "free some space"}, attempt(t, fslock.Options{Base: base, Group: "used"}, "job", source.StalePolicy{}))
			require.Empty(t, namesIn(t, filepath.Join(base, ".multilock", "staging")))
			var op *source.OpError
			require.ErrorAs(t, attempt(t, fslock.Options{Base: base, Group: "used"}, "job", source.StalePolicy{})(t.Context()), &op)
			require.Equal(t, "stage", op.Op)

			require.NoError(t, os.RemoveAll(filepath.Join(base, "ballast")))
			acquire(t, open(t, fslock.Options{Base: base, Group: "used"}), "job", multilock.Options{})
		})
	}
}

// A held lock needs no more space: only its fence number does.
// Rule: fence, I4
func TestFileSystemThatFillsUpUnderAHeldLock(t *testing.T) {
	base := tiny(t, 1000)
	src := open(t, fslock.Options{Base: base, Group: "used"})
	lock := acquire(t, src, "job", multilock.Options{TTL: long})
	fill(t, base, 4096)
	require.NoError(t, lock.Verify(t.Context()))
	_, err := lock.Fence(t.Context())
	require.ErrorIs(t, err, syscall.ENOSPC)
	require.NotErrorIs(t, err, source.ErrLost)
	require.NoError(t, lock.Verify(t.Context()))
	require.NoError(t, lock.Release(t.Context()))
	require.Empty(t, namesIn(t, filepath.Join(base, "used")))
}

// On a filesystem that is mounted read-only locks cannot be acquired, but can still be inspected.
// Rule: server-clock
func TestReadOnlyFileSystem(t *testing.T) {
	for what, prepare := range map[string]func(*testing.T) string{"used before": used, "never used": func(t *testing.T) string { return fresh(t) }} {
		t.Run(what, func(t *testing.T) {
			original := prepare(t)
			base := mounted(t, original, "mount --bind . .", "cd "+original, "mount -o remount,bind,ro .", "cd "+original)
			for _, group := range []string{"used", "new"} {
				refused(t, base, syscall.EROFS, []string{"read-only", "-d"}, attempt(t, fslock.Options{Base: base, Group: group}, "job", source.StalePolicy{}))
			}
		})
	}
	original := used(t)
	writable, base := open(t, fslock.Options{Base: original}), mounted(t, original, "mount --bind . .", "cd "+original, "mount -o remount,bind,ro .")
	acquire(t, writable, "job", multilock.Options{TTL: long})
	seen, err := multilock.Inspect(t.Context(), open(t, fslock.Options{Base: base}), "job", source.StalePolicy{})
	require.NoError(t, err)
	require.Equal(t, source.StateHeld.String(), seen.State.String())
	require.Equal(t, source.Unknown, seen.Silence)
}

// The lock's directory is moved into the group: that needs a single filesystem.
// Rule: base
func TestPartsOfTheBaseOnOtherFileSystems(t *testing.T) {
	for _, part := range []string{"used", ".multilock"} {
		for how, mount := range map[string]string{
			"another filesystem": "mount -t tmpfs -o mode=755 none " + part,
			"a bind mount":       "mount --bind " + part + " " + part,
		} {
			t.Run(part+" is "+how, func(t *testing.T) {
				base := mounted(t, used(t), mount)
				if part == ".multilock" {
					require.NoError(t, errors.Join(os.MkdirAll(filepath.Join(base, part, "staging"), 0o777), markTested(t, base)))
				}
				refused(t, base, syscall.EXDEV, []string{"one filesystem", "bind mount"},
					attempt(t, fslock.Options{Base: base, Group: "used"}, "job", source.StalePolicy{}))
			})
		}
	}
}

// markTested runs the filesystem's test, which leaves its mark, by an attempt that fails on the rename.
func markTested(t *testing.T, base string) error {
	err := attempt(t, fslock.Options{Base: base, Group: "used"}, "warm-up", source.StalePolicy{})(t.Context())
	if !errors.Is(err, syscall.EXDEV) {
		return fmt.Errorf("the warm-up: %w", err)
	}
	return nil
}

// A base that this user may only read, and one that is still empty.
// Rule: base
func TestUnwritableBase(t *testing.T) {
	requireRoot(t, "another user")
	for what, prepare := range map[string]func(*testing.T) string{"used before": used, "never used": func(t *testing.T) string { return fresh(t) }} {
		t.Run(what, func(t *testing.T) {
			base := prepare(t)
			require.NoError(t, os.Chmod(base, 0o755))
			before := tree(t, base)
			p := newNeighbour(t, setting{UID: alice}, order{Base: base, Group: "used"})
			refused := p.do(t, order{Do: "try", Name: "job"})
			require.Contains(t, refused.Is, "EACCES")
			require.Contains(t, refused.Error, "permissions")
			require.Equal(t, "free", p.must(t, order{Do: "look", Name: "job"}).State)
			require.Equal(t, before, tree(t, base))
		})
	}
}

// A base that this user may not even open.
// Rule: base
func TestBaseThatMayNotBeOpened(t *testing.T) {
	requireRoot(t, "another user")
	base := fresh(t)
	require.NoError(t, os.Chmod(base, 0o700))
	p := neighbour{actor.Prepare(t, "neighbour", nil)}
	p.RunAs(alice)
	p.Start(t)
	refused := p.do(t, order{Do: "open", Base: base})
	require.Contains(t, refused.Is, "invalid")
	require.Contains(t, refused.Error, "may not be opened by this user")
}

// A commit that was answered survives a power loss. One that was not answered leaves a whole result or
// none, and never an unreadable one, which would prevent the job from ever running again.
// Rule: commit
func TestResultsThroughPowerLosses(t *testing.T) {
	d := newDisk(t)
	committed, seen := map[string]bool{}, 0
	losses := 20
	if *longStress {
		losses = 200
	}
	for round := 0; round < losses || len(committed) == 0; round++ { // on a busy machine no commit may be answered in time
		base, unmount := d.mount()
		answered := commitUntilPowerLoss(t, base, round, 40*time.Millisecond<<(round/losses))
		unmount()
		for _, name := range answered {
			committed[name] = true
		}
		base, unmount = d.mount()
		seen = requireResults(t, base, committed)
		unmount()
	}
	t.Logf("%d results were answered, %d are there", len(committed), seen)
}

// commitUntilPowerLoss runs several committers until the power goes off, and returns the names of the
// results that were confirmed.
func commitUntilPowerLoss(t *testing.T, base string, round int, within time.Duration) (answered []string) {
	t.Helper()
	const committers = 4
	src, err := fslock.Open(fslock.Options{Base: base})
	require.NoError(t, err)
	var mu sync.Mutex
	var group sync.WaitGroup
	for i := range committers {
		group.Go(func() {
			for n := 0; ; n++ {
				name := fmt.Sprintf("job-%d-%d-%d", round, i, n)
				if commitOnce(t, src, name) != nil {
					return // the power is off
				}
				mu.Lock()
				answered = append(answered, name)
				mu.Unlock()
			}
		})
	}
	time.Sleep(rand.N(within)) // the loss comes at a random moment
	powerOff(t, base)
	group.Wait()
	_ = src.Close() // closing files on a dead disk may fail
	return answered
}

// commitOnce uses the lease itself, which can be closed without a disk.
func commitOnce(t *testing.T, src *fslock.Source, name string) error {
	t.Helper()
	c, err := src.Contend(t.Context(), name, longClaim(), source.StalePolicy{})
	if err != nil {
		return err
	}
	defer c.Close() // nothing is staged any more, or it cannot be removed
	lease, err := c.Try(t.Context())
	if err != nil {
		return err
	}
	defer lease.Close()
	defer lease.Release(t.Context()) // its disk may be gone
	return committer(lease).Commit(t.Context(), ended(lease.Record(), 1, 0))
}

// requireResults checks all results after a power loss, and returns how many there are.
func requireResults(t *testing.T, base string, committed map[string]bool) int {
	t.Helper()
	src, err := fslock.Open(fslock.Options{Base: base})
	require.NoError(t, err)
	defer src.Close()
	names, err := src.Results(t.Context())
	require.NoError(t, err)
	for name := range committed {
		r, err := src.Result(t.Context(), name)
		require.NoError(t, err, "%s was answered", name)
		require.True(t, r.OK(), "%s was answered, and is now %+v", name, r)
	}
	for _, name := range names {
		r, err := src.Result(t.Context(), name)
		require.NoError(t, err)
		require.True(t, r.OK(), "%s is now %+v", name, r)
	}
	return len(names)
}

// disk is an ext4 file system in a file.
type disk struct {
	t     *testing.T
	image string
	dir   string
}

func newDisk(t *testing.T, options ...string) *disk {
	t.Helper()
	requireRoot(t, "mounts")
	place := fresh(t)
	d := &disk{t: t, image: filepath.Join(place, "image"), dir: filepath.Join(place, "mounted")}
	require.NoError(t, os.Mkdir(d.dir, 0o777))
	require.NoError(t, os.WriteFile(d.image, nil, 0o600))
	require.NoError(t, os.Truncate(d.image, 64<<20))
	if out, err := exec.Command("mkfs.ext4", append(options, "-q", d.image)...).CombinedOutput(); err != nil {
		t.Skipf("no ext4 can be made here: %v %s", err, out)
	}
	return d
}

// mount mounts the disk, in its own mount namespace, and returns the path to it.
func (d *disk) mount() (base string, unmount func()) {
	d.t.Helper()
	cmd := exec.Command("unshare", "--mount", "--propagation", "private", "sh", "-c", `mount -o loop "$0" "$1" && echo mounted && cat && { umount "$1" 2>/dev/null || { sleep 1; umount "$1"; }; }`, d.image, d.dir)
	cmd.Stderr = os.Stderr
	input, err := cmd.StdinPipe() // cat waits until it is closed
	require.NoError(d.t, err)
	output, err := cmd.StdoutPipe()
	require.NoError(d.t, err)
	require.NoError(d.t, cmd.Start())
	if said, err := bufio.NewReader(output).ReadString('\n'); err != nil {
		_ = cmd.Wait()
		d.t.Skipf("no file can be mounted here: %v %s", err, said)
	}
	return fmt.Sprintf("/proc/%d/root%s", cmd.Process.Pid, d.dir), func() {
		d.t.Helper()
		require.NoError(d.t, input.Close())
		require.NoError(d.t, cmd.Wait())
	}
}

// powerOff stops a file system as a power loss does: no pending write reaches the disk any more, including
// the journal.
func powerOff(t *testing.T, base string) {
	t.Helper()
	const shutdown, withoutFlush = 0x8004587d, 2 // FS_IOC_SHUTDOWN, of xfs, ext4 and f2fs
	dir, err := os.Open(base)
	require.NoError(t, err)
	defer dir.Close()
	require.NoError(t, unix.IoctlSetPointerInt(int(dir.Fd()), shutdown, withoutFlush))
}
