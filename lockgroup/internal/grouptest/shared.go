package grouptest

import (
	"context"
	"testing"
	"time"

	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/fslock/fslocktest"
)

// watchdog ends what hangs. Nothing that works comes near it.
const watchdog = time.Minute

// Within is for what is not to hang.
func Within(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), watchdog)
	t.Cleanup(cancel)
	return ctx
}

// Opener opens one shared directory as often as hosts would.
func Opener(t *testing.T) func() *fslock.Source {
	base := t.TempDir()
	return func() *fslock.Source { return fslocktest.Open(t, fslock.Options{Base: base}) }
}
