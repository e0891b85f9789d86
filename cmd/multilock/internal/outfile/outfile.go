//go:build !windows

// Package outfile writes and reads files that the user names. They may be in a directory where other
// users can write and may have put a link to some other file.
//
// One rule applies to all of them. A directory is exclusive if only trusted users could have created
// entries in it: root, this user, and the directory's group if that was declared. There all
// entries are what the user meant: links are followed, and pipes and devices are written to. In any
// other directory no link is followed, on the whole path to the file, and the file must have one name
// and belong to a trusted user, whatever its type. Root trusts no group, and executes nothing that it
// reaches through a directory that other users can write to.
package outfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/multilock/go/multilock/shareddir"
	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/vfs"
)

// fileMode is subject to the umask.
const fileMode = 0o666

// Dir is an open directory for such files.
type Dir struct {
	vfs.Dir
	look shareddir.Outside
}

func newDir(dir vfs.Dir) (Dir, error) {
	look, err := shareddir.Look(dir)
	return Dir{dir, look}, err
}

// Append opens the file at path for appending, and creates it if it is absent.
func Append(path string) (*os.File, error) {
	dir, name, err := find(path)
	if err != nil {
		return nil, err
	}
	defer dir.Close() //nolint:errcheck // a directory
	return dir.append(name)
}

// Append opens the file name for appending, and creates it if it is absent.
func (d Dir) Append(name string) (*os.File, error) {
	f, err := d.append(name)
	if isLink(err) && d.look.Exclusive() == nil {
		return Append(d.Path() + "/" + name)
	}
	return f, err
}

// Has reports whether there is an entry with that name.
func (d Dir) Has(name string) bool {
	_, err := d.StatName(name)
	return err == nil
}

// append follows only links in /proc, which lead to open files that may have no path. It does not wait
// for the other end of a pipe that an untrusted user may have created.
func (d Dir) append(name string) (*os.File, error) {
	flags := os.O_WRONLY | os.O_CREATE | os.O_APPEND
	if !d.inProc() {
		flags |= noFollow
	}
	f, err := openAt(d.Dir, name, flags|nonBlock, fileMode)
	if vfs.Is(err, syscall.ENXIO) {
		if why := d.untrustedEntry(name); why != nil {
			return nil, d.refuse(name, "no process reads from this pipe, and multilock does not wait for one: %w", why)
		}
		f, err = openAt(d.Dir, name, flags, fileMode)
	}
	if err != nil {
		return nil, d.explain(name, err)
	}
	if err := d.admit(f); err != nil {
		return nil, errors.Join(d.refuse(name, "%w; remove it, or name a file in a directory that no other user can write to", err), f.Close())
	}
	return f, nil
}

// untrustedEntry returns why an untrusted user may have created the entry name: now, or when other users
// could still write to the directory.
func (d Dir) untrustedEntry(name string) error {
	if err := d.look.Exclusive(); err != nil {
		return err
	}
	info, err := d.StatName(name)
	if err != nil {
		return err
	}
	return d.look.Admit(info)
}

// admit returns why an opened file must not be written to.
func (d Dir) admit(f *os.File) error {
	info, err := infoOf(f)
	if err != nil {
		return err
	}
	return d.untrustedFile(info)
}

// untrustedFile returns why a file may belong to an untrusted user.
func (d Dir) untrustedFile(info vfs.Info) error {
	err := d.look.Admit(info)
	if err != nil && d.look.Exclusive() == nil {
		return nil
	}
	return err
}

// Open opens the file at path for reading, if no untrusted user can have changed it: the caller
// executes its content.
func Open(path string) (*os.File, error) {
	asRoot := os.Geteuid() == 0
	dir, name, err := way{obey: asRoot}.find(path)
	if err != nil {
		return nil, err
	}
	defer dir.Close() //nolint:errcheck // a directory
	f, info, err := dir.read(name)
	if err != nil || dir.inProc() {
		return f, err
	}
	err = dir.look.Obey(info)
	if err == nil && asRoot {
		err = dir.look.Leads(info)
	}
	if err != nil {
		return nil, errors.Join(dir.refuse(name, "%w", err), f.Close())
	}
	return f, nil
}

// Peek opens the file at path for reading, even if other users can have changed it. It does not follow
// other users' links, which could lead to a file that only root may read, nor wait for their pipes.
func Peek(path string) (*os.File, error) {
	dir, name, err := way{peek: true}.find(path)
	if err != nil {
		return nil, err
	}
	defer dir.Close() //nolint:errcheck // a directory
	f, _, err := dir.read(name)
	return f, err
}

// Check returns why a library must not read the file at path: the library would follow other users'
// links, and wait for the other end of a pipe. It leaves a missing file to the library's own error.
func Check(path string) error {
	dir, name, err := way{peek: true}.find(path)
	if vfs.Is(err, syscall.ENOENT) {
		return nil
	}
	if err != nil {
		return err
	}
	defer dir.Close() //nolint:errcheck // a directory
	info, err := dir.StatName(name)
	switch {
	case dir.inProc(), vfs.Is(err, syscall.ENOENT):
		return nil
	case err != nil:
		return err
	case info.Mode&fs.ModeSymlink != 0:
		return dir.explain(name, syscall.ELOOP)
	case !shareddir.IsRegular(info):
		return dir.refuse(name, "it is not a regular file")
	}
	return nil
}

// read opens a file for reading. It does not wait for the other end of a pipe that an untrusted user
// may have created.
func (d Dir) read(name string) (*os.File, vfs.Info, error) {
	flags := os.O_RDONLY
	if !d.inProc() {
		flags |= noFollow
		if !d.isPipe(name) || d.untrustedEntry(name) != nil {
			flags |= nonBlock
		}
	}
	f, err := openAt(d.Dir, name, flags, 0)
	if err != nil {
		return nil, vfs.Info{}, d.explain(name, err)
	}
	info, err := infoOf(f)
	if err == nil && info.Mode&fs.ModeNamedPipe != 0 && !d.inProc() {
		err = d.look.Admit(info)
	}
	if err != nil {
		return nil, info, errors.Join(d.refuse(name, "%w", err), f.Close())
	}
	return f, info, nil
}

func (d Dir) isPipe(name string) bool {
	info, err := d.StatName(name)
	return err == nil && info.Mode&fs.ModeNamedPipe != 0
}

// Replace replaces the file at path in one step: a reader finds the old content or the new one. It
// replaces a link, unless links are followed there, and writes to a pipe or device.
func Replace(path string, content []byte) error {
	dir, name, err := find(path)
	if err != nil {
		return err
	}
	defer dir.Close() //nolint:errcheck // a directory
	info, err := dir.StatName(name)
	if err == nil && !shareddir.IsRegular(info) && (info.Mode&fs.ModeSymlink == 0 || dir.inProc()) {
		return dir.writeTo(name, content)
	}
	return dir.replace(name, content)
}

// writeTo writes to the existing file.
func (d Dir) writeTo(name string, content []byte) error {
	f, err := d.append(name)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	return errors.Join(err, f.Close())
}

// replace syncs the new file before it renames it, because the file must not be empty after a crash.
func (d Dir) replace(name string, content []byte) error {
	next := ".multilock-" + source.NewToken() + ".tmp" // unique
	f, err := d.Create(next, fileMode)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = d.Rename(next, d.Dir, name)
	}
	if err != nil {
		_ = d.Unlink(next) // it may be gone already
	}
	return err
}

// explain adds a hint to the error for a link that an untrusted user may have created.
func (d Dir) explain(name string, err error) error {
	if why := d.look.Exclusive(); why != nil && isLink(err) {
		return d.refuse(name, "a link is not followed in this directory, for %w; name the file that it leads to", why)
	}
	return err
}

func (d Dir) refuse(name, format string, args ...any) error {
	return &fs.PathError{Op: "open", Path: filepath.Join(d.Path(), name), Err: fmt.Errorf(format, args...)}
}

func (d Dir) inProc() bool { return strings.HasPrefix(d.Path(), "/proc/") }
