package fslock

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"syscall"

	"github.com/multilock/go/multilock/shareddir"
	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/vfs"
)

// read reads the record and the job's mark from the directory.
func (o *observer) read() error {
	o.limbo, o.torn, o.strays, o.strange = false, false, nil, strange{}
	data, info, err := readLocked(o.dir, o.name)
	switch {
	case is(err, syscall.ENOENT):
		return o.readLimbo()
	case errors.Is(err, errNotRegular), is(err, syscall.ELOOP, syscall.ENXIO, syscall.EACCES, syscall.EPERM, syscall.EISDIR):
		o.record = source.Record{Name: o.name, Foreign: "its lock file cannot be read: " + err.Error()}
		return nil
	case err != nil:
		return err
	}
	o.record = ParseRecord(o.name, data)
	o.taken = info.ModTime
	if o.record.Foreign != "" {
		o.strange = strangenessOf(data)
	}
	o.torn = o.record.Foreign == errEmptyRecord.Error() && info.Mode&fs.ModeSticky != 0
	if o.telling() {
		o.record.Groups, err = readMark(o.dir, o.name)
	}
	return err
}

// readLimbo handles a directory without a lock file. An empty one is free, but
// where Python peers contend: there it may be taken a moment later.
func (o *observer) readLimbo() error {
	locked, strays, err := content(o.dir, o.name)
	switch {
	case err != nil:
		return err
	case locked:
		return nil // it appeared just now; the next look reads it
	case len(strays) == 0 && !o.src.legacy:
		return errFree
	}
	o.limbo, o.strays = true, strays
	o.record = source.Record{Name: o.name, Foreign: "its directory has no lock file"}
	return nil
}

// errNotRegular says that a lock file is something else than a file.
var errNotRegular = errors.New("the lock file is not a regular file")

// openFresh opens the lock name and reads its file, as the server has them now:
// fetching the group's attributes first makes an NFS client forget the names
// that it cached, if the group has changed. Otherwise it is open.
func (s *Source) openFresh(group vfs.Dir, name string) (vfs.Dir, []byte, error) {
	if err := s.files.Refresh(group); err != nil {
		return nil, nil, err
	}
	return s.open(group, name)
}

// open opens the lock name and reads its file, both through descriptors. The
// directory is nil if it cannot be opened; the content is nil if there is none.
// The name may be one that an NFS client remembers.
func (s *Source) open(group vfs.Dir, name string) (vfs.Dir, []byte, error) {
	dir, err := group.OpenDir(name)
	if err != nil {
		return nil, nil, err
	}
	content, err := readRecord(dir, name)
	return dir, content, err
}

// readRecord reads as much of the lock file as a record can have, for comparing
// it with one that is known: that it is a regular file and ends where it should
// follows from being equal.
func readRecord(dir vfs.Dir, name string) ([]byte, error) {
	f, err := dir.Open(name + lockedSuffix)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // only read from
	content := make([]byte, typicalRecord)
	n, err := f.Read(content)
	if errors.Is(err, io.EOF) {
		return content[:0], nil
	}
	if err != nil || n < len(content) {
		return content[:n], err
	}
	return readFile(f, content, maxRecord)
}

// readLocked reads the lock file of an open lock directory. It is closed at once:
// a file that is open when it is removed leaves a leftover on NFS.
func readLocked(dir vfs.Dir, name string) ([]byte, vfs.Info, error) {
	f, err := dir.Open(name + lockedSuffix)
	if err != nil {
		return nil, vfs.Info{}, err
	}
	defer f.Close()             //nolint:errcheck // only read from
	info, err := f.StatCached() // nobody writes to it
	if err != nil {
		return nil, info, err
	}
	if !shareddir.IsRegular(info) {
		return nil, info, errNotRegular
	}
	content, err := readFile(f, nil, maxRecord)
	return content, info, err
}

// inTheWay says what stands where the lock's directory belongs.
func (s *Source) inTheWay(name string) error {
	group, err := s.groupDir.Use()
	if err != nil {
		return s.groupError(err)
	}
	defer s.groupDir.Done(group)
	what := "something that is not a directory"
	if info, err := group.StatName(name); err == nil {
		switch {
		case info.Mode.IsRegular():
			what = "a file"
		case info.Mode&fs.ModeSymlink != 0:
			what = "a symbolic link"
		case info.Mode&fs.ModeNamedPipe != 0:
			what = "a FIFO"
		}
	}
	return &source.InvalidError{
		What: "lock name", Got: name, Err: syscall.ENOTDIR,
		Why: fmt.Sprintf("%s/%s is %s, not a lock's directory; move it away or choose another name", group.Path(), name, what),
	}
}
