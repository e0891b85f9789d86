// Package fslocktest has what tests of locks on a filesystem share, wherever the filesystem is. It is for
// tests only.
package fslocktest

import (
	"context"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/locktest"
	"github.com/multilock/go/multilock/source"
)

// Fixture declares what every lock on a filesystem guarantees. Place makes a directory for locks, and next
// returns the options of the next source, which may be on another host. A test must leave nothing in the
// staging directory.
func Fixture(place func(t testing.TB) (next func() fslock.Options)) locktest.Fixture {
	return locktest.Fixture{
		Fences: true, Marks: true, Deaths: true,
		Odd:     []string{"tab\tand\nnewline", "\xff\xfe not utf-8", strings.Repeat("\u20ac", 82)},
		Refused: []string{".", "..", "a/b", "/", "nul\x00byte", strings.Repeat("x", 256)},
		Place: func(t testing.TB) func() source.Source {
			next := place(t)
			requireNoLeftovers(t, next)
			return func() source.Source { return Open(t, next()) }
		},
	}
}

// Open opens the locks until the end of the test.
func Open(t testing.TB, opt fslock.Options) *fslock.Source {
	t.Helper()
	src, err := fslock.Open(opt)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, src.Close()) })
	return src
}

// requireNoLeftovers runs after the test has closed its sources.
func requireNoLeftovers(t testing.TB, next func() fslock.Options) {
	t.Cleanup(func() {
		opt := next()
		src, err := fslock.Open(opt)
		require.NoError(t, err)
		left, err := src.Leftovers(context.Background())
		require.NoError(t, err)
		require.NoError(t, src.Close())
		require.Empty(t, left, "in %s: %q", opt.Base, tree(opt.Base))
	})
}

// tree lists everything below a directory, for the failure message.
func tree(dir string) (names []string) {
	_ = filepath.WalkDir(dir, func(path string, _ fs.DirEntry, _ error) error {
		names = append(names, strings.TrimPrefix(path, dir))
		return nil
	})
	return names
}
