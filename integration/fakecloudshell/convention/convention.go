// Package convention runs convention.py, which acquires the mutex of a reservation like CloudShell's
// scripts do by convention. convention.py documents its options. For tests only.
package convention

import (
	_ "embed"
	"os/exec"
	"slices"
	"testing"

	"github.com/multilock/go/integration/fakecloudshell"
	"github.com/multilock/go/multilock/locktest"
)

//go:embed convention.py
var source string

// Clients returns the versions of the genuine client that the script can imitate.
func Clients() []string { return []string{"9.3", "2024.1"} }

// Start starts the script with these options, almost without pauses between attempts. Without Python it
// skips the test.
func Start(t testing.TB, server *fakecloudshell.Server, options ...string) *locktest.Script {
	t.Helper()
	args := []string{"-c", source, "--url", server.URL(), "--pause", "0", "0.02", "--resend", "0.001"}
	return locktest.StartScript(t, exec.Command(locktest.Python(t), slices.Concat(args, options)...))
}
