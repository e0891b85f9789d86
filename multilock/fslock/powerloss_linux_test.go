package fslock_test

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/source"
)

// A commit that was answered survives a power loss. One that was not answered has left
// a whole result or none: never one that nobody understands, which would keep the job
// from running ever again.
func TestResultsThroughPowerLosses(t *testing.T) {
	d := newDisk(t)
	committed, seen := map[string]bool{}, 0
	losses := 20
	if *longStress {
		losses = 200
	}
	for round := range losses {
		base, unmount := d.mount()
		answered := commitUntilPowerLoss(t, base, round)
		unmount()
		for _, name := range answered {
			committed[name] = true
		}
		base, unmount = d.mount()
		seen = requireResults(t, base, committed)
		unmount()
	}
	require.NotEmpty(t, committed)
	t.Logf("%d results were answered, %d are there", len(committed), seen)
}

// commitUntilPowerLoss has several committers at work when the power goes off, and
// returns the names of what they were answered to be recorded.
func commitUntilPowerLoss(t *testing.T, base string, round int) (answered []string) {
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
	time.Sleep(rand.N(40 * time.Millisecond)) // when it happens is what this is about
	powerOff(t, base)
	group.Wait()
	_ = src.Close() // closing what is on a dead disk may say so
	return answered
}

// commitOnce works with the lease itself, which can be closed without a disk.
func commitOnce(t *testing.T, src *fslock.Source, name string) error {
	t.Helper()
	c, err := src.Contend(t.Context(), name, longClaim(), source.Patience{})
	if err != nil {
		return err
	}
	defer c.Close() // nothing is staged any more, or it cannot be removed
	lease, err := c.Try(t.Context())
	if err != nil {
		return err
	}
	defer lease.Close()
	defer lease.Release(t.Context()) // it may have no disk any more
	return committer(lease).Commit(t.Context(), ended(lease.Record(), 1, 0))
}

// requireResults checks all that is there after a power loss, and returns how many
// results that are.
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

func newDisk(t *testing.T) *disk {
	t.Helper()
	requireRoot(t, "mounts")
	place := fresh(t)
	d := &disk{t: t, image: filepath.Join(place, "image"), dir: filepath.Join(place, "mounted")}
	require.NoError(t, os.Mkdir(d.dir, 0o777))
	require.NoError(t, os.WriteFile(d.image, nil, 0o600))
	require.NoError(t, os.Truncate(d.image, 64<<20))
	if out, err := exec.Command("mkfs.ext4", "-q", d.image).CombinedOutput(); err != nil {
		t.Skipf("no ext4 can be made here: %v %s", err, out)
	}
	return d
}

// mount mounts the disk, in a mount namespace of its own, and returns the path to it.
func (d *disk) mount() (base string, unmount func()) {
	d.t.Helper()
	cmd := exec.Command("unshare", "--mount", "--propagation", "private", "sh", "-c", `mount -o loop "$0" "$1" && echo mounted && cat && { umount "$1" 2>/dev/null || { sleep 1; umount "$1"; }; }`, d.image, d.dir)
	cmd.Stderr = os.Stderr
	input, err := cmd.StdinPipe() // cat waits for its end
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

// powerOff stops a file system as a power loss does: nothing that is on its way gets
// to the disk any more, the journal included.
func powerOff(t *testing.T, base string) {
	t.Helper()
	const shutdown, withoutFlush = 0x8004587d, 2 // FS_IOC_SHUTDOWN, of xfs, ext4 and f2fs
	dir, err := os.Open(base)
	require.NoError(t, err)
	defer dir.Close()
	require.NoError(t, unix.IoctlSetPointerInt(int(dir.Fd()), shutdown, withoutFlush))
}
