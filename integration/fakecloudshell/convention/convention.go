// Package convention runs convention.py, which takes the mutex of a reservation as
// the convention of CloudShell's scripts says. See there for what it can be told. It is
// for tests only.
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

// Clients are the versions of the genuine client that the script can play.
func Clients() []string { return []string{"9.3", "2024.1"} }

// Start starts the script, with its own options, for which it skips the test if there
// is no Python. It hardly pauses between two attempts.
func Start(t testing.TB, server *fakecloudshell.Server, options ...string) *locktest.Script {
	t.Helper()
	args := []string{"-c", source, "--url", server.URL(), "--pause", "0", "0.02", "--resend", "0.001"}
	return locktest.StartScript(t, exec.Command(locktest.Python(t), slices.Concat(args, options)...))
}
