//go:build linux

// Package cpio writes the "newc" archives that the Linux kernel unpacks as its initial root filesystem
// (Documentation/driver-api/early-userspace/buffer-format.rst). The kernel accepts several concatenated
// archives, and files in a later one replace earlier ones. A run uses this to add its own files to a cached
// image.
package cpio

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

const (
	modeDir     = 0o040000
	modeRegular = 0o100000
	modeSymlink = 0o120000
)

// Writer appends entries to an archive. Every entry belongs to root and has no time, so equal content gives
// equal bytes. Parents are created as needed, once.
type Writer struct {
	w      io.Writer
	offset int64
	inode  uint32
	dirs   map[string]bool
}

// NewWriter returns a Writer on w. Finish must be called to complete the archive.
func NewWriter(w io.Writer) *Writer {
	return &Writer{w: w, dirs: map[string]bool{".": true}}
}

// Dir adds a directory with the given permission bits, and its parents with 0755.
func (w *Writer) Dir(name string, perm fs.FileMode) error {
	name = clean(name)
	if w.dirs[name] {
		return nil
	}
	if err := w.parents(name); err != nil {
		return err
	}
	w.dirs[name] = true
	return w.entry(name, modeDir|uint32(perm.Perm()), 0, nil)
}

// File adds a regular file of exactly size bytes, read from r.
func (w *Writer) File(name string, perm fs.FileMode, size int64, r io.Reader) error {
	name = clean(name)
	if err := w.parents(name); err != nil {
		return err
	}
	return w.entry(name, modeRegular|uint32(perm.Perm()), size, r)
}

// Bytes adds a regular file with the given content.
func (w *Writer) Bytes(name string, perm fs.FileMode, content []byte) error {
	return w.File(name, perm, int64(len(content)), strings.NewReader(string(content)))
}

// Symlink adds a symbolic link.
func (w *Writer) Symlink(name, target string) error {
	name = clean(name)
	if err := w.parents(name); err != nil {
		return err
	}
	return w.entry(name, modeSymlink|0o777, int64(len(target)), strings.NewReader(target))
}

// Copy adds the file or link at source under name. Directories are added without their content.
func (w *Writer) Copy(name, source string) error {
	info, err := os.Lstat(source)
	if err != nil {
		return err
	}
	switch {
	case info.IsDir():
		return w.Dir(name, info.Mode())
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := os.Readlink(source)
		if err != nil {
			return err
		}
		return w.Symlink(name, target)
	case info.Mode().IsRegular():
		return w.copyRegular(name, source, info)
	}
	return fmt.Errorf("%s: neither file, directory nor link", source)
}

func (w *Writer) copyRegular(name, source string, info fs.FileInfo) error {
	f, err := os.Open(source)
	if err != nil {
		return err
	}
	defer f.Close()
	return w.File(name, info.Mode(), info.Size(), f)
}

// Tree adds everything below dir, under the name that rename returns for the slash-separated path relative
// to dir. An entry whose new name is empty is left out, a directory with all its content.
func (w *Writer) Tree(dir string, rename func(string) string) error {
	return filepath.WalkDir(dir, func(source string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(dir, source)
		if err != nil || relative == "." {
			return err
		}
		name := rename(filepath.ToSlash(relative))
		switch {
		case name == "" && d.IsDir():
			return fs.SkipDir
		case name == "":
			return nil
		}
		return w.Copy(name, source)
	})
}

// Finish writes the trailer. The archive is padded so that another one may follow.
func (w *Writer) Finish() error {
	if err := w.entry("TRAILER!!!", 0, 0, nil); err != nil {
		return err
	}
	return w.pad(512)
}

func (w *Writer) parents(name string) error {
	if parent := path.Dir(name); !w.dirs[parent] {
		return w.Dir(parent, 0o755)
	}
	return nil
}

func (w *Writer) entry(name string, mode uint32, size int64, r io.Reader) error {
	if size < 0 || size >= 1<<32 {
		return fmt.Errorf("cpio %s: size %d does not fit the format", name, size)
	}
	w.inode++
	header := fmt.Sprintf("070701%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%s\x00",
		w.inode, mode, 0, 0, 1, 0, size, 0, 0, 0, 0, len(name)+1, 0, name)
	if err := w.copy(name, int64(len(header)), strings.NewReader(header)); err != nil {
		return err
	}
	if err := w.pad(4); err != nil {
		return err
	}
	if size > 0 {
		if err := w.copy(name, size, r); err != nil {
			return err
		}
	}
	return w.pad(4)
}

func (w *Writer) copy(name string, size int64, r io.Reader) error {
	n, err := io.CopyN(w.w, r, size)
	w.offset += n
	if err != nil {
		return fmt.Errorf("cpio %s: %w", name, err)
	}
	return nil
}

func (w *Writer) pad(alignment int64) error {
	missing := (alignment - w.offset%alignment) % alignment
	n, err := w.w.Write(make([]byte, missing))
	w.offset += int64(n)
	return err
}

func clean(name string) string {
	return strings.TrimPrefix(path.Clean("/"+name), "/")
}
