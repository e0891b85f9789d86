//go:build unix

package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The package that is changed here: a border, an error that is passed on, and a pause
// that nobody can notice.
const code = `package tiny

import (
	"errors"
	"time"
)

var errSmall = errors.New("too small")

const limit = 3

func check(n int) error {
	if n < limit {
		return errSmall
	}
	return nil
}

func pick(n int) (name string, err error) {
	time.Sleep(time.Nanosecond)
	if err := check(n); err != nil {
		return "", err
	}
	switch {
	case n%2 == 0 && n > 4:
		name = "even"
	default:
		name = "odd"
	}
	return name, nil
}
`

const weak = `package tiny

import "testing"

func TestRuns(t *testing.T) {
	for n := range 9 {
		_, _ = pick(n)
	}
}
`

const strong = `package tiny

import "testing"

func TestPicks(t *testing.T) {
	for n, want := range []string{"", "", "", "odd", "odd", "odd", "even", "odd", "even"} {
		name, err := pick(n)
		if name != want || (err != nil) != (n < 3) {
			t.Errorf("%d is %q, %v", n, name, err)
		}
	}
}
`

// inModule makes a module of one package the working directory.
func inModule(t *testing.T, files map[string]string) {
	t.Helper()
	dir := t.TempDir()
	files["go.mod"] = "module tiny\n\ngo 1.25\n"
	files["tiny.go"] = code
	for name, content := range files {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o666))
	}
	t.Chdir(dir)
}

const nobodyNotices = `# Nobody measures a pause.
. pick: time.Sleep(time.Nanosecond) => nothing
. pick: time.Nanosecond => (time.Nanosecond)*16
. pick: time.Nanosecond => (time.Nanosecond)/16
# The rest of a number is 0 or 1, or its neighbours say the same.
. pick: n > 4 => n >= 4+1
`

// assessments are those of all mutants of the package in the working directory.
func assessments(t *testing.T, o options) (map[string]result, *report) {
	t.Helper()
	targets, err := load([]string{"."})
	require.NoError(t, err)
	require.Len(t, targets, 1)
	known, err := readEquivalents(o.equivalent)
	require.NoError(t, err)
	r, err := o.try(t.Context(), targets[0], targets[0].mutants(), known)
	require.NoError(t, err)
	require.Empty(t, r.refused)
	found := map[string]result{}
	for m, result := range r.results {
		found[m.key()] = result
	}
	return found, r
}

func TestStrongTestKillsAndWeakTestDoesNot(t *testing.T) {
	inModule(t, map[string]string{"tiny_test.go": strong, "none.txt": ""})
	killing, _ := assessments(t, defaults("none.txt"))
	require.NoError(t, os.WriteFile("tiny_test.go", []byte(weak), 0o666))
	letting, _ := assessments(t, defaults("none.txt"))
	for _, change := range []string{
		". check: limit => limit+1",
		". check: n < limit => n <= limit",
		". check: errSmall => nil",
		". pick: err != nil => false",
		". pick: n%2 == 0 && n > 4 => n%2 == 0 || n > 4",
		". pick: n > 4 => n >= 4",
		`. pick: name = "even" => nothing`,
	} {
		require.Contains(t, killing, change)
		require.Equal(t, killed, killing[change].Assessment, change)
		require.Equal(t, "TestPicks", killing[change].By, change)
		require.Equal(t, survived, letting[change].Assessment, change)
	}
	o := defaults("none.txt")
	o.sample = 2
	sampled, _ := assessments(t, o)
	require.Len(t, sampled, 2)
	pause := ". pick: time.Sleep(time.Nanosecond) => nothing"
	require.Equal(t, survived, killing[pause].Assessment)
	before, err := os.ReadFile("tiny.go")
	require.NoError(t, err)
	require.Equal(t, code, string(before), "the tree is as it was")
}

func TestHangIsNoticedAndWhatItLeavesIsEnded(t *testing.T) {
	inModule(t, map[string]string{"tiny_test.go": `package tiny

import (
	"os"
	"os/exec"
	"strconv"
	"testing"
)

func TestHangs(t *testing.T) {
	if _, err := pick(3); err != nil {
		cmd := exec.Command("sleep", "600")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		_ = os.WriteFile("started", []byte(strconv.Itoa(cmd.Process.Pid)), 0o666)
		select {}
	}
}
`, "none.txt": ""})
	o := defaults("none.txt")
	o.only, o.spare = "n < limit => true", time.Second
	found, _ := assessments(t, o)
	pid, err := os.ReadFile("started")
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		state, err := os.ReadFile("/proc/" + string(pid) + "/stat")
		return err != nil || strings.Contains(string(state), ") Z ")
	}, time.Minute, 10*time.Millisecond)
	require.Equal(t, result{Assessment: killed, By: "a hang"}, found[". check: n < limit => true"])
}

func TestListOfEquivalents(t *testing.T) {
	inModule(t, map[string]string{
		"tiny_test.go": strong,
		"list.txt":     nobodyNotices,
		"noticed.txt":  "# It is not.\n. check: errSmall => nil\n",
		"bare.txt":     ". check: errSmall => nil\n",
	})
	o := defaults("list.txt")
	o.patterns, o.list = []string{"."}, true
	clean, err := o.run(t.Context())
	require.NoError(t, err)
	require.False(t, clean, "the last entry belongs to nothing")
	require.NoError(t, os.WriteFile("list.txt", []byte(nobodyNotices[:strings.Index(nobodyNotices, "# The rest")]), 0o666))
	clean, err = o.run(t.Context())
	require.NoError(t, err)
	require.True(t, clean)

	found, _ := assessments(t, defaults("list.txt"))
	require.NotContains(t, found, ". pick: time.Nanosecond => (time.Nanosecond)*16")

	o = defaults("noticed.txt")
	o.recheck, o.only = true, "errSmall"
	_, r := assessments(t, o)
	require.False(t, r.print(), "an entry that a test notices")
	_, err = readEquivalents("bare.txt")
	require.ErrorContains(t, err, "no reason")
}

// What only a subtest of a long test notices is tried with that subtest.
func TestLongTestIsTakenApart(t *testing.T) {
	inModule(t, map[string]string{"tiny_test.go": `package tiny

import (
	"testing"
	"time"
)

func TestSlow(t *testing.T) {
	t.Run("nothing", func(*testing.T) { time.Sleep(3 * time.Second) })
	t.Run("the odd (one)", func(t *testing.T) {
		if name, _ := pick(3); name != "odd" {
			t.Fatal(name)
		}
	})
}
`, "none.txt": ""})
	o := defaults("none.txt")
	o.only = `name = "odd" => nothing`
	targets, err := load([]string{"."})
	require.NoError(t, err)
	b, _, err := targets[0].build(t.TempDir(), targets[0].mutants())
	require.NoError(t, err)
	tests, _, err := b.profile(t.Context(), t.TempDir(), time.Minute, 1)
	require.NoError(t, err)
	require.Len(t, tests, 2)
	require.Equal(t, "TestSlow/the_odd_(one)", tests[0].name)
	found, _ := assessments(t, o)
	require.Equal(t, result{Assessment: killed, By: "TestSlow"}, found[`. pick: name = "odd" => nothing`])
}

func TestInterrupted(t *testing.T) {
	inModule(t, map[string]string{"tiny_test.go": strong, "none.txt": ""})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	o := defaults("none.txt")
	o.patterns = []string{"."}
	_, err := o.run(ctx)
	require.ErrorIs(t, err, context.Canceled)
}
