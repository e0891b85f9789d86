package printed

import (
	"bytes"
	"errors"
	"fmt"
	"sync"

	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/vfs"
)

// maxFile is the size at which a log goes on in a new file.
const maxFile = 64 << 20

// Log stores the output of the jobs of one process. It is safe for concurrent use.
type Log struct {
	open  func() (*fslock.Logs, error)
	host  string
	token string

	mu      sync.Mutex
	file    vfs.File // nil before the first frame, and after an error
	cached  bool     // it needs a sync
	files   int      // created so far
	size    int64    // of the file
	written int64    // bytes in all files
	synced  int64    // of these, the first so many are settled: safe or lost
	spoiled int64    // of these, some of the first so many are lost
	loss    error    // why
}

// NewLog returns a log whose directory is created when a job first prints.
func NewLog(open func() (*fslock.Logs, error), host string) *Log {
	return &Log{open: open, host: host, token: source.NewToken()}
}

// Close ends the log.
func (l *Log) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.end()
}

// add writes a frame, and returns up to where the log has to be synced for it. If the file was
// removed, it tries once more with a new one. After any other error the frame may be
// truncated, and the next one goes to another file.
func (l *Log) add(h Head, data []byte) (upTo int64, err error) {
	h.Size = len(data)
	frame := append(append(h.line(), data...), '\n')
	l.mu.Lock()
	defer l.mu.Unlock()
	for range 2 {
		if err = l.ready(); err != nil {
			return 0, err
		}
		if _, err = l.file.Write(frame); err == nil {
			l.size += int64(len(frame))
			l.written += int64(len(frame))
			return l.written, nil
		}
		_ = l.end() // the error of the write is returned
		if !vfs.Gone(err) {
			break
		}
	}
	return 0, err
}

// ready opens the next file if this one is full or was removed.
func (l *Log) ready() error {
	if l.file != nil {
		info, err := l.file.StatCached()
		if err == nil && info.Links > 0 && l.size < maxFile {
			return nil
		}
		_ = l.end() // sync reports its error to the jobs that wrote to it
	}
	dir, err := l.open()
	if err != nil {
		return err
	}
	defer dir.Close() //nolint:errcheck // a directory
	l.files++
	file, err := dir.Create(fmt.Sprintf("%s.%04d", l.token, l.files))
	if err != nil {
		return err
	}
	first := firstLine(l.host)
	if _, err := file.Write(first); err != nil {
		return errors.Join(err, file.Close())
	}
	l.file, l.cached, l.size = file, dir.Cached(), int64(len(first))
	return nil
}

// end closes the file, and records whether that lost what was written.
func (l *Log) end() error {
	if l.file == nil {
		return nil
	}
	err := l.file.Close()
	l.file = nil
	l.settled(err)
	return err
}

func (l *Log) settled(err error) {
	if err != nil {
		l.spoiled, l.loss = l.written, err
	}
	l.synced = l.written
}

// sync makes what was written as safe as a close would: it is on the file server, where other
// hosts can read it. A local disk gets it later. The error is that of a loss after from.
func (l *Log) sync(from, upTo int64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.synced < upTo && l.cached && l.file != nil {
		err := l.file.Sync()
		if l.settled(err); err != nil {
			_ = l.end() // with the same error
		}
	}
	if from < l.spoiled && l.loss != nil {
		return l.loss
	}
	return nil
}

// Job is one stream of one attempt at a job. It is for one goroutine.
type Job struct {
	log    *Log
	head   Head
	buffer []byte
	from   int64 // written to the log before
	upTo   int64 // written to the log with the last frame
	err    error
}

// Begin starts a stream. Without output it writes nothing.
func (l *Log) Begin(h Head) *Job {
	l.mu.Lock()
	defer l.mu.Unlock()
	return &Job{log: l, head: h, from: l.written}
}

// Write buffers output, and writes full frames.
func (j *Job) Write(data []byte) (n int, err error) {
	for n < len(data) && j.err == nil {
		more := min(len(data)-n, maxFrame-len(j.buffer))
		j.buffer = append(j.buffer, data[n:n+more]...)
		n += more
		if len(j.buffer) == maxFrame {
			j.write(j.lines())
		}
	}
	return n, j.err
}

// Flush makes complete lines visible to other hosts.
func (j *Job) Flush() error {
	j.write(j.lines())
	return j.settle()
}

func (j *Job) settle() error {
	if j.err == nil {
		j.err = j.log.sync(j.from, j.upTo)
	}
	return j.err
}

// lines is the length of the complete lines in the buffer, or of all of it if there are none.
func (j *Job) lines() int {
	if n := bytes.LastIndexByte(j.buffer, '\n') + 1; n > 0 {
		return n
	}
	return len(j.buffer)
}

func (j *Job) write(n int) {
	if n == 0 || j.err != nil {
		return
	}
	j.upTo, j.err = j.log.add(j.head, j.buffer[:n])
	j.buffer = append(j.buffer[:0], j.buffer[n:]...)
}

// Close writes the rest and syncs it. It does not repeat an error that was already returned.
func (j *Job) Close() error {
	if j.err == nil {
		j.write(len(j.buffer))
		return j.settle()
	}
	return nil
}
