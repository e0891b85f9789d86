//go:build unix

package main_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A command that waits for the lock under which it runs would wait for its own end.
func TestWaitForTheOwnLockIsRefused(t *testing.T) {
	t.Parallel()
	const why = "this command runs under that lock: the wait would never end"
	for name, script := range map[string]string{
		"run in run":            `multilock run -n x -- multilock run -n x --wait forever -- echo ran`,
		"run two deep":          `multilock run -n x -- multilock run -n y -- multilock run -n x --wait 1h -- echo ran`,
		"acquire in run":        `multilock run -n x -- sh -c 'multilock acquire -n x --wait forever; exit'`,
		"acquire twice":         `multilock acquire -n x >/dev/null || exit 9; multilock acquire -n x --wait forever`,
		"run under acquire":     `multilock acquire -n x >/dev/null || exit 9; multilock run -n x --wait forever -- echo ran`,
		"writer under a reader": `multilock run --shared -n x.shared -- multilock run -n x.shared --wait forever -- echo ran`,
		"reader under a writer": `multilock run -n x.shared -- multilock run --shared -n x.shared --wait forever -- echo ran`,
		"no ancestor to see":    `multilock acquire -n x --detach --ttl 1h >token; export MULTILOCK_TOKEN="$(cat token)"; multilock run -n x --wait forever -- echo ran`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStation(t)
			got := s.script("sh", "cd '"+t.TempDir()+"'; "+script)
			require.Equal(t, 125, got.code, got.stderr)
			require.Contains(t, got.stderr, why)
			require.Empty(t, got.stdout)
		})
	}
	s := newStation(t)
	got := s.run("run", "-n", "x", "--", "multilock", "run", "-n", "x", "--", "true")
	require.Equal(t, 121, got.code, "one that does not wait is refused as ever")
	require.Contains(t, got.stderr, "; this command runs under that lock)")
	require.Equal(t, "ran\n", s.must("run", "-n", "x", "--", "multilock", "run", "-n", "y", "--wait", "1h", "--", "echo", "ran"))
}
