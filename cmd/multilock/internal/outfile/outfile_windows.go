// Package outfile writes the files that the user names. On Windows it relies on the system's
// permissions: creating a link needs a privilege of its own there.
package outfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/multilock/go/multilock/source"
)

const (
	fileMode = 0o666
	dirMode  = 0o777
)

// Dir is a directory for such files.
type Dir struct{ path string }

// OpenDir opens the directory at path.
func OpenDir(path string) (Dir, error) {
	info, err := os.Stat(path)
	if err == nil && !info.IsDir() {
		err = &fs.PathError{Op: "open", Path: path, Err: errors.New("it is not a directory")}
	}
	return Dir{path}, err
}

// MakeDir opens the directory at path, and creates it with its parents if it is absent.
func MakeDir(path string) (Dir, error) { return Dir{path}, os.MkdirAll(path, dirMode) }

// Path returns the path of the directory.
func (d Dir) Path() string { return d.path }

// Close does nothing: the directory is not held open.
func (d Dir) Close() error { return nil }

func (d Dir) file(name string) string { return filepath.Join(d.path, name) }

// Append opens the file at path for appending, and creates it if it is absent.
func Append(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, fileMode)
}

// Append opens the file name for appending, and creates it if it is absent.
func (d Dir) Append(name string) (*os.File, error) { return Append(d.file(name)) }

// Has reports whether there is an entry with that name.
func (d Dir) Has(name string) bool {
	_, err := os.Lstat(d.file(name))
	return err == nil
}

// Make creates the file name, which must not exist, for writing.
func (d Dir) Make(name string) (*os.File, error) {
	return os.OpenFile(d.file(name), os.O_WRONLY|os.O_CREATE|os.O_EXCL|os.O_APPEND, fileMode)
}

// Open opens the file at path for reading.
func Open(path string) (*os.File, error) { return os.Open(path) }

// Check accepts every path: on Windows other users cannot plant links or pipes.
func Check(string) error { return nil }

// Peek opens the file at path for reading.
func Peek(path string) (*os.File, error) { return os.Open(path) }

// Replace replaces the file at path in one step.
func Replace(path string, content []byte) error {
	next := filepath.Join(filepath.Dir(path), ".multilock-"+source.NewToken()+".tmp")
	f, err := os.OpenFile(next, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(next, path)
	}
	if err != nil {
		_ = os.Remove(next)
	}
	return err
}

// Begin starts a new file at path. The existing file becomes path.1, and so on, so that keep files
// exist with the new one; older ones are removed.
func Begin(path string, keep int) (*os.File, error) {
	if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
		if err := turn(path, keep); err != nil {
			return nil, err
		}
	}
	return Append(path)
}

func turn(path string, keep int) error {
	if keep <= 1 {
		if err := os.Remove(path); err != nil {
			return err
		}
	}
	for i := keep - 1; i > 0; i-- {
		if err := os.Rename(numbered(path, i-1), numbered(path, i)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	for i := max(keep, 1); ; i++ { // left from a larger keep
		err := os.Remove(numbered(path, i))
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func numbered(path string, i int) string {
	if i == 0 {
		return path
	}
	return path + "." + strconv.Itoa(i)
}

// Keep removes all files of a kind except the last ones in the order of their names.
func (d Dir) Keep(last int, ofKind func(name string) bool) error {
	entries, err := os.ReadDir(d.path)
	entries = slices.DeleteFunc(entries, func(e fs.DirEntry) bool { return !e.Type().IsRegular() || !ofKind(e.Name()) })
	for _, e := range entries[:max(len(entries)-last, 0)] { // os.ReadDir sorts them
		if gone := os.Remove(d.file(e.Name())); gone != nil && !errors.Is(gone, fs.ErrNotExist) {
			return gone
		}
	}
	return err
}
