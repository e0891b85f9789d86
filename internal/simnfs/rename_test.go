package simnfs_test

import (
	"errors"
	"io"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/internal/simnfs"
	"github.com/multilock/go/multilock/vfs"
)

// may reports whether something happens if a client has dropped some cached data, and requires that it
// does not happen otherwise.
func may(t *testing.T, happens func(a, b vfs.Dir) bool) bool {
	t.Helper()
	try := func(forgotten int) bool {
		s, forgetful := simnfs.Serve(time.Now), cached
		forgetful.Forgot = func() bool { forgotten--; return forgotten == 0 }
		a, err := s.Mount(forgetful).OpenDir("/")
		require.NoError(t, err)
		b, err := s.Mount(cached).OpenDir("/")
		require.NoError(t, err)
		return happens(a, b)
	}
	require.False(t, try(0))
	for forgotten := range 20 {
		if try(forgotten + 1) {
			return true
		}
	}
	return false
}

// What kernels notice earlier than usual: programs 15511, 15032 and 10318 of package conform.
func TestWhatMayBeFoundOutSooner(t *testing.T) {
	t.Run("that there is nothing to move it into", func(t *testing.T) {
		require.True(t, may(t, func(a, b vfs.Dir) bool {
			require.NoError(t, b.Mkdir("x", 0o755))
			x, err := a.Enter("x")
			require.NoError(t, err)
			require.NoError(t, b.Rmdir("x"))
			err = a.Rename("x", x, "x")
			require.Error(t, err)
			return errors.Is(err, syscall.ESTALE)
		}))
	})
	t.Run("that what is open has kept its name", func(t *testing.T) {
		require.True(t, may(t, func(a, b vfs.Dir) bool {
			_, err := a.Create("x", 0o644)
			require.NoError(t, err)
			require.NoError(t, b.Mkdir("other", 0o755))
			_, err = b.Create("y", 0o644)
			require.NoError(t, err)
			_, err = a.Stat()
			require.NoError(t, err)
			require.NoError(t, a.Rename("y", a, "x"))
			hidden := false
			require.NoError(t, b.List(func(name string) bool {
				hidden = hidden || strings.HasPrefix(name, ".nfs")
				return true
			}))
			return hidden
		}))
	})
	t.Run("that there is nothing to be read", func(t *testing.T) {
		require.True(t, may(t, func(a, b vfs.Dir) bool {
			made, err := b.Create("x", 0o644)
			require.NoError(t, err)
			require.NoError(t, made.Close())
			x, err := a.Open("x")
			require.NoError(t, err)
			require.NoError(t, b.Unlink("x"))
			_, err = x.ReadAt(make([]byte, 1), 0)
			require.Error(t, err)
			return errors.Is(err, io.EOF)
		}))
	})
}

// What a kernel notices before its request: programs 6203, 6249 and 6644 of package conform.
func TestRenameIsRefusedByWhatIsRemembered(t *testing.T) {
	opt := cached
	opt.V4 = true
	a, b := two(t, simnfs.Serve(time.Now), opt)
	require.NoError(t, b.Mkdir("x", 0o755))
	x, err := a.OpenDir("x")
	require.NoError(t, err)
	require.NoError(t, b.Rmdir("x"))
	require.ErrorIs(t, a.Rename("x", x, "x"), syscall.EINVAL, "into itself, as it remembers")
	require.ErrorIs(t, a.Rename("y", x, "x"), syscall.ENOENT, "there is nothing to be moved, wherever to")

	for _, name := range []string{"f", "g"} {
		_, err := a.OpenDurable(name, 0o644)
		require.NoError(t, err)
	}
	require.NoError(t, b.Unlink("f"))
	require.NoError(t, b.Unlink("g"))
	require.ErrorIs(t, a.Rename("f", a, "g"), syscall.ETXTBSY, "its own open file is in the way, as it remembers")
}
