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

// maxMark bounds what is read of a mark: none of ours has longer lines.
const maxMark = source.MaxGroups * 512

// MarkJob writes the process groups of the jobs into the lock directory, a line for each.
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

// replaceMark has the new mark take the place of the old one, so that at no moment there
// is none, or half of one: jobs that the old one names may live. Whatever the rename
// answered, it was carried out if what was to be renamed is not there any more, and the
// mark is.
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

// writeMark makes a file of the lines. One of that name an earlier call has left, of which
// nobody knows how far it came.
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

// readMark reads the mark; a missing or torn one, or line, proves nothing, and no mark at
// all is looked for again at the next look. That the server did not answer is an error: it
// may be there, and the job alive.
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

// groupsIn are the groups of a mark, and one more than can be if there are more.
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
