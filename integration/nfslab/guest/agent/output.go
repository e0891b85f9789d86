//go:build linux

package agent

import (
	"archive/tar"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// sendTree writes the files, directories and links below dir as a tar archive.
func sendTree(w io.Writer, dir string) error {
	archive := tar.NewWriter(w)
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		return addToArchive(archive, dir, path, entry)
	})
	if err != nil {
		return err
	}
	return archive.Close()
}

func addToArchive(archive *tar.Writer, dir, path string, entry fs.DirEntry) error {
	info, err := entry.Info()
	if err != nil {
		return err
	}
	target := ""
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		if target, err = os.Readlink(path); err != nil {
			return err
		}
	case !info.IsDir() && !info.Mode().IsRegular():
		return nil // a pipe or socket has no use outside
	}
	header, err := tar.FileInfoHeader(info, target)
	if err != nil {
		return err
	}
	if header.Name, err = filepath.Rel(dir, path); err != nil {
		return err
	}
	if err := archive.WriteHeader(header); err != nil || !info.Mode().IsRegular() {
		return err
	}
	return copyContent(archive, path, info.Size())
}

// copyContent copies as many bytes as the header states, even if the file has grown since.
func copyContent(archive io.Writer, path string, size int64) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.CopyN(archive, f, size)
	return err
}
