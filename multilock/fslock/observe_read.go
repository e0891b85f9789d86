package fslock

import (
	"encoding/json"
	"errors"
	"io/fs"
	"syscall"

	"github.com/multilock/go/multilock/process"
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
	if o.record.Job {
		o.record.Group, err = readJob(o.dir, o.name)
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

// readJob reads the job's mark; a missing or torn one proves nothing, and is read again
// at the next look. That the server did not answer is an error: the mark may be there,
// and the job alive.
func readJob(dir vfs.Dir, name string) (process.Group, error) {
	f, err := dir.Open(name + jobSuffix)
	if inDoubt(err) {
		return process.Group{}, err
	}
	if err != nil {
		return process.Group{}, nil
	}
	defer f.Close() //nolint:errcheck // only read from
	data, err := readFile(f, nil)
	if err != nil {
		return process.Group{}, err
	}
	var g process.Group
	if json.Unmarshal(data, &g) != nil {
		return process.Group{}, nil
	}
	return g, nil
}
