package grouptest

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock/fslock"
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
	return func() *fslock.Source {
		src, err := fslock.Open(fslock.Options{Base: base})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, src.Close()) })
		return src
	}
}
