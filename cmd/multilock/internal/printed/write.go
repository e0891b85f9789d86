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

// maxFile is how long a file may become before another one is begun.
const maxFile = 64 << 20

// Log is where the jobs of one process print. Its methods are safe for concurrent use.
type Log struct {
	open  func() (*fslock.Logs, error)
	host  string
	token string

	mu      sync.Mutex
	file    vfs.File // nil before the first frame, and after an error
	cached  bool     // it is to be synced
	files   int      // that were begun
	size    int64    // of the file
	written int64    // bytes in all files
	synced  int64    // of which so many are safe
	spoiled int64    // and of these some are lost
	loss    error    // which is why
}

// NewLog is one in a directory that is opened, and made, when a job prints.
func NewLog(open func() (*fslock.Logs, error), host string) *Log {
	return &Log{open: open, host: host, token: source.NewToken()}
}

// Close ends the log.
func (l *Log) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.end()
}

// add writes a frame, and returns up to where the log has to be synced for it. A file that
// somebody has removed is begun anew; after any other error the frame may be torn, and the
// next one goes to another file.
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
		_ = l.end() // what there is to say is said
		if !vfs.Gone(err) {
			break
		}
	}
	return 0, err
}

// ready has a file open that is to be written to.
func (l *Log) ready() error {
	if l.file != nil {
		info, err := l.file.StatCached()
		if err == nil && info.Links > 0 && l.size < maxFile {
			return nil
		}
		_ = l.end() // its own jobs are told
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

// end closes the file. What was written to it and is lost the jobs hear that wait for it.
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

// sync waits until what was written is safe, as closing a file would: on a server that other
// hosts ask. What a disk of this host's is to get it gets.
func (l *Log) sync(from, upTo int64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.synced < upTo && l.cached && l.file != nil {
		err := l.file.Sync()
		if l.settled(err); err != nil {
			_ = l.end() // its error is the same
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
	from   int64 // what was written before
	upTo   int64
	err    error
}

// Begin begins a stream. Nothing is written before there is something.
func (l *Log) Begin(h Head) *Job {
	l.mu.Lock()
	defer l.mu.Unlock()
	return &Job{log: l, head: h, from: l.written}
}

// Write keeps what a job has printed, and writes it down in frames that are full.
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

// Flush shows others the lines that are complete.
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

// lines is the length of the lines in the buffer, or of all if there is none.
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

// Close writes down the rest, and waits until all is safe. An error that was told is not
// told again.
func (j *Job) Close() error {
	if j.err == nil {
		j.write(len(j.buffer))
		return j.settle()
	}
	return nil
}
