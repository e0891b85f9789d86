package fslock_test

import (
	"errors"
	"fmt"
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
	"github.com/multilock/go/multilock/vfs/faultfs"
)

// ageStaged makes everything staged older than the janitor's limit.
func ageStaged(t *testing.T, base string) {
	t.Helper()
	staging := filepath.Join(base, ".multilock", "staging")
	old := time.Now().Add(-25 * time.Hour)
	for _, name := range namesIn(t, staging) {
		require.NoError(t, os.Chtimes(filepath.Join(staging, name), old, old))
	}
}

// N11: a contender that was suspended for a day was swept. When it resumes it must not acquire the lock
// with an empty directory, which any process could replace.
// Rule: staging, stopped
func TestPausedContenderIsSwept(t *testing.T) {
	for _, s := range modes() {
		t.Run(s.name, func(t *testing.T) {
			base, faulty, src := contested(t, s)
			janitor := open(t, fslock.Options{Base: base, FS: sharedFS(), Self: elsewhere(t)})
			faulty.Inject(placing(base, faultfs.Before, times(1, func(faultfs.Op) error {
				ageStaged(t, base)
				swept, err := janitor.Sweep(t.Context())
				require.Len(t, swept, 1)
				return err
			})))
			requireOurs(t, base, src)
			require.NoError(t, errors.Join(janitor.Close(), src.Close()))
			requireClosed(t, base)
			requireTidy(t, base)
		})
	}
}

// N11: at whichever of the janitor's operations the contender resumes, it acquires the lock, with its file
// in it, and the janitor does not touch that.
// Rule: staging, stopped
func TestPausedContenderGoesOnWhileItIsSwept(t *testing.T) {
	for n := 0; ; n++ {
		if runJanitorRace(t, n) {
			require.Positive(t, n)
			return
		}
	}
}

func runJanitorRace(t *testing.T, n int) (ended bool) {
	base, _, src := contested(t, scene{})
	waiter := contend(t, src, sweptName, longClaim())
	ageStaged(t, base)
	faulty := sharedFS()
	janitor := open(t, fslock.Options{Base: base, FS: faulty, Self: elsewhere(t)})
	var lease source.Lease
	faulty.Inject(func(op faultfs.Op) error {
		if op.N == n && op.Phase == faultfs.Before {
			lease = try(t, waiter)
		}
		return nil
	})
	_, err := janitor.Sweep(t.Context())
	require.NoError(t, err)
	if lease == nil {
		return true
	}
	require.NoError(t, lease.Renew(t.Context()), "operation %d", n)
	require.Equal(t, lease.Record().Token, tokenOnDisk(t, base))
	release(t, lease)
	closed(t, waiter)
	requireTidy(t, base)
	return false
}

// Leftovers of a dead process of this host are swept at once; those that may be another host's only after a
// day. Both have a reason.
// Rule: staging
func TestLeftoversOfTheDeadAndOfStrangers(t *testing.T) {
	base, faulty, src := contested(t, scene{})
	for who, left := range map[process.Identity]string{theDead(self(t)): "its maker is gone", elsewhere(t): "younger than a day"} {
		refused := contend(t, open(t, fslock.Options{Base: base, FS: sharedFS(), Self: who}), sweptName, abandonedBy(who))
		found, err := src.Leftovers(t.Context())
		require.NoError(t, err)
		require.Len(t, found, 1)
		require.Contains(t, found[0].Why, left)
		require.Equal(t, who.Host == self(t).Host, found[0].Dead)
		closed(t, refused)
	}
	faulty.Inject(denyingAt("touchfile", "/staging", syscall.EACCES, -1))
	time.Sleep(tick)
	later := open(t, fslock.Options{Base: base, FS: faulty})
	_, err := later.Leftovers(t.Context())
	require.ErrorIs(t, err, syscall.EACCES, "without the clock nobody knows how old they are")
}

// A leftover that cannot be removed is reported, and swept the next time.
// Rule: staging
func TestSweepThatFails(t *testing.T) {
	for _, c := range []struct{ kind, part string }{
		{"rename", "/.trash-"}, {"opendir", "/.trash-"}, {"list", "/.trash-"}, {"opendir", "/.trash-<token2>/full"}, {"rmdir", "/full"}, {"rmdir", "/.trash-<token2>"},
	} {
		t.Run(c.kind+" "+c.part, func(t *testing.T) {
			base, faulty, src := contested(t, scene{})
			staging := filepath.Join(base, ".multilock", "staging")
			left := filepath.Join(staging, source.NewToken()+".selftest", "full")
			require.NoError(t, os.MkdirAll(left, 0o777))
			require.NoError(t, os.WriteFile(filepath.Join(left, "file"), nil, 0o666))
			ageStaged(t, base)
			faulty.Inject(denyingAt(c.kind, c.part, syscall.EACCES, 1))
			_, err := src.Sweep(t.Context())
			require.ErrorIs(t, err, syscall.EACCES)
			faulty.Inject(nil)
			ageStaged(t, base)
			_, err = src.Sweep(t.Context())
			require.NoError(t, err)
			requireTidy(t, base)
		})
	}
}

// A user who can write to staging can put entries there that it may not remove, so that another user
// removes them. Entries that multilock did not leave stay as they are, and are reported; they are not an
// error, and do not prevent sweeping the others.
// Rule: staging
func TestSweepLeavesAloneWhatIsNotOurs(t *testing.T) {
	base, _, src := contested(t, scene{})
	staging := filepath.Join(base, ".multilock", "staging")
	for what, err := range map[string]error{
		"a tree":      os.MkdirAll(filepath.Join(staging, "thesis", "years", "of work"), 0o777),
		"a link":      os.Symlink(base, filepath.Join(staging, source.NewToken())),
		"a file":      os.WriteFile(filepath.Join(staging, source.NewToken()), []byte("data"), 0o666),
		"a FIFO":      syscall.Mkfifo(filepath.Join(staging, ".nfs0001"), 0o666),
		"a deep tree": os.MkdirAll(filepath.Join(staging, source.NewToken(), strings.Repeat("x.locked/", 9)), 0o777),
	} {
		require.NoError(t, err, what)
	}
	stranger := filepath.Join(staging, ".trash-"+source.NewToken())
	require.NoError(t, os.Mkdir(stranger, 0o777))
	for _, name := range []string{"lock.locked", "thesis.txt"} {
		require.NoError(t, os.WriteFile(filepath.Join(stranger, name), nil, 0o666))
	}
	ageStaged(t, base)
	before := tree(t, staging)
	for range 2 {
		left := filepath.Join(staging, source.NewToken())
		require.NoError(t, os.Mkdir(left, 0o777))
		require.NoError(t, os.WriteFile(filepath.Join(left, "lock.locked"), nil, 0o666))
		ageStaged(t, base)
		swept, err := src.Sweep(t.Context())
		require.NoError(t, err)
		require.Equal(t, before, tree(t, staging))
		require.Len(t, swept, 7)
		for _, l := range swept {
			require.Equal(t, l.Strange, l.Entry != filepath.Base(left), l.Why)
			require.Equal(t, l.Strange, strings.Contains(l.Why, "move it away by hand"), l.Why)
		}
	}
}

// A tree may use the protocol's names, and be moved to staging by a user who could not remove it: its
// content decides.
// Rule: staging
func TestSweepLeavesAloneTreesWithOurNames(t *testing.T) {
	for what, files := range map[string]map[string]string{
		"another program's locks":     {"yum.lock": "4711\n"},
		"another program's jobs":      {"a.job": "#!/bin/sh\n", "a.result": "42\n"},
		"locks of two names":          {"a.locked": "", "b.locked": ""},
		"in a directory of the test":  {"full/a.job": "", "full/b.lock": ""},
		"a file of the test":          {"full/file": "data"},
		"beside a list":               {"list": "x\n", "more-1/list": "y\n", "more-1/x.job": ""},
		"in a peer's guard":           {"lock.lock/list": "x\n"},
		"a hidden file":               {".nfs000000000001": "data"},
		"a result in another's form":  {"lock.result": "{\"score\":1}\n"},
		"a job beside what is ours":   {"lock.locked": "", "lock.job": "make all\n"},
		"a directory for a lock file": {"lock.locked/x": ""},
	} {
		t.Run(what, func(t *testing.T) {
			base, _, src := contested(t, scene{})
			staging := filepath.Join(base, ".multilock", "staging")
			for _, entry := range []string{source.NewToken(), ".trash-" + source.NewToken() + ".manifest", source.NewToken() + ".selftest"} {
				for name, content := range files {
					file := filepath.Join(staging, entry, name)
					require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o777))
					require.NoError(t, os.WriteFile(file, []byte(content), 0o666))
				}
			}
			require.NoError(t, os.WriteFile(filepath.Join(staging, ".trash-"+source.NewToken()), []byte("data"), 0o666))
			ageStaged(t, base)
			before := tree(t, staging)
			swept, err := src.Sweep(t.Context())
			require.NoError(t, err)
			require.Equal(t, before, tree(t, staging))
			require.Len(t, swept, 4)
			for _, l := range swept {
				require.True(t, l.Strange)
				require.Contains(t, l.Why, "move it away by hand")
			}
		})
	}
}

// Leftovers of crashes are ours, even if a file is truncated.
// Rule: staging, I3
func TestSweepRemovesWhatCrashesLeave(t *testing.T) {
	record := string(recordOf(t))
	base, _, src := contested(t, scene{})
	staging := filepath.Join(base, ".multilock", "staging")
	for _, files := range []map[string]string{
		{"lock.locked": record, "lock.job": `{"host":"h","pgid":7}`, "lock.result": goodResult, "lock.forgot": `{"v`},
		{"lock.locked": record[:len(record)/2], "lock.newjob": `{"ho`, "lock.lock/": ""},
		{"lock.locked": "node7 4711\n", ".nfs00001": record, ".nfs00002": goodResult, ".nfs00003": "a\tsleep 1\n"},
		{"lock.locked": "\x00\x00"},
		{"list": "a\n", "board": "\x01\x02", "more-1/list": "b\n"},
		{"full/file": "", "other/": "", "empty/": "", "hiding/.fuse_hidden01": ""},
	} {
		dir := filepath.Join(staging, source.NewToken())
		for name, content := range files {
			file := filepath.Join(dir, name)
			require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o777))
			if strings.HasSuffix(name, "/") {
				require.NoError(t, os.MkdirAll(file, 0o777))
				continue
			}
			require.NoError(t, os.WriteFile(file, []byte(content), 0o666))
		}
	}
	require.NoError(t, os.WriteFile(filepath.Join(staging, ".trash-"+source.NewToken()), []byte(record), 0o666))
	ageStaged(t, base)
	swept, err := src.Sweep(t.Context())
	require.NoError(t, err)
	for _, l := range swept {
		require.False(t, l.Strange, l.Why)
	}
	require.Len(t, swept, 7)
	requireTidy(t, base)
}

// recordOf returns the bytes of a lock file.
func recordOf(t *testing.T) []byte {
	t.Helper()
	src := open(t, fslock.Options{Base: t.TempDir()})
	plant(t, src, "lock", claim(elsewhere(t), long, long/10))
	record, err := os.ReadFile(filepath.Join(src.Base(), fslock.DefaultGroup, "lock", "lock.locked"))
	require.NoError(t, err)
	return record
}

// The server can leave a directory under both its names (a rename in two steps, and a crash between them).
// The janitor must not empty a lock, nor a directory if the server did not report whether it is a lock in
// place.
// Rule: staging, I2
func TestJanitorThatCannotTellLeavesALockAlone(t *testing.T) {
	for n := range 64 {
		base, _, lease := held(t, scene{})
		inPlace, staged := lockPath(base), filepath.Join(base, ".multilock", "staging", lease.Record().Token)
		require.NoError(t, os.CopyFS(staged, os.DirFS(inPlace)))
		ageStaged(t, base)
		faulty, struck := sharedFS(), false
		janitor := open(t, fslock.Options{Base: base, FS: faulty, Self: elsewhere(t)})
		faulty.Inject(func(op faultfs.Op) error {
			if op.N != n || op.Phase != faultfs.Before {
				return nil
			}
			struck = true
			return syscall.EIO
		})
		_, _ = janitor.Sweep(t.Context())
		left, err := filepath.Glob(filepath.Join(base, ".multilock", "staging", "*", sweptName+".locked"))
		require.NoError(t, err)
		require.Len(t, left, 1, "operation %d: its file may be the lock's", n)
		require.NoError(t, lease.Renew(t.Context()))
		if !struck {
			require.Greater(t, n, 10)
			return
		}
	}
	require.Fail(t, "it does not end")
}

// If a breaker removes a file that another process of its host has open, the file stays in staging until
// that process closes it: the NFS client does not let any process remove it, so no janitor tries.
// Rule: staging, break
func TestJanitorLeavesWhatIsStillRead(t *testing.T) {
	base, _, src := contested(t, scene{})
	leftover := filepath.Join(base, ".multilock", "staging", ".nfs000000000000002b00000007")
	reader, err := os.Create(leftover)
	require.NoError(t, err)
	ageStaged(t, base)
	left, err := src.Leftovers(t.Context())
	require.NoError(t, err)
	require.Len(t, left, 1)
	require.False(t, left[0].Dead)
	require.Contains(t, left[0].Why, fmt.Sprintf("process %d", os.Getpid()))

	require.NoError(t, reader.Close())
	requireTidy(t, base)
}

// N21: a file system that breaks a rule is rejected, with the rule's name, and tested again the next time.
// Rule: fs-test
func TestFileSystemsThatBreakARule(t *testing.T) {
	for name, f := range map[string]struct {
		rule   string
		inject faultfs.Injector
	}{
		"rename replaces what is not empty": {"a rename onto a directory that is not empty", breaking("rename", func(op faultfs.Op) error {
			return os.RemoveAll(op.Target)
		})},
		"rename is refused and does damage": {"a rename onto a directory that is not empty", breaking("rename", func(op faultfs.Op) error {
			_ = os.Remove(filepath.Join(op.Target, "file"))
			return nil
		})},
		"rmdir deletes what is not empty": {"rmdir of a directory that is not empty", breaking("rmdir", func(op faultfs.Op) error {
			return errors.Join(os.RemoveAll(op.Real), faultfs.ErrPretend)
		})},
		"mkdir succeeds on what exists": {"mkdir of a name that exists", breaking("mkdir", func(op faultfs.Op) error {
			if _, err := os.Stat(op.Real); err != nil {
				return nil //nolint:nilerr // it is to be made
			}
			return faultfs.ErrPretend
		})},
		"O_EXCL excludes nobody": {"an exclusive create of a name that exists", breaking("create", func(op faultfs.Op) error {
			_ = os.Remove(op.Real)
			return nil
		})},
	} {
		t.Run(name, func(t *testing.T) {
			base, faulty := fresh(t), sharedFS()
			faulty.Inject(f.inject)
			src := open(t, fslock.Options{Base: base, FS: faulty})
			for range 2 {
				_, err := multilock.TryAcquire(within(t), src, sweptName, multilock.Options{})
				require.ErrorIs(t, err, source.ErrInvalid)
				require.ErrorContains(t, err, "breaks the rule")
				require.ErrorContains(t, err, f.rule)
			}
			require.Equal(t, []string{"staging"}, namesIn(t, filepath.Join(base, ".multilock")))
			require.NoDirExists(t, filepath.Join(base, fslock.DefaultGroup))
		})
	}
}

// N21: a host's test proves nothing for another host, whose client or mount may differ: each host runs the
// test, and keeps its own mark.
// Rule: fs-test
func TestEachHostTriesItsOwnMount(t *testing.T) {
	base := fresh(t)
	src := open(t, fslock.Options{Base: base, FS: sharedFS()})
	held := contendAndTry(t, src, sweptName, longClaim())
	mark := markIn(t, base)

	faulty := sharedFS()
	faulty.Inject(breaking("rename", func(op faultfs.Op) error { return os.RemoveAll(op.Target) }))
	bad := open(t, fslock.Options{Base: base, FS: faulty, Self: elsewhere(t)})
	_, err := multilock.TryAcquire(within(t), bad, sweptName, multilock.Options{})
	require.ErrorIs(t, err, source.ErrInvalid)
	require.ErrorContains(t, err, "breaks the rule")
	require.NoError(t, held.Renew(t.Context()))
	require.Equal(t, mark, markIn(t, base))

	good := open(t, fslock.Options{Base: base, FS: sharedFS(), Self: elsewhere(t)})
	giveBack(t, acquire(t, good, "other", multilock.Options{}))
	require.Len(t, namesIn(t, filepath.Join(base, ".multilock")), 3, "staging, and a mark for each host")
}

// breaking replaces an operation.
func breaking(kind string, instead func(faultfs.Op) error) faultfs.Injector {
	return at(kind, faultfs.Before, "", instead)
}
