//go:build unix

package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/cmd/multilock/clitest"
)

// TestManualPages: each command has a page with all options of its help.
func TestManualPages(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	dir := t.TempDir()
	binary := filepath.Join(dir, "with-manual")
	require.NoError(t, clitest.Build(".", binary, "manual"))
	out, err := exec.Command(binary, "__manual", dir, "../../docs/protocol.md", "2026-05-31 v1.2.3").CombinedOutput() //nolint:gosec // ours
	require.NoError(t, err, "%s", out)
	for _, name := range commands {
		text, err := os.ReadFile(filepath.Join(dir, "multilock-"+name+".1")) //nolint:gosec // ours
		require.NoError(t, err)
		require.Contains(t, string(text), ".TH multilock-"+name+" 1 2026-05-31 v1.2.3\n")
		page := regexp.MustCompile(`\\`).ReplaceAllString(string(text), "")
		for _, heading := range []string{"NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "SEE ALSO"} {
			require.Contains(t, page, ".SH "+heading, name)
		}
		for _, option := range regexp.MustCompile(`(?m)^   (--[a-z-]+)`).FindAllStringSubmatch(s.must(name, "--help"), -1) {
			if option[1] != "--help" {
				require.Contains(t, page, option[1], name)
			}
		}
	}
	protocol, err := os.ReadFile(filepath.Join(dir, "multilock-protocol.7")) //nolint:gosec // ours
	require.NoError(t, err)
	require.Contains(t, string(protocol), "What must hold")
	concepts, err := os.ReadFile(filepath.Join(dir, "multilock.7")) //nolint:gosec // ours
	require.NoError(t, err)
	for _, topic := range []string{"ENVIRONMENT", "EXIT CODES", "LOCKS", "SCHEDULE"} {
		require.Contains(t, string(concepts), ".SH "+topic)
	}
	run, err := os.ReadFile(filepath.Join(dir, "multilock-run.1")) //nolint:gosec // ours
	require.NoError(t, err)
	for _, part := range []string{"Signals are passed on", ".SH SCHEDULE", ".SH HOOKS", ".SH EXIT CODES"} {
		require.Contains(t, string(run), part, "the manual page has what --help leaves to topics")
	}
}
