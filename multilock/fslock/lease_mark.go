package fslock

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/shareddir"
)

// MarkJob writes the job's process group into the lock directory, in the place
// of the one before, if there is one.
func (l *lease) MarkJob(_ context.Context, job process.Group) error {
	l.marking.Lock()
	defer l.marking.Unlock()
	if err := l.use(); err != nil {
		return err
	}
	defer l.leave()
	none := job == process.Group{}
	l.mu.Lock()
	again := l.marked
	l.marked = again || !none
	l.mu.Unlock()
	if again {
		if err := l.dir.Unlink(l.job()); err != nil && !gone(err) {
			return opError("mark the job", l.record.Name, err)
		}
	}
	if none {
		return nil
	}
	return l.explain("mark the job", l.writeMark(job))
}

func (l *lease) writeMark(job process.Group) error {
	data, err := json.Marshal(job)
	if err != nil {
		return err
	}
	f, err := l.dir.Create(l.job(), shareddir.FileMode)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}
