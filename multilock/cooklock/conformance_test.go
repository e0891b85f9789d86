package cooklock_test

import (
	"strings"
	"testing"
	"time"

	"github.com/multilock/go/multilock/source"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock/cooklock"
	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/locktest"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	locktest.Run(t, locktest.Fixture{
		TTL:     2 * time.Second, // leaves time for a swap on a busy machine
		Fences:  true,
		Odd:     []string{"tab\tand\nnewline", "\xff\xfe not utf-8", strings.Repeat("\u20ac", 82)},
		Refused: []string{".", "..", "a/b", "/", "nul\x00byte", strings.Repeat("x", 249)},
		Timed: func(t testing.TB, period time.Duration) func() source.Source {
			base := t.TempDir()
			return func() source.Source { return open(t, base, cooklock.Options{Period: period}) }
		},
	})
}

// open returns a source of cooking locks in a directory, as in a separate process.
func open(t testing.TB, base string, opt cooklock.Options) *cooklock.Source {
	t.Helper()
	opt.Ledger = ledger(t, base)
	src, err := cooklock.New(opt)
	require.NoError(t, err)
	return src
}

// ledger opens the results in a directory, as in a separate process.
func ledger(t testing.TB, base string) *fslock.Source {
	t.Helper()
	files, err := fslock.Open(fslock.Options{Base: base})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, files.Close()) })
	return files
}
