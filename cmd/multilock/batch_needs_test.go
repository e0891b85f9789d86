//go:build unix

package main_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Jobs that need more than half of this host's resources never run in parallel; others do.
func TestBatchNeeds(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		needs   string
		options []string
	}{
		"processors": {"NEEDS cpus=3", []string{"-j4"}},
		"memory":     {"NEEDS mem=3G", []string{"-j8", "--mem", "4G"}},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			s, w := newStation(t), newWitness(t)
			alone := filepath.Join(t.TempDir(), "alone")
			lines := []string{w.job("light1", ""), c.needs}
			for n := range 4 {
				lines = append(lines, w.job(fmt.Sprint("heavy", n), fmt.Sprintf("mkdir %s && sleep 0.2 && rmdir %s", alone, alone)))
			}
			list := s.list(append(lines, "NEEDS", w.job("light2", ""))...)
			v, got := s.batch(append(c.options, list)...)
			require.Zero(t, got.code, got.stderr)
			require.Equal(t, 6, v.Done)
			require.Equal(t, []string{"heavy0", "heavy1", "heavy2", "heavy3", "light1", "light2"}, w.ran())
			s.must("wait", "--members-from", list)
			other := s.run("batch", "-j4", s.list(slices.DeleteFunc(lines, func(line string) bool { return line == c.needs })...))
			require.Equal(t, 125, other.code)
		})
	}
}

// Jobs that can never run here are rejected before any job runs, with a correction. So are invalid needs.
func TestBatchNeedsTooMuch(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	list := s.list("first\ttrue", "NEEDS cpus=64 mem=1000T", "a\ttrue")
	for options, says := range map[string]string{
		"-j8":                     `job "a" (line 2) needs 64 processors, and -j gives all jobs together 8 here: write -j 64`,
		"-j64":                    `job "a" (line 2) needs 1000T of memory, and all jobs together have `,
		"-j64 --mem 8G --dry-run": `have 8G here: write --mem 1000T`,
		"-j64 --needs cpu=4":      `write 'cpus=4 mem=8G'`,
		"-j64 --mem 8X":           "write a size",
	} {
		got := s.run(slices.Concat([]string{"batch"}, strings.Fields(options), []string{list})...)
		require.Equal(t, 125, got.code, options)
		require.Contains(t, got.stderr, says, options)
	}
	s.requireUntouched()
	s.must("batch", "-j8", "--needs", "cpus=4", "true", ":::", "1", "2")
	got := s.run("batch", "-j8", "true", ":::", "1", "2")
	require.Equal(t, 125, got.code)
	require.Contains(t, got.stderr, "the same jobs with needs from 1 cpus=4 mem=0, and here with no barriers, needs or shell")
	s.must("batch", "-j8", s.list("NEEDS cpus=4", "true 1", "true 2"))
}
