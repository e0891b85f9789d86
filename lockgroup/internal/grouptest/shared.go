package grouptest

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/fslock/fslocktest"
)

// watchdog is the timeout of calls that should not hang, far above any normal duration.
const watchdog = time.Minute

// Within returns a context with the watchdog's timeout.
func Within(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), watchdog)
	t.Cleanup(cancel)
	return ctx
}

// dir returns a directory that is removed after the test. A call whose context has ended may still write
// there, which [testing.T.TempDir] takes for a failure.
func dir(t *testing.T) string {
	t.Helper()
	base, err := os.MkdirTemp("", strings.ReplaceAll(t.Name(), "/", "-")) //nolint:usetesting // see above
	require.NoError(t, err)
	t.Cleanup(func() {
		require.Eventually(t, func() bool { return os.RemoveAll(base) == nil }, time.Minute, time.Millisecond)
	})
	return base
}

// Opener returns a function that opens one shared directory, as each of several hosts would.
func Opener(t *testing.T) func() *fslock.Source {
	base := dir(t)
	return func() *fslock.Source { return fslocktest.Open(t, fslock.Options{Base: base}) }
}
