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

// jobLog receives one stream of one attempt.
type jobLog interface {
	io.WriteCloser
	Flush() error // makes the output visible to other processes
}

// outputs creates the logs of a batch's jobs.
type outputs interface {
	begin(a batch.Attempt, began time.Time, stream printed.Stream) (jobLog, error)
	close() error
}

// logStore is a source that can store output.
type logStore interface {
	OpenLogs() (*fslock.Logs, error)
	FindLogs() (*fslock.Logs, error)
}

// outputsOf chooses where output goes: to --results or --logs, to the locks' directory, or to the
// current directory.
func outputsOf(src *place.Source, o *batchOptions) outputs {
	if o.results != "" {
		tree := &resultTree{host: src.Self.Host, top: place.Absolute(o.results)}
		recordElsewhere(src, tree.top)
		return tree
	}
	if k, with := src.Locks.(logStore); with && o.logs == "" {
		return &groupLogs{printed.NewLog(k.OpenLogs, src.Self.Host)}
	}
	logs := &jobLogs{host: src.Self.Host, path: logsPath(src, o.logs)}
	recordElsewhere(src, logs.path)
	return logs
}

// recordElsewhere records the output directory for "multilock logs". The batch runs even if that fails.
func recordElsewhere(src *place.Source, dir string) {
	k, with := src.Locks.(logStore)
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

// findOutput returns a function that returns where a job's output is, or "". For output stored with the locks
// it is a command, which is not checked.
func findOutput(src *place.Source, dir string) (where func(name string) string, stop func(), err error) {
	if k, with := src.Locks.(logStore); with && dir == "" {
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
		for _, has := range []string{logName(name), fileName(name)} { // --logs and --results
			if logs.Has(has) {
				return filepath.Join(logs.Path(), has)
			}
		}
		return ""
	}
	return where, func() { _ = logs.Close() }, nil
}

// groupLogs stores output with the locks.
type groupLogs struct{ log *printed.Log }

func (g *groupLogs) begin(a batch.Attempt, began time.Time, stream printed.Stream) (jobLog, error) {
	return g.log.Begin(printed.Head{Seq: a.Seq, Attempt: a.Number, Began: began, Stream: stream, Name: a.Name}), nil
}

func (g *groupLogs) close() error { return g.log.Close() }

// jobLogs writes a file for each job to the directory of --logs.
type jobLogs struct {
	host, path string

	mu  sync.Mutex
	dir *outfile.Dir // opened once for many jobs
}

// begin opens the log of a job. It recreates a removed directory.
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

// drop makes use reopen the directory. Another job that still uses it gets fs.ErrClosed.
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
		_ = l.dir.Close() // directories have nothing to flush
	}
	return nil
}

// resultTree is GNU parallel's layout: a directory for each job, with a file for each stream.
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

// plainLog is a file, whose content is visible at once.
type plainLog struct{ *os.File }

// Flush implements jobLog.
func (plainLog) Flush() error { return nil }

// appendTo opens a file for appending, and writes the header unless it is empty.
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

// logHeader separates a job's attempts.
func logHeader(host string, attempt int, began time.Time) string {
	return fmt.Sprintf("=== attempt %d on %s at %s\n", attempt, console.Harmless(host), began.Format(time.RFC3339))
}

func logName(name string) string { return fileName(name) + ".log" }

// fileName escapes a name, because file systems forbid characters that sources allow.
func fileName(name string) string {
	if name == "." || name == ".." {
		return strings.ReplaceAll(name, ".", "%2E")
	}
	return forbidden.Replace(name)
}
