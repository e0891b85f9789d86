//go:build !windows

// Package outfile writes and reads the files that the user names, wherever that is: perhaps in
// a directory where others can write, too, and have put a link to some other file.
//
// One rule holds for all of them. In a directory where nobody can have put anything but
// root, this user, and the group to which such a directory was given, all is taken for
// what the user meant: links are followed, pipes and devices are written to. In any other
// one no link is followed, on the whole way to the file, and the file has one name and
// belongs to one of those, whatever it is. Root believes no group, and runs nothing to which
// a directory leads that others can write.
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

// fileMode is narrowed by the umask, as people expect it.
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

// Append opens the file at path for appending, and makes it if it is absent.
func Append(path string) (*os.File, error) {
	dir, name, err := find(path)
	if err != nil {
		return nil, err
	}
	defer dir.Close() //nolint:errcheck // a directory
	return dir.append(name)
}

// Append opens the file name for appending, and makes it if it is absent.
func (d Dir) Append(name string) (*os.File, error) {
	f, err := d.append(name)
	if isLink(err) && d.look.Exclusive() == nil {
		return Append(d.Path() + "/" + name)
	}
	return f, err
}

// Has says whether there is a file of that name.
func (d Dir) Has(name string) bool {
	_, err := d.StatName(name)
	return err == nil
}

// append follows no link but those in /proc, which lead to what is open and may have no
// path. The other end of a pipe is not waited for where a stranger may have made that.
func (d Dir) append(name string) (*os.File, error) {
	flags := os.O_WRONLY | os.O_CREATE | os.O_APPEND
	if !d.inProc() {
		flags |= noFollow
	}
	f, err := openAt(d.Dir, name, flags|nonBlock, fileMode)
	if vfs.Is(err, syscall.ENXIO) {
		if why := d.strange(name); why != nil {
			return nil, d.refuse(name, "nobody reads from this pipe, and that is not waited for, for %w", why)
		}
		f, err = openAt(d.Dir, name, flags, fileMode)
	}
	if err != nil {
		return nil, d.explain(name, err)
	}
	if err := d.admit(f); err != nil {
		return nil, errors.Join(d.refuse(name, "%w; remove it, or name a file where nobody else can write", err), f.Close())
	}
	return f, nil
}

// strange says why somebody may have made the entry name who is not trusted: now, or when
// others could still write to the directory.
func (d Dir) strange(name string) error {
	if err := d.look.Exclusive(); err != nil {
		return err
	}
	info, err := d.StatName(name)
	if err != nil {
		return err
	}
	return d.look.Admit(info)
}

// admit says why what was opened is not written to.
func (d Dir) admit(f *os.File) error {
	info, err := infoOf(f)
	if err != nil {
		return err
	}
	return d.foreign(info)
}

// foreign says why a file may be that of somebody who is not trusted.
func (d Dir) foreign(info vfs.Info) error {
	err := d.look.Admit(info)
	if err != nil && d.look.Exclusive() == nil {
		return nil
	}
	return err
}

// Open opens the file at path for reading, if nobody can have changed it who is not
// trusted: what it says is to be done.
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

// Peek opens the file at path for reading, whoever can have changed it. It does not follow the
// links of others, which could lead to what only root may read, nor wait for their pipes.
func Peek(path string) (*os.File, error) {
	dir, name, err := way{peek: true}.find(path)
	if err != nil {
		return nil, err
	}
	defer dir.Close() //nolint:errcheck // a directory
	f, _, err := dir.read(name)
	return f, err
}

// Check says why a library must not read the file at path, which would follow the links of others
// as well, and wait for the other end of a pipe. A file that is absent is the library's to report.
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

// read opens a file for reading. The other end of a pipe is not waited for where a stranger
// may have made that.
func (d Dir) read(name string) (*os.File, vfs.Info, error) {
	flags := os.O_RDONLY
	if !d.inProc() {
		flags |= noFollow
		if !d.isPipe(name) || d.strange(name) != nil {
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

// Replace puts a file in the place of the one at path in one step: a reader finds the old
// one or the new one. A link is replaced unless it is to be followed; what is no file,
// such as a pipe or a device, is written to.
func Replace(path string, content []byte) error {
	dir, name, err := find(path)
	if err != nil {
		return err
	}
	defer dir.Close() //nolint:errcheck // a directory
	info, err := dir.StatName(name)
	if err == nil && !shareddir.IsRegular(info) && (info.Mode&fs.ModeSymlink == 0 || dir.inProc()) {
		return dir.pour(name, content)
	}
	return dir.replace(name, content)
}

// pour writes to what is there.
func (d Dir) pour(name string, content []byte) error {
	f, err := d.append(name)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	return errors.Join(err, f.Close())
}

// replace makes sure that the file has reached the disk or the server before it is
// renamed: it must not be empty after a crash.
func (d Dir) replace(name string, content []byte) error {
	next := ".multilock-" + source.NewToken() + ".tmp" // such a name is nobody else's
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

// explain says more of a link that a stranger may have made.
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
