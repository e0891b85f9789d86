//go:build linux

package cpio_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/integration/nfslab/cpio"
)

func TestEntriesComeWithTheirParentsOnce(t *testing.T) {
	archive := write(t, func(w *cpio.Writer) {
		require.NoError(t, w.Bytes("/a/b/one", 0o644, []byte("1")))
		require.NoError(t, w.Bytes("a/b/two", 0o755, []byte("22")))
		require.NoError(t, w.Symlink("a/link", "b/one"))
	})
	require.Equal(t, []string{
		"a 40755 ", "a/b 40755 ", "a/b/one 100644 1", "a/b/two 100755 22", "a/link 120777 b/one", "TRAILER!!! 0 ",
	}, read(t, archive))
}

func TestEqualContentGivesEqualBytes(t *testing.T) {
	fill := func(w *cpio.Writer) { require.NoError(t, w.Bytes("x", 0o600, []byte("content"))) }
	first, second := write(t, fill), write(t, fill)
	require.Equal(t, first, second)
}

// The kernel looks for the next archive at a multiple of four bytes.
func TestArchivesCanFollowEachOther(t *testing.T) {
	archive := write(t, func(w *cpio.Writer) { require.NoError(t, w.Bytes("odd", 0o600, []byte("123"))) })
	require.Zero(t, len(archive)%4)
}

func TestTreeRenamesAndLeavesOut(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "keep"), 0o700))
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "drop/deep"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "keep/f"), []byte("f"), 0o600))
	archive := write(t, func(w *cpio.Writer) {
		require.NoError(t, w.Tree(dir, func(name string) string {
			if name == "drop" {
				return ""
			}
			return strings.Replace(name, "keep", "kept", 1)
		}))
	})
	require.Equal(t, []string{"kept 40700 ", "kept/f 100600 f", "TRAILER!!! 0 "}, read(t, archive))
}

func TestFileShorterThanAnnouncedIsAnError(t *testing.T) {
	w := cpio.NewWriter(&bytes.Buffer{})
	require.Error(t, w.File("short", 0o600, 10, strings.NewReader("123")))
}

func write(t *testing.T, fill func(*cpio.Writer)) []byte {
	t.Helper()
	var buffer bytes.Buffer
	w := cpio.NewWriter(&buffer)
	fill(w)
	require.NoError(t, w.Finish())
	return buffer.Bytes()
}

// read returns "NAME MODE CONTENT" per entry, as the format's description says to read it.
func read(t *testing.T, archive []byte) []string {
	t.Helper()
	var entries []string
	for offset := 0; ; {
		var magic, mode, size, nameSize, skip int
		header := string(archive[offset : offset+110])
		_, err := fmt.Sscanf(header, "%6d%8x%8x%8x%8x%8x%8x%8x%8x%8x%8x%8x%8x%8x", &magic, &skip, &mode, &skip, &skip, &skip,
			&skip, &size, &skip, &skip, &skip, &skip, &nameSize, &skip)
		require.NoError(t, err)
		require.Equal(t, 70701, magic)
		name := string(archive[offset+110 : offset+110+nameSize-1])
		content := align(offset + 110 + nameSize)
		entries = append(entries, fmt.Sprintf("%s %o %s", name, mode, archive[content:content+size]))
		if name == "TRAILER!!!" {
			return entries
		}
		offset = align(content + size)
	}
}

func align(n int) int { return (n + 3) &^ 3 }
