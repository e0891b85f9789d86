//go:build linux

package fslock_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/source"
)

// used is a base directory in which a lock has been held before, so that all of multilock's own entries
// exist and a listing shows what an attempt leaves behind.
func used(t *testing.T) string {
	t.Helper()
	base := fresh(t)
	use(t, base)
	return base
}

func use(t *testing.T, base string) {
	t.Helper()
	src := open(t, fslock.Options{Base: base, Group: "used"})
	lock := acquire(t, src, "once", multilock.Options{})
	require.NoError(t, lock.Release(t.Context()))
}

// refused makes an attempt that must fail, with a helpful message, and must neither create nor lose
// anything in base.
func refused(t *testing.T, base string, is error, words []string, attempt func(ctx context.Context) error) {
	t.Helper()
	before := tree(t, base)
	err := attempt(within(t))
	require.ErrorIs(t, err, is)
	for _, word := range words {
		require.ErrorContains(t, err, word)
	}
	require.Equal(t, before, tree(t, base))
}

// attempt tries to acquire the lock name as a contender does.
func attempt(t *testing.T, opt fslock.Options, name string, policy source.StalePolicy) func(context.Context) error {
	return func(ctx context.Context) error {
		src, err := fslock.Open(opt)
		if err != nil {
			return err
		}
		defer src.Close()
		lock, err := multilock.TryAcquire(ctx, src, name, multilock.Options{StalePolicy: policy})
		if err == nil {
			require.NoError(t, lock.Release(ctx))
		}
		return err
	}
}

// Rule: base
func TestNamesThatCannotBe(t *testing.T) {
	base := used(t)
	for what, c := range map[string]struct{ name, why string }{
		"empty":    {"", "must not be empty"},
		"dot":      {".", "means a directory"},
		"dot dot":  {"..", "means a directory"},
		"slash":    {"a/b", "slash"},
		"absolute": {"/etc/passwd", "slash"},
		"escape":   {"../escape", "slash"},
		"NUL":      {"a\x00b", "NUL"},
		"too long": {strings.Repeat("n", 300), "300 bytes"},
	} {
		t.Run(what, func(t *testing.T) {
			require.ErrorIs(t, fslock.CheckName(c.name), source.ErrInvalid)
			src := open(t, fslock.Options{Base: base})
			for _, do := range []func(context.Context) error{
				attempt(t, fslock.Options{Base: base}, c.name, source.StalePolicy{}),
				func(ctx context.Context) error {
					_, err := multilock.Inspect(ctx, src, c.name, source.StalePolicy{})
					return err
				},
				func(ctx context.Context) error {
					_, err := multilock.Break(ctx, src, c.name, multilock.BreakOptions{Alive: true})
					return err
				},
				func(ctx context.Context) error {
					_, err := src.Result(ctx, c.name)
					return err
				},
			} {
				refused(t, base, source.ErrInvalid, []string{"lock name", c.why}, do)
			}
			if c.name != "" { // "" is the default group
				refused(t, base, source.ErrInvalid, []string{"lock group", c.why}, attempt(t, fslock.Options{Base: base, Group: c.name}, "job", source.StalePolicy{}))
			}
		})
	}
	refused(t, base, source.ErrInvalid, []string{"lock group", "its own files"},
		attempt(t, fslock.Options{Base: base, Group: ".multilock"}, "job", source.StalePolicy{}))
}

// The longest name that fits can be acquired.
// Rule: base
func TestLongestName(t *testing.T) {
	name := strings.Repeat("n", 255-len(".locked"))
	src := open(t, fslock.Options{Base: used(t)})
	lock := acquire(t, src, name, multilock.ForJob{})
	require.NoError(t, lock.Verify(t.Context()))
	require.NoError(t, lock.Release(t.Context()))
	require.ErrorIs(t, fslock.CheckName(name+"n"), source.ErrInvalid)
}

// Rule: base
func TestBasesThatCannotBe(t *testing.T) {
	parent := fresh(t)
	file := filepath.Join(parent, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o644))
	for what, c := range map[string]struct {
		base string
		why  []string
	}{
		"missing":    {filepath.Join(parent, "missing"), []string{"does not exist", "create it"}},
		"a file":     {file, []string{"is not a directory"}},
		"below file": {filepath.Join(file, "base"), []string{"is not a directory"}},
	} {
		t.Run(what, func(t *testing.T) {
			refused(t, parent, source.ErrInvalid, append(c.why, "base directory", c.base),
				attempt(t, fslock.Options{Base: c.base}, "job", source.StalePolicy{}))
		})
	}
}

// Files, FIFOs and links in the places of multilock's own directories are rejected by name.
// Rule: base
func TestForeignThingsInOurPlaces(t *testing.T) {
	for place, c := range map[string]struct {
		path string
		is   error
		why  []string
	}{
		"the lock":    {"group/job", source.ErrInvalid, []string{"lock name", "group/job is ", "move it away"}},
		"the group":   {"group", source.ErrInvalid, []string{"lock group", "/group\": is not a directory", "choose another group"}},
		".multilock":  {".multilock", source.ErrInvalid, []string{"base directory", ".multilock", "move it away"}},
		"the staging": {".multilock/staging", source.ErrInvalid, []string{"base directory", ".multilock", "move it away"}},
	} {
		for kind, put := range things(t) {
			t.Run(place+" is "+kind, func(t *testing.T) {
				base := used(t)
				path := filepath.Join(base, c.path)
				require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o777))
				require.NoError(t, os.RemoveAll(path))
				require.NoError(t, put(path))
				words := c.why
				if place == "the lock" {
					words = append([]string{kind}, words...)
				}
				for _, legacy := range []bool{false, true} {
					refused(t, base, c.is, words,
						attempt(t, fslock.Options{Base: base, Group: "group", LegacyPeers: legacy}, "job", source.StalePolicy{MaxAge: time.Second}))
				}
			})
		}
	}
}

// things are entries that may be found where a directory should be.
func things(t *testing.T) map[string]func(path string) error {
	target := fresh(t)
	return map[string]func(string) error{
		"a file":          func(path string) error { return os.WriteFile(path, []byte("data"), 0o644) },
		"a FIFO":          func(path string) error { return syscall.Mkfifo(path, 0o644) },
		"a symbolic link": func(path string) error { return os.Symlink(target, path) },
	}
}

// A directory with a user's data in it is not a lock, and is never cleared.
// Rule: orphan
func TestDirectoryWithForeignFilesIsLeftAlone(t *testing.T) {
	base := used(t)
	dir := filepath.Join(base, "group", "job")
	require.NoError(t, os.MkdirAll(dir, 0o777))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "thesis.txt"), []byte("years of work"), 0o644))
	age(t, dir)
	refused(t, base, source.ErrHeld, []string{"thesis.txt", "move that away"},
		attempt(t, fslock.Options{Base: base, Group: "group"}, "job", source.StalePolicy{MaxAge: time.Second}))
	refused(t, base, source.ErrInvalid, []string{"thesis.txt", "move them away"}, func(ctx context.Context) error {
		_, err := multilock.Break(ctx, open(t, fslock.Options{Base: base, Group: "group"}), "job", multilock.BreakOptions{Alive: true})
		return err
	})
}

// age makes a directory look unchanged for an hour.
func age(t *testing.T, dir string) {
	t.Helper()
	hourAgo := time.Now().Add(-time.Hour)
	require.NoError(t, os.Chtimes(dir, hourAgo, hourAgo))
}

// Wherever an attempt exceeds a quota, it is withdrawn, and its error names the quota. An NFS client may
// report it as late as in sync or close.
// Rule: stage, I4
func TestDiskQuota(t *testing.T) {
	for kind, legacies := range map[string][]bool{
		"mkdir": {false, true}, "opendurable": {false, true}, "write": {false, true}, "sync": {false}, "file.close": {false},
		"rename": {false}, // with legacy peers the empty directory is already there, and is cleared by age
	} {
		for _, legacy := range legacies {
			base, faults := used(t), sharedFS()
			opt := fslock.Options{Base: base, Group: "used", LegacyPeers: legacy, FS: faults}
			lock := acquire(t, open(t, opt), "job", multilock.Options{}) // also tests this kind of filesystem
			require.NoError(t, lock.Release(t.Context()))
			faults.Inject(denying(kind, syscall.EDQUOT, -1))
			refused(t, base, syscall.EDQUOT, []string{"quota is used up"}, attempt(t, opt, "job", source.StalePolicy{}))
		}
	}
}

// tree lists everything below a directory: type, mode, and content. It leaves times out, because a look may
// change access times.
func tree(t testing.TB, root string) []string {
	t.Helper()
	var list []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		content, err := describe(path, info)
		list = append(list, fmt.Sprintf("%s %s %s", path, info.Mode(), content))
		return err
	})
	require.NoError(t, err)
	return list
}

// describe reads a file unless that would take long or block.
func describe(path string, info fs.FileInfo) (string, error) {
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		return os.Readlink(path)
	case !info.Mode().IsRegular():
		return "", nil
	case info.Size() > 1<<20:
		return fmt.Sprintf("%d bytes", info.Size()), nil
	}
	data, err := os.ReadFile(path)
	return fmt.Sprintf("%x", sha256.Sum256(data)), err
}
