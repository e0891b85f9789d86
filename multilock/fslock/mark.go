package fslock

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"syscall"

	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/shareddir"
	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/vfs"
)

// maxMark bounds how much of a job file is read: our own lines are not longer.
const maxMark = source.MaxGroups * 512

// MarkJob writes the process groups of the jobs into the lock directory, one line each.
func (l *lease) MarkJob(_ context.Context, jobs ...process.Group) error {
	const op = "mark the job"
	l.marking.Lock()
	defer l.marking.Unlock()
	if err := l.use(); err != nil {
		return err
	}
	defer l.leave()
	l.mu.Lock()
	again := l.marked
	l.marked = again || len(jobs) > 0
	l.renewed = l.renewed || again && len(jobs) > 0 || len(jobs) > 1
	l.mu.Unlock()
	switch {
	case len(jobs) == 0 && !again:
		return nil
	case len(jobs) == 0:
		if err := l.dir.Unlink(l.job()); err != nil && !gone(err) {
			return opError(op, l.record.Name, err)
		}
		return nil
	case len(jobs) == 1 && !again:
		return l.explain(op, l.writeMark(l.job(), jobs))
	}
	return l.explain(op, l.replaceMark(jobs))
}

// replaceMark replaces the job file by a rename, so that it is never absent or partial: the jobs that the
// old file names may be alive. Whatever the rename returned, it was carried out if the new file's name is
// gone and the job file exists.
func (l *lease) replaceMark(jobs []process.Group) error {
	err := l.writeMark(l.newJob(), jobs)
	if err != nil {
		return err
	}
	if err = l.dir.Rename(l.newJob(), l.dir, l.job()); err == nil {
		return nil
	}
	if gone(l.dir.Unlink(l.newJob())) {
		_, err = l.dir.StatName(l.job())
	}
	return err
}

// writeMark writes the lines to a new file. A file of that name was left by an earlier call, perhaps
// incomplete, and is replaced.
func (l *lease) writeMark(name string, jobs []process.Group) error {
	lines := make([][]byte, 0, len(jobs))
	for _, job := range jobs {
		line, err := json.Marshal(job)
		if err != nil {
			return err
		}
		lines = append(lines, line)
	}
	f, err := l.dir.Create(name, shareddir.FileMode)
	if is(err, syscall.EEXIST) {
		if err := l.dir.Unlink(name); err != nil && !gone(err) {
			return err
		}
		f, err = l.dir.Create(name, shareddir.FileMode)
	}
	if err != nil {
		return err
	}
	_, err = f.Write(bytes.Join(lines, []byte("\n")))
	return errors.Join(err, f.Close())
}

// readMark reads the job file. A missing or truncated file or line proves nothing; if there is no file, the
// next look tries again. A missing reply of the server is an error, because the file may be there, and the
// job alive.
func readMark(dir vfs.Dir, name string) ([]process.Group, error) {
	f, err := dir.Open(name + jobSuffix)
	if inDoubt(err) {
		return nil, err
	}
	if err != nil {
		return nil, nil
	}
	defer f.Close() //nolint:errcheck // only read from
	data, err := readFile(f, nil, maxMark)
	if err != nil {
		return nil, err
	}
	return groupsIn(data), nil
}

// JobGroups implements source.JobObserver.
func (s *Source) JobGroups(_ context.Context, name string) ([]process.Group, error) {
	const op = "read the job's processes"
	group, err := s.groupDir.Use()
	if gone(err) {
		return nil, nil
	}
	if err != nil {
		return nil, s.groupError(err)
	}
	defer s.groupDir.Done(group)
	dir, err := group.OpenDir(name)
	if gone(err) {
		return nil, nil
	}
	if err != nil {
		return nil, opError(op, name, err)
	}
	defer dir.Close()                                   //nolint:errcheck // only read from
	if _, err := dir.Stat(); err != nil && !gone(err) { // so that a replaced job file is not read from a cache
		return nil, opError(op, name, err)
	}
	groups, err := readMark(dir, name)
	if err != nil {
		return nil, opError(op, name, err)
	}
	return groups, nil
}

// groupsIn returns the groups in a job file, one more than the maximum if there are too many.
func groupsIn(data []byte) (groups []process.Group) {
	for line := range bytes.Lines(data) {
		var g process.Group
		if json.Unmarshal(line, &g) == nil && g.PGID != 0 {
			groups = append(groups, g)
		}
		if len(groups) > source.MaxGroups {
			break
		}
	}
	return groups
}
