//go:build linux || darwin || freebsd

package vfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// OS is the operating system's file system.
type OS struct{}

// OpenDir implements FS.
func (OS) OpenDir(path string) (Dir, error) {
	fd, err := retry(func() (int, error) {
		return unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	})
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return newDir(fd, path, Rules{}), nil
}

// osDir is a bare descriptor. os.File would register it with the poller and repeat interrupted calls,
// which the protocol must not do.
type osDir struct {
	pinned
	path  string
	rules Rules
}

func newDir(fd int, path string, rules Rules) *osDir {
	return &osDir{pinned: pinned{fd: fd}, path: path, rules: rules}
}

func (d *osDir) Guard(rules Rules) { d.rules = rules }

func (d *osDir) fail(op, name string, err error) error {
	if err == nil {
		return nil
	}
	return &fs.PathError{Op: op, Path: filepath.Join(d.path, name), Err: err}
}

// call makes one system call on the directory.
func (d *osDir) call(op, name string, f func(fd int) error) error {
	fd, err := d.Pin()
	if err == nil {
		err = f(fd)
		d.Unpin()
	}
	return d.fail(op, name, err)
}

// ask makes a system call with a result.
func ask[T any](d *osDir, op, name string, f func(fd int) (T, error)) (answer T, err error) {
	err = d.call(op, name, func(fd int) error {
		answer, err = f(fd)
		return err
	})
	return answer, err
}

// open opens an entry of the directory, if the rules admit it. If bits of the mode must be kept despite
// the umask, it distinguishes files that it created from existing ones: only new files get another
// mode.
func (d *osDir) open(name string, flags int, mode uint32) (int, error) {
	mode = d.narrowed(mode)
	const create = unix.O_CREAT | unix.O_EXCL
	if flags&create != unix.O_CREAT || d.kept(mode) == 0 {
		return d.openOnce(name, flags, mode, flags&create == unix.O_CREAT)
	}
	const tries, pause = 20, 5 * time.Millisecond
	for n := 0; ; n++ {
		fd, err := d.openOnce(name, flags&^unix.O_CREAT, mode, true)
		if Is(err, unix.ENOENT) {
			fd, err = d.openOnce(name, flags|unix.O_EXCL, mode, false)
		}
		// Another process created it at the same time, or is setting its mode now.
		if n == tries || !Is(err, unix.EEXIST) && !errors.Is(err, errPrivate) {
			return fd, err
		}
		if errors.Is(err, errPrivate) {
			time.Sleep(pause)
		}
	}
}

func (d *osDir) openOnce(name string, flags int, mode uint32, appended bool) (int, error) {
	return ask(d, "open", name, func(dir int) (int, error) {
		given := mode
		if flags&unix.O_CREAT == 0 {
			given = 0 // openat2 rejects a mode without O_CREAT
		}
		fd, err := retry(func() (int, error) { return openBelow(dir, name, flags|unix.O_NOFOLLOW|unix.O_CLOEXEC, given) })
		if err != nil {
			return -1, err
		}
		if err := d.judge(fd, flags&unix.O_CREAT != 0, appended, mode); err != nil {
			_ = unix.Close(fd)
			return -1, err
		}
		return fd, nil
	})
}

// errPrivate is for a file in a directory shared by a group that only its owner may read or write:
// another program created it, and appended data would be lost to other users.
var errPrivate = fmt.Errorf("it is not open to the group that shares the directory: %w", unix.EACCES)

// judge applies the rules to an open entry.
func (d *osDir) judge(fd int, made, appended bool, mode uint32) error {
	shared := (made || appended) && d.kept(mode) != 0
	if d.rules.Admit == nil && !shared {
		return nil
	}
	info, err := statCached(fd)
	if err == nil && d.rules.Admit != nil {
		err = d.rules.Admit(info, appended)
	}
	switch {
	case err != nil || !shared:
		return err
	case made && !appended:
		return d.keep(fd, info, mode)
	case d.kept(mode)&^info.Mode != 0:
		return errPrivate
	}
	return nil
}

func (d *osDir) narrowed(mode uint32) uint32 { return mode &^ uint32(d.rules.Drop) }

// kept returns the bits of a mode that must be kept.
func (d *osDir) kept(mode uint32) fs.FileMode { return fs.FileMode(mode) & d.rules.Keep }

// keep restores the bits of the mode that the umask cleared in a new entry.
func (d *osDir) keep(fd int, info Info, mode uint32) error {
	missing := d.kept(mode) &^ info.Mode
	if missing == 0 {
		return nil
	}
	return unix.Fchmod(fd, unixMode(info.Mode|missing))
}

func (d *osDir) OpenDir(name string) (Dir, error) {
	return d.openDir(name, unix.O_RDONLY)
}

func (d *osDir) Enter(name string) (Dir, error) { return d.openDir(name, searchOnly) }

func (d *osDir) openDir(name string, flags int) (Dir, error) {
	fd, err := d.open(name, flags|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, err
	}
	return newDir(fd, filepath.Join(d.path, name), d.rules), nil
}

func (d *osDir) Open(name string) (File, error) { return d.openFile(name, unix.O_RDONLY, 0) }

func (d *osDir) Create(name string, mode uint32) (File, error) {
	return d.openFile(name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL, mode)
}

func (d *osDir) OpenAppend(name string, mode uint32) (File, error) {
	return d.openFile(name, unix.O_WRONLY|unix.O_CREAT|unix.O_APPEND, mode)
}

func (d *osDir) OpenDurable(name string, mode uint32) (File, error) {
	return d.openFile(name, unix.O_WRONLY|unix.O_CREAT|durable, mode)
}

func (d *osDir) OpenAppendDurable(name string, mode uint32) (File, error) {
	return d.openFile(name, unix.O_WRONLY|unix.O_CREAT|unix.O_APPEND|durable, mode)
}

func (d *osDir) openFile(name string, flags int, mode uint32) (File, error) {
	fd, err := d.open(name, flags|unix.O_NONBLOCK, mode)
	if err != nil {
		return nil, err
	}
	return &osFile{fd: fd, dir: d, name: name}, nil
}

func (d *osDir) Mkdir(name string, mode uint32) error {
	mode = d.narrowed(mode)
	err := d.call("mkdir", name, func(fd int) error { return unix.Mkdirat(fd, name, mode) })
	if err != nil || d.kept(mode) == 0 {
		return err
	}
	return d.call("chmod", name, func(dir int) error {
		fd, err := openBelow(dir, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		made := os.NewFile(uintptr(fd), name) //nolint:gosec // a descriptor
		defer made.Close()
		info, err := statCached(fd)
		if err != nil || d.kept(mode)&^info.Mode == 0 {
			return err
		}
		// Since then a member of the group may have replaced the directory by another one.
		if _, err := made.Readdirnames(1); !errors.Is(err, io.EOF) || info.Mode.Perm()&^fs.FileMode(mode) != 0 {
			return errPrivate
		}
		return d.keep(fd, info, mode)
	})
}

func (d *osDir) Rename(oldname string, to Dir, newname string) error {
	err := d.rename(oldname, to, newname)
	if err == nil {
		return nil
	}
	return &os.LinkError{Op: "rename", Old: filepath.Join(d.path, oldname), New: filepath.Join(to.Path(), newname), Err: err}
}

func (d *osDir) rename(oldname string, to Dir, newname string) error {
	from, err := d.Pin()
	if err != nil {
		return err
	}
	defer d.Unpin()
	target, err := to.Pin()
	if err != nil {
		return err
	}
	defer to.Unpin()
	return unix.Renameat(from, oldname, target, newname)
}

func (d *osDir) Unlink(name string) error {
	return d.call("unlink", name, func(fd int) error { return unix.Unlinkat(fd, name, 0) })
}

func (d *osDir) Rmdir(name string) error {
	return d.call("rmdir", name, func(fd int) error { return unix.Unlinkat(fd, name, unix.AT_REMOVEDIR) })
}

func (d *osDir) Touch() error { return d.call("touch", "", touch) }

func (d *osDir) TouchFile(name string) error {
	return d.call("touch", name, func(fd int) error { return touchat(fd, name) })
}

func (d *osDir) Stat() (Info, error) { return ask(d, "stat", "", statFD) }

func (d *osDir) StatName(name string) (Info, error) {
	return ask(d, "stat", name, func(fd int) (Info, error) { return statAt(fd, name) })
}

func (d *osDir) StatCached() (Info, error) { return ask(d, "stat", "", statCached) }

func (d *osDir) Handle(name string) (Handle, error) {
	return ask(d, "name_to_handle", name, func(fd int) (Handle, error) { return handleAt(fd, name) })
}

// listed is the number of entries that a listing keeps in memory at a time.
const listed = 1024

func (d *osDir) List(visit func(name string) bool) error {
	return d.list(func(f *os.File) ([]string, error) { return f.Readdirnames(listed) }, visit)
}

// ListFiles costs no more than List if the directory records the types of its entries, as on nearly
// every file system.
func (d *osDir) ListFiles(visit func(name string) bool) error {
	return d.list(func(f *os.File) ([]string, error) {
		entries, err := f.ReadDir(listed)
		names := make([]string, 0, len(entries))
		for _, e := range entries {
			if !e.IsDir() {
				names = append(names, e.Name())
			}
		}
		return names, err
	}, visit)
}

// list opens the directory again, so that a network file system revalidates its cached pages
// (close-to-open), and the offset of this descriptor does not change.
func (d *osDir) list(piece func(*os.File) ([]string, error), visit func(name string) bool) error {
	f, err := d.reopen()
	if err != nil {
		return err
	}
	defer f.Close()
	for {
		names, err := piece(f)
		for _, name := range names {
			if !visit(name) {
				return nil
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
	}
}

func (d *osDir) reopen() (*os.File, error) {
	fd, err := d.open(".", unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), d.path), nil
}

// Sync opens the directory again: a descriptor from Enter cannot be synced.
func (d *osDir) Sync() error {
	f, err := d.reopen()
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}

func (d *osDir) FileSystem() (FileSystem, error) { return ask(d, "statfs", "", fileSystem) }

func (d *osDir) Path() string { return d.path }

func (d *osDir) Close() error { return d.fail("close", "", d.close()) }

type osFile struct {
	fd   int
	dir  *osDir
	name string
}

func (f *osFile) Read(p []byte) (int, error) {
	return f.read(p, func() (int, error) { return unix.Read(f.fd, p) })
}

func (f *osFile) read(p []byte, read func() (int, error)) (int, error) {
	n, err := retry(read)
	if err != nil {
		return 0, f.dir.fail("read", f.name, err)
	}
	if n == 0 && len(p) > 0 {
		return 0, io.EOF
	}
	return n, nil
}

func (f *osFile) ReadAt(p []byte, off int64) (int, error) {
	return f.read(p, func() (int, error) { return unix.Pread(f.fd, p, off) })
}

func (f *osFile) Write(p []byte) (int, error) {
	return f.writeAll(p, func(rest []byte, _ int) (int, error) { return unix.Write(f.fd, rest) })
}

func (f *osFile) WriteAt(p []byte, off int64) (int, error) {
	return f.writeAll(p, func(rest []byte, done int) (int, error) {
		return unix.Pwrite(f.fd, rest, off+int64(done))
	})
}

// writeAll continues after a short write, so that a full disk or a quota returns its error.
func (f *osFile) writeAll(p []byte, write func(rest []byte, done int) (int, error)) (int, error) {
	done := 0
	for done < len(p) {
		n, err := retry(func() (int, error) { return write(p[done:], done) })
		if err != nil {
			return done, f.dir.fail("write", f.name, err)
		}
		done += n
	}
	return done, nil
}

func (f *osFile) Stat() (Info, error) {
	info, err := statFD(f.fd)
	return info, f.dir.fail("stat", f.name, err)
}

func (f *osFile) StatCached() (Info, error) {
	info, err := statCached(f.fd)
	return info, f.dir.fail("stat", f.name, err)
}

func (f *osFile) Handle() (Handle, error) {
	handle, err := handleFD(f.fd)
	return handle, f.dir.fail("name_to_handle", f.name, err)
}

func (f *osFile) Sync() error { return f.dir.fail("fsync", f.name, unix.Fsync(f.fd)) }

func (f *osFile) Flush() error { return f.dir.fail("flush", f.name, flush(f.fd)) }

func (f *osFile) Close() error { return f.dir.fail("close", f.name, unix.Close(f.fd)) }

// touchat passes no times, which means "now" by the server's clock and only requires write permission
// (utimensat(2)). Explicit times would come from this client's clock. touch does the same.
func touchat(fd int, name string) error {
	return unix.UtimesNanoAt(fd, name, nil, unix.AT_SYMLINK_NOFOLLOW)
}

// retry repeats a call that a signal interrupted. It is only for calls that may be executed twice: an
// exclusive create that took effect before the interruption then returns EEXIST, which the protocol
// expects anyway.
func retry(call func() (int, error)) (int, error) {
	for {
		n, err := call()
		if err != unix.EINTR { //nolint:errorlint // a bare error number
			return n, err
		}
	}
}

// fileMode converts the bits of a mode that the protocol uses.
func fileMode(mode uint32) fs.FileMode {
	m := fs.FileMode(mode & 0o777)
	if mode&unix.S_ISVTX != 0 {
		m |= fs.ModeSticky
	}
	if mode&unix.S_ISGID != 0 {
		m |= fs.ModeSetgid
	}
	switch mode & unix.S_IFMT {
	case unix.S_IFDIR:
		m |= fs.ModeDir
	case unix.S_IFREG:
	case unix.S_IFLNK:
		m |= fs.ModeSymlink
	case unix.S_IFIFO:
		m |= fs.ModeNamedPipe
	default:
		m |= fs.ModeIrregular
	}
	return m
}

// unixMode converts a mode from fileMode for chmod(2).
func unixMode(mode fs.FileMode) uint32 {
	m := uint32(mode.Perm())
	if mode&fs.ModeSticky != 0 {
		m |= unix.S_ISVTX
	}
	if mode&fs.ModeSetgid != 0 {
		m |= unix.S_ISGID
	}
	return m
}
