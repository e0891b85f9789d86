package pglab

import (
	"fmt"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// StartSmall starts a server on a small disk of this size: its own file system, which only root can
// mount.
func StartSmall(t testing.TB, mebibytes int) *Server {
	t.Helper()
	s := prepare(t)
	require.NoError(t, syscall.Mount("tmpfs", s.dir, "tmpfs", 0, fmt.Sprintf("size=%dm,mode=0700", mebibytes)))
	t.Cleanup(func() { _ = syscall.Unmount(s.dir, syscall.MNT_DETACH) })
	own(t, s.dir)
	s.furnish(Options{Settings: map[string]string{"min_wal_size": "32MB", "max_wal_size": "32MB"}})
	s.Begin()
	return s
}

// Fill uses up all free space on a small server's disk. Empty releases it.
func (s *Server) Fill() {
	s.Helper()
	file, err := os.Create(s.File("junk"))
	require.NoError(s, err)
	defer file.Close()
	for chunk := make([]byte, 1<<20); len(chunk) > 0; {
		if _, err = file.Write(chunk); err != nil {
			require.ErrorIs(s, err, syscall.ENOSPC)
			chunk = chunk[:len(chunk)/2]
		}
	}
}

// Empty releases the space that Fill took.
func (s *Server) Empty() {
	s.Helper()
	require.NoError(s, os.Remove(s.File("junk")))
}

// Exhaust uses up the write-ahead log of a small server that is full. The server then shuts itself
// down, and cannot start again before Empty.
func (s *Server) Exhaust() {
	s.Helper()
	for err := error(nil); err == nil; {
		_, err = Query(s.URL(""), "CREATE TEMP TABLE t (); SELECT pg_switch_wal()")
	}
	s.End()
}
