package main_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

// The output of root's jobs is not written to files that another user made, and such files are not shown as
// output.
func TestLogsOfStrangers(t *testing.T) {
	amongStrangers(t, func(c *commons) {
		c.plant(c.private("logs"), `ln -s "$OUT/new" a.out; ln -s "$OUT/shadow" b.out; printf '%s' "$FORGED" >c.out; chmod 666 c.out`, "FORGED="+forgedLog)
		c.must("batch", c.list("x\techo secret"))
		c.unharmed()
		got := c.run("logs", "x")
		if c.open { // and root trusts anybody
			require.Contains(c.t, got.stdout, "secret\n")
			return
		}
		require.Equal(c.t, "secret\n", got.stdout)
		c.named(got, `c\.out`)
	})
}

// A contender removes what it staged, but not the lock to which mallory has linked that.
func TestStagedLockThatBecameALink(t *testing.T) {
	t.Parallel()
	c, other := newCommons(t, true), newStation(t)
	c.hold("x")
	c.chmodAll(0o777)
	holder := other.hold("x")
	contender := c.start("run", "-n", "x", "--wait", "2s", "--", "true")
	c.eventually("a contender waits", func() bool { return c.staged() > 0 })
	c.plant(".multilock/staging", `for t in *; do mv "$t" ".was-$t"; ln -s "$OTHER" "$t"; done`, "OTHER="+filepath.Join(other.base, ".locks", "x"))
	got := contender.wait()
	require.NotZero(t, got.code)
	require.NotEmpty(t, got.stderr)
	require.FileExists(t, filepath.Join(other.base, ".locks", "x", "x.locked"))
	require.Zero(t, holder.end().code)
}

// A list of jobs is removed at its own path, and not where a link leads.
func TestLinkInThePlaceOfTheManifest(t *testing.T) {
	amongStrangers(t, func(c *commons) {
		c.plant(c.private(""), `ln -s "$OUT/etc" manifest`)
		got := c.run("clean", "--results")
		c.unharmed()
		if got.code != 0 {
			c.named(got, "manifest")
		}
	})
}

// A pipe in place of a file blocks no process.
func TestPipesInThePlaceOfFiles(t *testing.T) {
	t.Parallel()
	for name, pipe := range map[string]struct{ dir, name string }{
		"fence":    {"fence", "x"},
		"history":  {"history", "*"},
		"log":      {"logs", "j.out"},
		"result":   {"done", "x"},
		"manifest": {"manifest", "list"},
		"lock":     {"../../../.locks/x", "x.locked"},
		"note":     {"../../../.locks/x", "x.job"},
	} {
		t.Run(name, func(t *testing.T) {
			amongStrangers(t, func(c *commons) {
				c.must("run", "-n", "x", "--", "true") // so that there is a history
				c.plant(c.private(""), `mkdir -p "$DIR"; cd "$DIR"; for p in $NAME; do rm -f "$p"; mkfifo "$p"; chmod 666 "$p"; done`,
					"DIR="+pipe.dir, "NAME="+pipe.name)
				c.everyCommandEnds()
			})
		})
	}
}

// everyCommandEnds requires of each command that it ends, and reports why it could not do its work.
func (c *commons) everyCommandEnds() {
	c.t.Helper()
	list := c.list("j\techo done")
	for _, args := range [][]string{
		{"status", "x"},
		{"run", "-n", "x", "--", "true"},
		{"run", "-n", "x", "--once", "--", "true"},
		{"run", "-n", "x", "--fail-after", "3", "--", "true"},
		{"acquire", "-n", "x", "--detach", "--ttl", "1m"},
		{"batch", "-q", list},
		{"history"},
		{"logs", "j"},
		{"logs"},
		{"report", "-o", "-"},
		{"wait", "--timeout", "2s", "--settle", "100ms"},
		{"wait", "--timeout", "2s", "--members", "x"},
		{"break", "x", "--force", "--now"},
		{"clean"},
		{"clean", "--results"},
		{"doctor"},
	} {
		got := c.run(args...)
		if isHeld := args[0] == "status" && got.code == 121; got.code != 0 && !isHeld {
			said := got.stderr
			if args[0] == "doctor" {
				said = got.stdout // its report
			}
			require.NotEmpty(c.t, said, "%v ended with %d", args, got.code)
		}
	}
	c.unharmed()
}

// A result that another user wrote does not count.
func TestForgedResult(t *testing.T) {
	t.Parallel()
	c := newCommons(t, false)
	c.must("run", "-n", "x", "--once", "--", "true")
	c.plant(c.private("done"), `cp x y; sed -i s/\"x\"/\"y\"/ y; mv x z`)
	for _, name := range []string{"y", "z"} {
		got := c.run("run", "-n", name, "--once", "--", "sh", "-c", "echo it ran")
		require.NotContains(t, got.stderr, "already ran")
		if got.code == 0 {
			require.Equal(t, "it ran\n", got.stdout)
		} else {
			c.named(got, "done/"+name+"|renamed")
		}
	}
}

// Nor does a fencing counter or a list of jobs that another user wrote.
func TestForgedFence(t *testing.T) {
	t.Parallel()
	for _, size := range []string{"15T", "16T", "1000"} {
		t.Run(size, func(t *testing.T) {
			t.Parallel()
			c := newCommons(t, false)
			c.plant(c.private("fence"), `truncate -s "$SIZE" x || truncate -s 17592186040320 x; chmod 666 x`, "SIZE="+size)
			got := c.run("run", "-n", "x", "--", "sh", "-c", `echo "$MULTILOCK_FENCE"`)
			require.Less(t, len(strings.TrimSpace(got.stdout)), 3, "a number that mallory made")
			c.named(got, "fence/x")
		})
	}
}

func TestForgedManifest(t *testing.T) {
	t.Parallel()
	c := newCommons(t, false)
	c.plant(c.private(""), `mkdir manifest; printf 'a\ttrue\n' > manifest/list`)
	got := c.run("batch", c.list("b\techo b"))
	c.unharmed()
	if got.code != 0 {
		require.NotContains(t, got.stderr, "a different list")
		c.named(got, "manifest")
	}
}

// No lock is acquired in a group that mallory created.
func TestGroupOfAStranger(t *testing.T) {
	t.Parallel()
	c := newCommons(t, false)
	c.must("run", "-n", "x", "--", "true")
	c.must("wait", "--settle", "10ms")
	c.plant("", `mkdir .locks && chmod 755 .locks`)
	got := c.run("run", "-n", "x", "--", "echo", "it ran")
	require.NotZero(t, got.code)
	c.named(got, `\.locks`)
	require.Empty(t, got.stdout)
}

// clean, run by root, leaves another user's files that were moved into staging.
func TestCleanLeavesAloneWhatOthersMovedThere(t *testing.T) {
	amongStrangers(t, func(c *commons) {
		c.must("run", "-n", "x", "--", "true")
		entry := uuid.NewString()
		his := filepath.Join(c.base, ".multilock", "staging", entry)
		c.plant(".multilock/staging", `mkdir $ENTRY; chmod 777 $ENTRY`, "ENTRY="+entry)
		require.NoError(c.t, os.Mkdir(filepath.Join(his, "neville"), 0o700))
		treasure := filepath.Join(his, "neville", "treasure")
		require.NoError(c.t, os.WriteFile(treasure, []byte("his own\n"), 0o600))
		for _, path := range []string{filepath.Dir(treasure), treasure} {
			require.NoError(c.t, os.Chown(path, neville, neville))
		}
		c.plant(".multilock/staging", `touch -d '3 days ago' $ENTRY`, "ENTRY="+entry)
		got := c.run("clean")
		require.FileExists(c.t, c.found("treasure"), "%s%s", got.stdout, got.stderr)
	})
}

// found returns the path of a file by its name, wherever it is in the base directory.
func (c *commons) found(name string) (path string) {
	c.t.Helper()
	_ = filepath.WalkDir(c.base, func(at string, _ os.DirEntry, _ error) error {
		if filepath.Base(at) == name {
			path = at
		}
		return nil
	})
	return path
}

// A deep tree that mallory left in staging does not prevent the removal of the other entries.
func TestDeepTreeInStaging(t *testing.T) {
	amongStrangers(t, func(c *commons) {
		c.chmodAll(0o777)
		staging, entry := filepath.Join(c.base, ".multilock", "staging"), uuid.NewString()
		deep := filepath.Join(staging, entry)
		require.NoError(c.t, asMallory(func() { _ = deepTree(deep, 400) }))
		require.DirExists(c.t, filepath.Join(deep, "d"))
		c.plant(".multilock/staging", `touch -d '3 days ago' $ENTRY`, "ENTRY="+entry)
		mine := filepath.Join(staging, uuid.NewString())
		require.NoError(c.t, os.Mkdir(mine, 0o755))
		got := c.script("sh", `touch -d '3 days ago' `+mine+`; ulimit -n 256; exec multilock clean`)
		require.NoDirExists(c.t, mine, "%s%s", got.stdout, got.stderr)
		require.Zero(c.t, got.code, got.stderr)
	})
}

// A sparse file of a terabyte is not read into memory.
func TestSparseFiles(t *testing.T) {
	amongStrangers(t, func(c *commons) {
		c.must("run", "-n", "x", "--", "true")
		c.plant(c.private(""), `for f in history/*; do mv "$f" was; rm was; truncate -s 1T "$f"; done
			truncate -s 1T done/z; mkdir manifest; truncate -s 1T manifest/list`)
		list := c.list("y\techo done")
		for _, args := range []string{
			"history", "report -o -", "batch -q " + list, "status", "status z", "run -n z --once -- true", "clean --results", "wait --timeout 2s --settle 10ms",
			"run -n x --fail-after 2 -- true",
		} {
			got := c.script("sh", `ulimit -v 4000000; exec multilock `+args)
			require.NotContains(c.t, got.stderr, "out of memory", args)
			if got.code != 0 {
				require.NotEmpty(c.t, got.stderr, args)
			}
		}
	})
}
