package fslock_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/vfs"
	"github.com/multilock/go/multilock/vfs/faultfs"
)

func examined(t *testing.T, opt fslock.Options) map[string]source.Finding {
	t.Helper()
	src, err := fslock.Open(opt)
	require.NoError(t, err)
	defer src.Close()
	found := map[string]source.Finding{}
	for _, f := range src.Examine(t.Context()) {
		found[f.Subject+" "+string(f.Severity)] = f
	}
	return found
}

// A directory that was reached through another mount namespace is on a mount that is not in our table.
// Rule: none (doctor)
func TestExamineAMountThatCannotBeSeen(t *testing.T) {
	found := examined(t, fslock.Options{Base: tiny(t, 100)})
	require.Contains(t, found["mount ok"].Text, "its mount is in no place that this process can see")
	require.Contains(t, found, "rules ok")
}

// Rule: none (doctor)
func TestExamineOurOwnMount(t *testing.T) {
	t.Parallel()
	found := examined(t, fslock.Options{Base: "/dev/shm"})
	require.Contains(t, found["mount ok"].Text, "tmpfs at /dev/shm")
	require.Contains(t, found["mount warning"].Text, "this filesystem (tmpfs) is local")
	require.Contains(t, found, "rules ok")
	require.Contains(t, found, "clock ok")
}

// doctor repeats the filesystem's test: the mark of an earlier one may be out of date.
// Rule: fs-test
func TestExamineFindsAFileSystemThatReplaces(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	faulty := sharedFS()
	require.Contains(t, examined(t, fslock.Options{Base: base, FS: faulty}), "rules ok")
	src, err := fslock.Open(fslock.Options{Base: base, FS: faulty})
	require.NoError(t, err)
	lock, err := multilock.TryAcquire(t.Context(), src, "x", multilock.Options{}) // this leaves a marker
	require.NoError(t, err)
	require.NoError(t, errors.Join(lock.Release(t.Context()), src.Close()))

	faulty.Inject(breaking("rmdir", func(op faultfs.Op) error { return errors.Join(os.RemoveAll(op.Real), faultfs.ErrPretend) }))
	found := examined(t, fslock.Options{Base: base, FS: faulty})
	require.Contains(t, found["rules critical"].Text, "rmdir of a directory that is not empty")
}

// A wrong clock of the server is harmless, but deserves a warning.
// Rule: I5
func TestExamineAClockThatIsWrong(t *testing.T) {
	t.Parallel()
	for _, ahead := range []time.Duration{time.Hour, -time.Hour} {
		faulty := sharedFS()
		faulty.Inject(at("touchfile", faultfs.After, "", func(op faultfs.Op) error {
			if !strings.HasSuffix(op.Path, "/staging") {
				return nil
			}
			moment := time.Now().Add(ahead)
			return os.Chtimes(op.Real, moment, moment)
		}))
		f := examined(t, fslock.Options{Base: t.TempDir(), FS: faulty})["clock warning"]
		require.Contains(t, f.Text, map[bool]string{true: "ahead of", false: "behind"}[ahead > 0])
		require.Contains(t, f.Text, "clock is 1h0m0s ")
		require.NotEmpty(t, f.Advice)
	}
}

// Rule: fs-test
func TestExamineAReadOnlyDirectory(t *testing.T) {
	t.Parallel()
	found := examined(t, fslock.Options{Base: "/proc"})
	require.Contains(t, found, "rules critical")
	require.NotEmpty(t, found["rules critical"].Advice)
	require.NotContains(t, found, "clock critical", "it is the same failure")
	_, err := os.Stat("/proc/.multilock")
	require.ErrorIs(t, err, syscall.ENOENT)
}

// doctor reports exactly what the filesystem's test found.
// Rule: fs-test, coarse-times
func TestExamineTellsTheTraits(t *testing.T) {
	t.Parallel()
	never := sharedFS()
	never.Inject(refusing(syscall.EEXIST))
	for name, c := range map[string]struct {
		fs         vfs.FS
		told, more string
	}{
		"plain":            {sharedFS(), "empty directories only", ""},
		"never replaces":   {never, "not even an empty directory", ""},
		"in whole seconds": {coarse(time.Second), "empty directories only", "resolution of 1s"},
	} {
		t.Run(name, func(t *testing.T) {
			text := examined(t, fslock.Options{Base: t.TempDir(), FS: c.fs})["rules ok"].Text
			require.Contains(t, text, c.told)
			require.Equal(t, c.more != "", strings.Contains(text, "resolution"), text)
			require.Contains(t, text, c.more)
		})
	}
}

// The end of a process is evidence only where its boot is known.
// Rule: process-gone
func TestGuaranteeAboutDeadProcesses(t *testing.T) {
	nobody := self(t)
	nobody.Boot = ""
	for who, told := range map[process.Identity]string{self(t): "own pid namespace", nobody: "only missed heartbeats decide"} {
		for _, p := range open(t, fslock.Options{Base: t.TempDir(), Self: who}).Guarantees() {
			if p.Trait == source.TraitDeadProcess {
				require.Contains(t, p.Why, told)
				require.Equal(t, who.Boot != "", p.Kept)
			}
		}
	}
}

// An error in the filesystem's test is reported as it is: it proves nothing about the filesystem, and
// leaves no mark. A lost reply is not an error.
// Rule: fs-test
func TestFileSystemsTestMeetsAnError(t *testing.T) {
	for name, c := range map[string]struct {
		inject faultfs.Injector
		told   syscall.Errno // 0 if the test goes on
	}{
		"no room":                   {denyingAt("create", "/file", syscall.ENOSPC, -1), syscall.ENOSPC},
		"a part may not be opened":  {denyingAt("opendir", "/full", syscall.EACCES, -1), syscall.EACCES},
		"the last rename in doubt":  {denyingAt("rename", "/empty", syscall.EIO, -1), syscall.EIO},
		"the base does not answer":  {denyingAt("stat", ".", syscall.EACCES, 1), syscall.EACCES},
		"a reply was lost":          {denyingAt("mkdir", ".selftest", syscall.EEXIST, 1), 0},
		"another made the mark":     {denyingAt("mkdir", "fs-", syscall.EEXIST, 1), 0},
		"late news of absence":      {denyingAt("opendir", ".multilock", syscall.ENOENT, 3), 0},
		"a slow close":              {denyingAt("rmdir", ".selftest", syscall.ENOTEMPTY, 3), 0},
		"staging may not be opened": {denyingAt("opendir", "/staging", syscall.EACCES, -1), syscall.EACCES},
		"no mark may be made":       {denyingAt("mkdir", "fs-", syscall.EACCES, 1), syscall.EACCES},
	} {
		t.Run(name, func(t *testing.T) {
			base, faulty := fresh(t), sharedFS()
			src := open(t, fslock.Options{Base: base, FS: faulty})
			faulty.Inject(c.inject)
			waiter, err := src.Contend(t.Context(), sweptName, longClaim(), source.StalePolicy{})
			faulty.Inject(nil)
			if c.told == 0 {
				require.NoError(t, err)
				closed(t, waiter)
				left, err := filepath.Glob(filepath.Join(base, ".multilock", "staging", "*.selftest"))
				require.NoError(t, err)
				require.Empty(t, left)
				return
			}
			require.ErrorIs(t, err, c.told)
			require.NotErrorIs(t, err, source.ErrInvalid)
			marks, err := filepath.Glob(filepath.Join(base, ".multilock", "fs-*"))
			require.NoError(t, err)
			require.Empty(t, marks)
		})
	}
}

// The mark of a network filesystem depends on its mount.
// Rule: fs-test
func TestMarkIsOfTheMount(t *testing.T) {
	base, _, src := contested(t, scene{})
	for _, f := range src.Examine(t.Context()) {
		if f.Subject == "mount" && strings.Contains(f.Text, "in no place") {
			t.Skip(f.Text)
		}
	}
	require.NotContains(t, markIn(t, base), "fs-test-")
}

// NFS servers know a client by its host's name, so doctor reports two hosts of one name.
// Rule: none (doctor)
func TestExamineFindsAHostOfTheSameName(t *testing.T) {
	t.Parallel()
	base, fs := t.TempDir(), sharedFS()
	on := func(host, machine string) map[string]source.Finding {
		return examined(t, fslock.Options{Base: base, FS: fs, Self: process.Identity{Host: host, Machine: machine, PID: 1}})
	}
	require.NotContains(t, on("web", "1111111111111111"), "host warning")
	require.NotContains(t, on("web", "1111111111111111"), "host warning", "the same host again")
	require.NotContains(t, on("db", "2222222222222222"), "host warning")
	for _, machine := range []string{"3333333333333333", "1111111111111111"} {
		found := on("web", machine)["host warning"]
		require.Contains(t, found.Text, "another host is also named web")
		require.Contains(t, found.Advice, "multilock help filesystems")
	}
}
