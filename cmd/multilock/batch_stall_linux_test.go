package main_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// stallingJobs are sixty jobs of which every tenth stalls until it is told to go on.
func stallingJobs(t *testing.T, w *witness) (lines []string, dir string) {
	t.Helper()
	dir = t.TempDir()
	for i := range 60 {
		rest := "true"
		if i%10 == 9 {
			rest = fmt.Sprintf("touch %[1]s/stalls-$MULTILOCK_SEQ; until test -e %[1]s/go; do sleep 0.01; done", dir)
		}
		lines = append(lines, w.job(fmt.Sprintf("job%03d", i), rest))
	}
	return lines, dir
}

// stalling is how many of them stall.
func stalling(t *testing.T, dir string) int {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "stalls-*"))
	require.NoError(t, err)
	return len(found)
}

// release lets them go on.
func release(t *testing.T, dir string) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go"), nil, 0o600))
}

// committed are the names that have a result.
func (s *station) committed() []string {
	s.t.Helper()
	entries, err := os.ReadDir(filepath.Join(s.base, ".multilock", "groups", ".locks", "done"))
	require.NoError(s.t, err)
	names := []string{}
	for _, e := range entries {
		if e.Type().IsRegular() {
			names = append(names, e.Name())
		}
	}
	return names
}
