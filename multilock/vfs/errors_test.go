package vfs_test

import (
	"fmt"
	"io/fs"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock/vfs"
)

func TestErrorsAreTold(t *testing.T) {
	wrapped := fmt.Errorf("swap: %w", &fs.PathError{Op: "rename", Path: "x", Err: syscall.ESTALE})
	require.True(t, vfs.Gone(wrapped))
	require.False(t, vfs.InDoubt(wrapped))
	require.False(t, vfs.NotEmpty(wrapped))
	require.True(t, vfs.NotEmpty(syscall.EEXIST))
	require.True(t, vfs.InDoubt(syscall.EIO))
	require.True(t, vfs.InDoubt(fs.ErrClosed), "what is not known may have been done")
	require.False(t, vfs.InDoubt(nil))
	require.NotEmpty(t, vfs.Hint(syscall.EDQUOT))
	require.Empty(t, vfs.Hint(syscall.EIO))
}

func TestNameProblem(t *testing.T) {
	for _, name := range []string{"", ".", "..", "a/b", "a\x00b", strings.Repeat("x", 9)} {
		require.NotEmpty(t, vfs.NameProblem(name, 8), "%q", name)
	}
	for _, name := range []string{"...", " ", "\xff", "12345678"} {
		require.Empty(t, vfs.NameProblem(name, 8), "%q", name)
	}
}
