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

// maxFile is the size at which a log continues in a new file.
const maxFile = 64 << 20

// Log stores the output of one process's jobs. It is safe for concurrent use.
type Log struct {
	open func() (*fslock.Logs, error)
	host string
	name func(number int) string // of a file
	most int64                   // maximum size of a file
	made func(dir *fslock.Logs)  // called after a file was created

	mu      sync.Mutex
	file    vfs.File // nil before the first frame, and after an error
	cached  bool     // the file needs a sync
	files   int      // created so far
	size    int64    // of the file
	written int64    // bytes in all files
	synced  int64    // bytes from the start that are settled: safe or lost
	spoiled int64    // bytes from the start among which some are lost
	loss    error    // why they are lost
}

// NewLog returns a log that creates its directory when a job first prints.
func NewLog(open func() (*fslock.Logs, error), host string) *Log {
	token := source.NewToken()
	name := func(number int) string { return fmt.Sprintf("%s.%04d", token, number) }
	return &Log{open: open, host: host, name: name, most: maxFile, made: func(*fslock.Logs) {}}
}

// Close closes the log.
func (l *Log) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.end()
}

// add writes a frame, and returns the position up to which the log must be synced for it. If the file
// was removed, it tries once more with a new file. After any other error the frame may be truncated,
// and the next one goes to another file.
func (l *Log) add(h Head, data []byte) (upTo int64, err error) {
	h.Size = len(data)
	frame := append(append(h.line(), data...), '\n')
	l.mu.Lock()
	defer l.mu.Unlock()
	for range 2 {
		if err = l.ready(); err == nil {
			if _, err = l.file.Write(frame); err == nil {
				l.size += int64(len(frame))
				l.written += int64(len(frame))
				return l.written, nil
			}
			_ = l.end() // the caller gets the error of the write
		}
		if !vfs.Gone(err) {
			break
		}
	}
	return 0, err
}

// ready opens the next file if the current one is full or was removed.
func (l *Log) ready() error {
	if l.file != nil {
		info, err := l.file.StatCached()
		if err == nil && info.Links > 0 && l.size < l.most {
			return nil
		}
		_ = l.end() // sync returns its error to the jobs that wrote to it
	}
	dir, err := l.open()
	if err != nil {
		return err
	}
	defer dir.Close() //nolint:errcheck // a directory
	l.files++
	file, err := dir.Create(l.name(l.files))
	if err != nil {
		return err
	}
	first := firstLine(l.host)
	if _, err := file.Write(first); err != nil {
		return errors.Join(err, file.Close())
	}
	l.file, l.cached, l.size = file, dir.Cached(), int64(len(first))
	l.made(dir)
	return nil
}

// end closes the file, and records whether that lost written data.
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

// sync makes written data as safe as a close would: it is on the file server, where other hosts can
// read it. A local disk gets it later. sync returns the error of a loss after from.
func (l *Log) sync(from, upTo int64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.synced < upTo && l.cached && l.file != nil {
		err := l.file.Sync()
		if l.settled(err); err != nil {
			_ = l.end() // same error
		}
	}
	if from < l.spoiled && l.loss != nil {
		return l.loss
	}
	return nil
}

// Job is one stream of one attempt at a job. It is not safe for concurrent use.
type Job struct {
	log    *Log
	head   Head
	buffer []byte
	from   int64 // position in the log before the stream
	upTo   int64 // position in the log after the last frame
	err    error
}

// Begin starts a stream. A stream without output writes nothing.
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

// lines returns the length of the complete lines in the buffer, or of the whole buffer without any.
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

// Close writes and syncs the rest. It does not repeat an error that was already returned.
func (j *Job) Close() error {
	if j.err == nil {
		j.write(len(j.buffer))
		return j.settle()
	}
	return nil
}
