package main_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// Users that root has no reason to trust.
const (
	mallory = 65533
	neville = 65532 // another victim of mallory
)

// commons is a base directory of root's that mallory could write for a while, with files outside of it that
// only root can access.
type commons struct {
	*station
	outside string
	open    bool // mallory can write there now, and root trusts anybody
	before  map[string]string
}

// amongStrangers runs a scenario twice: with a base that was closed before root comes, where only mallory's
// remains are, and with an open base, where root trusts anybody.
func amongStrangers(t *testing.T, scene func(c *commons)) {
	t.Helper()
	t.Parallel()
	for setting, open := range map[string]bool{"closed": false, "open": true} {
		t.Run(setting, func(t *testing.T) {
			t.Parallel()
			scene(newCommons(t, open))
		})
	}
}

func newCommons(t *testing.T, open bool) *commons {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root, to play another user")
	}
	c := &commons{station: &station{t: t, base: forAll(t)}, outside: t.TempDir(), open: open}
	if open {
		c.env = []string{"MULTILOCK_TRUST=any"}
	}
	for _, dir := range []string{"etc", "etc/x", "etc/list.d"} {
		require.NoError(t, os.Mkdir(filepath.Join(c.outside, dir), 0o700))
	}
	for _, file := range []string{"shadow", "etc/list", "etc/x.locked", "etc/x/x.locked"} {
		require.NoError(t, os.WriteFile(filepath.Join(c.outside, file), []byte("root's own\n"), 0o600))
	}
	c.before = snapshot(t, c.outside)
	for _, dir := range []string{".multilock/staging", c.private("fence"), c.private("done"), c.private("history"), c.private("logs")} {
		require.NoError(t, os.MkdirAll(filepath.Join(c.base, dir), 0o755)) //nolint:gosec // as root's umask makes them
	}
	c.close()
	return c
}

// private returns a directory for the group's files.
func (c *commons) private(name string) string {
	return filepath.Join(".multilock", "groups", ".locks", name)
}

// plant runs a script as mallory in a directory of the base, while he can write all of root's directories.
// The files outside are in $OUT.
func (c *commons) plant(dir, script string, vars ...string) {
	c.t.Helper()
	c.chmodAll(0o777)
	cmd := exec.Command("sh", "-ec", script) //nolint:gosec // a test's own
	cmd.Dir = filepath.Join(c.base, dir)
	cmd.Env = append(os.Environ(), append(vars, "OUT="+c.outside)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: mallory, Gid: mallory}}
	said, err := cmd.CombinedOutput()
	require.NoError(c.t, err, "%s", said)
	c.close()
}

// close removes mallory's access, unless the base stays open.
func (c *commons) close() {
	c.t.Helper()
	if !c.open {
		c.chmodAll(0o755)
	}
}

// chmodAll changes the mode of root's directories.
func (c *commons) chmodAll(mode fs.FileMode) {
	c.t.Helper()
	require.NoError(c.t, filepath.WalkDir(c.base, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		if ownerOf(info) != 0 {
			return fs.SkipDir
		}
		return os.Chmod(path, mode)
	}))
}

func ownerOf(info fs.FileInfo) uint32 { return info.Sys().(*syscall.Stat_t).Uid } //nolint:forcetypeassert // on Linux

// unharmed requires that nothing was changed outside of the base.
func (c *commons) unharmed() {
	c.t.Helper()
	require.Equal(c.t, c.before, snapshot(c.t, c.outside), "outside of the base")
}

// named requires that a command has named mallory, or the place of his change.
func (c *commons) named(got ended, place string) {
	c.t.Helper()
	require.Regexp(c.t, fmt.Sprintf(`%d|%s`, mallory, place), got.stderr)
}

// snapshot describes a tree, except for what reading and linking change.
func snapshot(t testing.TB, root string) map[string]string {
	t.Helper()
	seen := map[string]string{}
	require.NoError(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		stat := info.Sys().(*syscall.Stat_t) //nolint:forcetypeassert // on Linux
		line := fmt.Sprint(info.Mode(), " ", stat.Uid, ":", stat.Gid, " ", info.Size(), " ", info.ModTime())
		if info.Mode().IsRegular() {
			content, err := os.ReadFile(path) //nolint:gosec // the test's own
			if err != nil {
				return err
			}
			line += fmt.Sprintf(" %x", sha256.Sum256(content))
		}
		seen[strings.TrimPrefix(path, root)] = line
		return nil
	}))
	return seen
}

// meanwhile repeats a function as mallory, in a separate thread, until over is called.
func (c *commons) meanwhile(do func()) (over func()) {
	var enough atomic.Bool
	done := make(chan error)
	go func() {
		done <- asMallory(func() {
			for !enough.Load() {
				do()
			}
		})
	}()
	return func() {
		c.t.Helper()
		enough.Store(true)
		require.NoError(c.t, <-done)
	}
}

// asMallory calls a function as mallory in a separate thread, which is discarded afterwards.
func asMallory(do func()) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		err := become(mallory)
		if err == nil {
			do()
		}
		done <- err
	}()
	return <-done
}

// become changes the user of the thread. The functions of package syscall would change all threads.
func become(uid uintptr) error {
	for _, call := range [][]uintptr{{unix.SYS_SETGROUPS, 0, 0, 0}, {unix.SYS_SETRESGID, uid, uid, uid}, {unix.SYS_SETRESUID, uid, uid, uid}} {
		if _, _, errno := unix.RawSyscall(call[0], call[1], call[2], call[3]); errno != 0 {
			return errno
		}
	}
	return nil
}

// deepTree makes nested directories.
func deepTree(path string, depth int) error {
	if err := os.Mkdir(path, 0o777); err != nil { //nolint:gosec // for a stranger's sake
		return err
	}
	at, err := unix.Open(path, unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	for ; err == nil && depth > 0; depth-- {
		if err = unix.Mkdirat(at, "d", 0o777); err != nil {
			break
		}
		below, failed := unix.Openat(at, "d", unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		_ = unix.Close(at)
		at, err = below, failed
	}
	return errors.Join(err, unix.Close(at))
}
