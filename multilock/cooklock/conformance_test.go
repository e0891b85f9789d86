package cooklock_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock/cooklock"
	"github.com/multilock/go/multilock/locktest"
	"github.com/multilock/go/multilock/source"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	locktest.Run(t, locktest.Fixture{
		Fences:  true,
		Odd:     []string{"tab\tand\nnewline", "\xff\xfe not utf-8", strings.Repeat("\u20ac", 85)},
		Refused: []string{".", "..", "a/b", "/", "nul\x00byte", strings.Repeat("x", 256)},
		Timed: func(t testing.TB, period time.Duration) func() source.Source {
			base := t.TempDir()
			return func() source.Source { return open(t, base, cooklock.Options{Period: period}) }
		},
	})
}

// open makes a source of cooking locks in a directory, as one process would.
func open(t testing.TB, base string, opt cooklock.Options) *cooklock.Source {
	t.Helper()
	dir, err := cooklock.OpenDirectory(cooklock.DirectoryOptions{Base: base})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, dir.Close()) })
	opt.Open, opt.Names = dir.Register, dir.Names
	src, err := cooklock.New(opt)
	require.NoError(t, err)
	return src
}
