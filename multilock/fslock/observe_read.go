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

// read reads the record and the job file from the directory.
func (o *observer) read() error {
	o.orphan, o.torn, o.strays, o.strange = false, false, nil, strange{}
	data, info, err := readLocked(o.dir, o.name)
	switch {
	case is(err, syscall.ENOENT):
		return o.readOrphan()
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

// readOrphan handles a directory without a lock file. An empty one is free, except where Python peers
// contend: a peer may be about to write its lock file.
func (o *observer) readOrphan() error {
	locked, strays, err := content(o.dir, o.name)
	switch {
	case err != nil:
		return err
	case locked:
		return nil // it has just appeared; the next look reads it
	case len(strays) == 0 && !o.src.legacy:
		return errFree
	}
	o.orphan, o.strays = true, strays
	o.record = source.Record{Name: o.name, Foreign: "its directory has no lock file"}
	return nil
}

// errNotRegular means that a lock file is not a regular file.
var errNotRegular = errors.New("the lock file is not a regular file")

// openFresh opens the directory of the lock name and reads the lock file, as the server has them now: if
// the group has changed, fetching its attributes first makes an NFS client drop its cached names. Otherwise
// it is like open.
func (s *Source) openFresh(group vfs.Dir, name string) (vfs.Dir, []byte, error) {
	if err := s.files.Refresh(group); err != nil {
		return nil, nil, err
	}
	return s.open(group, name)
}

// open opens the directory of the lock name and reads the lock file, both through descriptors. The
// directory is nil if it cannot be opened; the content is nil if there is no lock file. The name may come
// from an NFS client's cache.
func (s *Source) open(group vfs.Dir, name string) (vfs.Dir, []byte, error) {
	dir, err := group.OpenDir(name)
	if err != nil {
		return nil, nil, err
	}
	content, err := readRecord(dir, name)
	return dir, content, err
}

// readRecord reads as much of the lock file as a record can have, for comparison with a known record. It
// does not check that the file is regular and complete, because equality implies both.
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

// readLocked reads the lock file of an open lock directory. It closes the file at once: a file that is
// removed while it is open leaves a leftover on NFS.
func readLocked(dir vfs.Dir, name string) ([]byte, vfs.Info, error) {
	f, err := dir.Open(name + lockedSuffix)
	if err != nil {
		return nil, vfs.Info{}, err
	}
	defer f.Close()             //nolint:errcheck // only read from
	info, err := f.StatCached() // the file never changes
	if err != nil {
		return nil, info, err
	}
	if !shareddir.IsRegular(info) {
		return nil, info, errNotRegular
	}
	content, err := readFile(f, nil, maxRecord)
	return content, info, err
}

// inTheWay reports what is at the path of the lock's directory.
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
