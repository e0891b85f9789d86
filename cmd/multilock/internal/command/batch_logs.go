package command

import (
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"github.com/multilock/go/cmd/multilock/internal/outfile"
	"github.com/multilock/go/cmd/multilock/internal/place"
	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/vfs"
)

// logDir is an open directory with what the jobs have printed, in a file for each name.
type logDir interface {
	Append(name string) (log io.WriteCloser, size int64, err error)
	Has(name string) bool
	Path(name string) string // for people
	Close() error
}

// jobLogs is where the output of a batch's jobs is kept.
type jobLogs struct {
	open, find func() (logDir, error) // makes the directory if it is absent, or makes nothing

	mu  sync.Mutex
	dir logDir // opened once for many jobs
}

// logsOf are in the directory of --logs, with the locks if those live in a directory, and
// here otherwise.
func logsOf(src *place.Source, dir string) *jobLogs {
	keeper, with := src.Locks.(interface {
		OpenLogs() (*fslock.Logs, error)
		FindLogs() (*fslock.Logs, error)
	})
	if dir == "" && with {
		return &jobLogs{
			open: func() (logDir, error) { return keeper.OpenLogs() },
			find: func() (logDir, error) { return keeper.FindLogs() },
		}
	}
	if dir == "" {
		dir = filepath.Join("multilock-logs", fileName(src.Place.Group))
	}
	return &jobLogs{
		open: func() (logDir, error) { return plainLogsIn(outfile.MakeDir(place.Absolute(dir))) },
		find: func() (logDir, error) { return plainLogsIn(outfile.OpenDir(place.Absolute(dir))) },
	}
}

// append opens the log of a job. If somebody has removed the directory, it is made again.
func (l *jobLogs) append(name string) (log io.WriteCloser, size int64, err error) {
	for range 2 {
		dir, err := l.use()
		if err != nil {
			return nil, 0, err
		}
		log, size, err = dir.Append(name)
		if !vfs.Gone(err) && !errors.Is(err, fs.ErrClosed) {
			return log, size, err
		}
		l.drop(dir)
	}
	return nil, 0, syscall.ENOENT
}

func (l *jobLogs) use() (dir logDir, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dir == nil {
		dir, err = l.open()
		if err != nil {
			return nil, err
		}
		l.dir = dir
	}
	return l.dir, nil
}

// drop has the directory opened anew. Another job may be about to use it, and is told that
// it is closed.
func (l *jobLogs) drop(dir logDir) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dir == dir {
		l.dir = nil
		_ = dir.Close()
	}
}

func (l *jobLogs) close() {
	if l.dir != nil {
		_ = l.dir.Close() // a directory
	}
}

// printed is where the output of a job is, "" if there is none.
func printed(dir logDir, name string) string {
	if !dir.Has(name) {
		return ""
	}
	return dir.Path(name)
}

// plainLogs are in a directory that the user named.
type plainLogs struct{ dir outfile.Dir }

func plainLogsIn(dir outfile.Dir, err error) (logDir, error) { return plainLogs{dir}, err }

func (l plainLogs) Append(name string) (io.WriteCloser, int64, error) {
	f, err := l.dir.Append(logName(name))
	if err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, 0, errors.Join(err, f.Close())
	}
	return f, info.Size(), nil
}

func (l plainLogs) Has(name string) bool    { return l.dir.Has(logName(name)) }
func (l plainLogs) Path(name string) string { return filepath.Join(l.dir.Path(), logName(name)) }
func (l plainLogs) Close() error            { return l.dir.Close() }

func logName(name string) string { return fileName(name) + ".log" }

// fileName is a name that a file can have: no source forbids what a file system does.
func fileName(name string) string {
	if name == "." || name == ".." {
		return strings.ReplaceAll(name, ".", "%2E")
	}
	return strings.NewReplacer("%", "%25", "/", "%2F", "\x00", "%00").Replace(name)
}
