//go:build linux

package fslock_test

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// tree lists all that is below a directory: what it is, its mode, and what is in
// it. Times are left out, as a look may be a read.
func tree(t testing.TB, root string) []string {
	t.Helper()
	var list []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		content, err := describe(path, info)
		list = append(list, fmt.Sprintf("%s %s %s", path, info.Mode(), content))
		return err
	})
	require.NoError(t, err)
	return list
}

// describe reads a file unless that would take long or block.
func describe(path string, info fs.FileInfo) (string, error) {
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		return os.Readlink(path)
	case !info.Mode().IsRegular():
		return "", nil
	case info.Size() > 1<<20:
		return fmt.Sprintf("%d bytes", info.Size()), nil
	}
	data, err := os.ReadFile(path)
	return fmt.Sprintf("%x", sha256.Sum256(data)), err
}
