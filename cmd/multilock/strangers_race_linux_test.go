package main_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// While root prepares locks, mallory replaces staged directories by links. If root followed one, it would
// create, overwrite or remove a lock file elsewhere.
func TestStagingSwappedForLinks(t *testing.T) {
	t.Parallel()
	c := newCommons(t, true)
	c.chmodAll(0o777)
	staging := filepath.Join(c.base, ".multilock", "staging")
	over := c.meanwhile(func() { swapForLinks(staging, filepath.Join(c.outside, "etc")) })
	defer over()
	for round := range 60 {
		got := c.run("run", "-n", fmt.Sprint("x", round%2*round), "--", "true")
		require.True(t, got.code == 0 || got.stderr != "")
		require.Equal(t, c.before, snapshot(t, c.outside), "outside of the base, in round %d", round)
	}
}

// swapForLinks renames each new entry of a directory, and puts a link in its place.
func swapForLinks(dir, target string) {
	at, err := unix.Open(dir, unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	defer unix.Close(at)
	for _, entry := range namesAt(at) {
		if !strings.HasPrefix(entry, ".") && unix.Renameat(at, entry, at, "."+uuid.NewString()) == nil {
			_ = unix.Symlinkat(target, at, entry)
		}
	}
}

// namesAt lists a directory. (os.ReadDir would inspect each entry, too.)
func namesAt(dir int) (names []string) {
	buffer := make([]byte, 16<<10)
	for {
		n, err := unix.Getdents(dir, buffer)
		if n <= 0 || err != nil && !errors.Is(err, unix.EINTR) {
			return names
		}
		_, _, names = unix.ParseDirent(buffer[:n], -1, names)
	}
}
