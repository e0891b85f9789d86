package fslock_test

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/internal/testkit/actor"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/source"
)

// mounted runs mount commands in a mount namespace of their own, of which
// nothing is left after the test, and returns the path by which root reaches
// the directory dir in there.
func mounted(t *testing.T, dir string, commands ...string) string {
	t.Helper()
	requireRoot(t, "mounts")
	script := strings.Join(append(commands, "echo mounted", "exec cat"), " && ")
	cmd := exec.Command("unshare", "--mount", "--propagation", "private", "sh", "-c", "cd "+dir+" && "+script)
	cmd.Stderr = os.Stderr
	_, err := cmd.StdinPipe() // cat waits for its end
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

// tiny is a filesystem of 64 KiB and so many inodes, with a base directory in it.
func tiny(t *testing.T, inodes int) string {
	t.Helper()
	base := mounted(t, fresh(t), fmt.Sprintf("mount -t tmpfs -o size=64k,nr_inodes=%d none .", inodes), "cd .")
	use(t, base)
	return base
}

// fill takes all the space, or with size 0 all the inodes.
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

func TestFullFileSystem(t *testing.T) {
	for what, c := range map[string]struct{ inodes, size int }{
		"out of space":  {1000, 4096},
		"out of inodes": {40, 0},
	} {
		t.Run(what, func(t *testing.T) {
			base := tiny(t, c.inodes)
			fill(t, base, c.size)
			refused(t, base, syscall.ENOSPC, []string{"full", "free some space"}, attempt(t, fslock.Options{Base: base, Group: "used"}, "job", source.Patience{}))
			requireEmptyDir(t, filepath.Join(base, ".multilock", "staging"))
			var op *source.OpError
			require.ErrorAs(t, attempt(t, fslock.Options{Base: base, Group: "used"}, "job", source.Patience{})(t.Context()), &op)
			require.Equal(t, "stage", op.Op)

			require.NoError(t, os.RemoveAll(filepath.Join(base, "ballast")))
			acquire(t, open(t, fslock.Options{Base: base, Group: "used"}), "job", multilock.Options{})
		})
	}
}

// A lock that is held already does not need space: only its number does.
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
	requireEmptyDir(t, filepath.Join(base, "used"))
}

// On a filesystem that is mounted read-only nothing can be locked, and whatever
// is locked can still be looked at.
func TestReadOnlyFileSystem(t *testing.T) {
	for what, prepare := range map[string]func(*testing.T) string{"used before": used, "never used": func(t *testing.T) string { return fresh(t) }} {
		t.Run(what, func(t *testing.T) {
			original := prepare(t)
			base := mounted(t, original, "mount --bind . .", "cd "+original, "mount -o remount,bind,ro .", "cd "+original)
			for _, group := range []string{"used", "new"} {
				refused(t, base, syscall.EROFS, []string{"read-only", "-d"}, attempt(t, fslock.Options{Base: base, Group: group}, "job", source.Patience{}))
			}
		})
	}
	original := used(t)
	writable, base := open(t, fslock.Options{Base: original}), mounted(t, original, "mount --bind . .", "cd "+original, "mount -o remount,bind,ro .")
	acquire(t, writable, "job", multilock.Options{TTL: long})
	seen, err := multilock.Inspect(t.Context(), open(t, fslock.Options{Base: base}), "job", source.Patience{})
	require.NoError(t, err)
	require.Equal(t, source.StateHeld.String(), seen.State.String())
	require.Equal(t, source.Unknown, seen.Silence)
}

// The lock's directory is moved into the group: that needs one filesystem.
func TestPartsOfTheBaseOnOtherFileSystems(t *testing.T) {
	for _, part := range []string{"used", ".multilock"} {
		for how, mount := range map[string]string{
			"another filesystem": "mount -t tmpfs none " + part,
			"a bind mount":       "mount --bind " + part + " " + part,
		} {
			t.Run(part+" is "+how, func(t *testing.T) {
				base := mounted(t, used(t), mount)
				if part == ".multilock" {
					require.NoError(t, first(os.MkdirAll(filepath.Join(base, part, "staging"), 0o777), markTested(t, base)))
				}
				refused(t, base, syscall.EXDEV, []string{"one filesystem", "bind mount"},
					attempt(t, fslock.Options{Base: base, Group: "used"}, "job", source.Patience{}))
			})
		}
	}
}

// markTested lets the filesystem's test run, which leaves its marker, by an
// attempt that fails on the rename.
func markTested(t *testing.T, base string) error {
	err := attempt(t, fslock.Options{Base: base, Group: "used"}, "warm-up", source.Patience{})(t.Context())
	if !errors.Is(err, syscall.EXDEV) {
		return fmt.Errorf("the warm-up: %w", err)
	}
	return nil
}

// A base that this user may only look at, and one that has nothing in it yet.
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

// One that this user may not even open.
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
