package command

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/cmd/multilock/internal/outfile"
	"github.com/multilock/go/cmd/multilock/internal/place"
	"github.com/multilock/go/cmd/multilock/internal/printed"
	"github.com/multilock/go/lockgroup/batch"
	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/vfs"
)

// jobLog is where one stream of one attempt goes.
type jobLog interface {
	io.WriteCloser
	Flush() error // shows others what was written so far
}

// outputs are where all that the jobs of a batch print goes.
type outputs interface {
	begin(a batch.Attempt, began time.Time, stream printed.Stream) (jobLog, error)
	close() error
}

// keeper is a source that has a place for it.
type keeper interface {
	OpenLogs() (*fslock.Logs, error)
	FindLogs() (*fslock.Logs, error)
}

// outputsOf are in the directory of --logs or --results, with the locks if those live in a
// directory, and here otherwise.
func outputsOf(src *place.Source, o *batchOptions) outputs {
	if o.results != "" {
		tree := &resultTree{host: src.Self.Host, top: place.Absolute(o.results)}
		noteElsewhere(src, tree.top)
		return tree
	}
	if k, with := src.Locks.(keeper); with && o.logs == "" {
		return &groupLogs{printed.NewLog(k.OpenLogs, src.Self.Host)}
	}
	logs := &jobLogs{host: src.Self.Host, path: logsPath(src, o.logs)}
	noteElsewhere(src, logs.path)
	return logs
}

// noteElsewhere lets "multilock logs" name the directory. That it cannot is no reason not to run.
func noteElsewhere(src *place.Source, dir string) {
	k, with := src.Locks.(keeper)
	if !with {
		return
	}
	if logs, err := k.OpenLogs(); err == nil {
		_ = logs.NoteElsewhere(dir)
		_ = logs.Close()
	}
}

func logsPath(src *place.Source, dir string) string {
	if dir == "" {
		dir = filepath.Join("multilock-logs", fileName(src.Place.Group))
	}
	return place.Absolute(dir)
}

// findOutput returns a function that says where a person finds the output of a job, "" if
// there is none. For what is with the locks, that is a command: which jobs have printed
// anything is not looked up.
func findOutput(src *place.Source, dir string) (where func(name string) string, stop func(), err error) {
	if k, with := src.Locks.(keeper); with && dir == "" {
		logs, err := k.FindLogs()
		if err != nil {
			return nil, nil, err
		}
		return src.Place.Printed, func() { _ = logs.Close() }, nil
	}
	logs, err := outfile.OpenDir(logsPath(src, dir))
	if err != nil {
		return nil, nil, err
	}
	where = func(name string) string {
		for _, has := range []string{logName(name), fileName(name)} { // of --logs, of --results
			if logs.Has(has) {
				return filepath.Join(logs.Path(), has)
			}
		}
		return ""
	}
	return where, func() { _ = logs.Close() }, nil
}

// groupLogs are with the locks.
type groupLogs struct{ log *printed.Log }

func (g *groupLogs) begin(a batch.Attempt, began time.Time, stream printed.Stream) (jobLog, error) {
	return g.log.Begin(printed.Head{Seq: a.Seq, Attempt: a.Number, Began: began, Stream: stream, Name: a.Name}), nil
}

func (g *groupLogs) close() error { return g.log.Close() }

// jobLogs are in a directory that the user named, a file for each job.
type jobLogs struct {
	host, path string

	mu  sync.Mutex
	dir *outfile.Dir // opened once for many jobs
}

// begin opens the log of a job. If somebody has removed the directory, it is made again.
func (l *jobLogs) begin(a batch.Attempt, began time.Time, _ printed.Stream) (jobLog, error) {
	for range 2 {
		dir, err := l.use()
		if err != nil {
			return nil, err
		}
		log, err := appendTo(*dir, logName(a.Name), logHeader(l.host, a.Number, began))
		if !vfs.Gone(err) && !errors.Is(err, fs.ErrClosed) {
			return log, err
		}
		l.drop(dir)
	}
	return nil, syscall.ENOENT
}

func (l *jobLogs) use() (*outfile.Dir, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dir == nil {
		dir, err := outfile.MakeDir(l.path)
		if err != nil {
			return nil, err
		}
		l.dir = &dir
	}
	return l.dir, nil
}

// drop has the directory opened anew. Another job may be about to use it, and is told that
// it is closed.
func (l *jobLogs) drop(dir *outfile.Dir) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dir == dir {
		l.dir = nil
		_ = dir.Close()
	}
}

func (l *jobLogs) close() error {
	if l.dir != nil {
		_ = l.dir.Close() // a directory
	}
	return nil
}

// resultTree is GNU parallel's: a directory for each job, with a file for each stream.
type resultTree struct{ host, top string }

func (t *resultTree) begin(a batch.Attempt, began time.Time, stream printed.Stream) (jobLog, error) {
	dir, err := outfile.MakeDir(filepath.Join(t.top, fileName(a.Name)))
	if err != nil {
		return nil, err
	}
	defer dir.Close() //nolint:errcheck // a directory
	if !dir.Has("seq") {
		if err := outfile.Replace(filepath.Join(dir.Path(), "seq"), []byte(strconv.Itoa(a.Seq)+"\n")); err != nil {
			return nil, err
		}
	}
	return appendTo(dir, "std"+string(stream), logHeader(t.host, a.Number, began))
}

func (t *resultTree) close() error { return nil }

// plainLog is a file that others see as it grows.
type plainLog struct{ *os.File }

// Flush implements jobLog.
func (plainLog) Flush() error { return nil }

// appendTo opens a file for appending, with a header where there is something in it already.
func appendTo(dir outfile.Dir, name, header string) (jobLog, error) {
	f, err := dir.Append(name)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && info.Size() > 0 {
		_, err = f.WriteString(header)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return plainLog{f}, nil
}

// logHeader separates the attempts at a job.
func logHeader(host string, attempt int, began time.Time) string {
	return fmt.Sprintf("=== attempt %d on %s at %s\n", attempt, console.Harmless(host), began.Format(time.RFC3339))
}

func logName(name string) string { return fileName(name) + ".log" }

// fileName is a name that a file can have: no source forbids what a file system does.
func fileName(name string) string {
	if name == "." || name == ".." {
		return strings.ReplaceAll(name, ".", "%2E")
	}
	return forbidden.Replace(name)
}
