package fslock

import (
	"errors"
	"io"
	"path/filepath"

	"github.com/multilock/go/multilock/shareddir"
	"github.com/multilock/go/multilock/vfs"
)

// Logs is the directory with what the jobs of a group have printed:
// BASE/.multilock/groups/GROUP/logs, with a file NAME.log for each. Nothing is decided by
// what is in it.
type Logs struct{ dir vfs.Dir }

// OpenLogs opens the directory, and makes it if it is absent.
func (s *Source) OpenLogs() (*Logs, error) {
	return logsIn(s.openGroupPrivate(logsDir, vfs.Dir.OpenDir))
}

// FindLogs opens the directory, and makes nothing: the error is fs.ErrNotExist if no job
// has printed anything.
func (s *Source) FindLogs() (*Logs, error) { return logsIn(s.findGroupPrivate(logsDir)) }

func logsIn(dir vfs.Dir, err error) (*Logs, error) {
	if err != nil {
		return nil, err
	}
	return &Logs{dir}, nil
}

// Append opens the log of a name for appending, made if it is absent. It has size bytes.
func (l *Logs) Append(name string) (log io.WriteCloser, size int64, err error) {
	f, err := l.dir.OpenAppend(name+logSuffix, shareddir.AppendMode)
	if err != nil {
		return nil, 0, err
	}
	info, err := f.StatCached()
	if err != nil {
		return nil, 0, errors.Join(err, f.Close())
	}
	return f, info.Size, nil
}

// Has says whether a name has a log.
func (l *Logs) Has(name string) bool {
	_, err := l.dir.StatName(name + logSuffix)
	return err == nil
}

// Path is where the log of a name is, for people.
func (l *Logs) Path(name string) string { return filepath.Join(l.dir.Path(), name+logSuffix) }

// Close closes the directory. Logs that are open stay so.
func (l *Logs) Close() error { return l.dir.Close() }
