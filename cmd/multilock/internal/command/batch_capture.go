package command

import (
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"syscall"
	"time"
)

// capture writes a job's output to its log. It opens the log at the first byte, so a job without output costs
// nothing on the shared filesystem.
type capture struct {
	reader, writer *os.File
	open           openLog
	done           chan struct{}
	ending         atomic.Bool
	shown          *printedLines // for --print and --tag; nil without

	buffer []byte // read buffer
	log    jobLog
	size   int64
	tail   []byte // the last bytes
	err    error  // why the log is incomplete; the job continues
}

// openLog opens the log of one of a job's streams.
type openLog func() (jobLog, error)

// captureTo makes a capture for each log.
func captureTo(logs ...openLog) (all captures, err error) {
	for _, open := range logs {
		reader, writer, err := outputPipe()
		if err != nil {
			all.started()
			return nil, errors.Join(fmt.Errorf("make a pipe for the output: %w", err), all.finish())
		}
		all = append(all, &capture{reader: reader, writer: writer, open: open, done: make(chan struct{}), buffer: make([]byte, minBuffer)})
	}
	return all, nil
}

// started is called after the job has started.
func (c *capture) started() {
	_ = c.writer.Close() // the job has its own copy
	go func() {
		defer close(c.done)
		c.copy()
	}()
}

// flushAfter is the delay before other processes see the output of a running job.
const flushAfter = 2 * time.Second

func (c *capture) copy() {
	for due := false; ; {
		n, err := c.reader.Read(c.buffer)
		c.keep(n)
		switch {
		case errors.Is(c.err, syscall.EPIPE):
			_ = c.reader.Close() // the job's next write fails, too
			return
		case err == nil && due:
			continue
		case err == nil:
			due = c.reader.SetReadDeadline(time.Now().Add(flushAfter)) == nil
		case !errors.Is(err, os.ErrDeadlineExceeded):
			return
		default:
			due = false
			c.flush()
			_ = c.reader.SetReadDeadline(time.Time{}) // setting a deadline worked before
		}
		if c.ending.Load() {
			return // the deadline may have been set by finish
		}
	}
}

func (c *capture) flush() {
	if c.log != nil && c.err == nil {
		c.err = c.log.Flush()
	}
}

// finish ends the capture after the job has ended. Background processes may keep the pipe open:
// what is already in the pipe is captured, and nothing after that.
func (c *capture) finish() error {
	c.ending.Store(true)
	if err := c.reader.SetReadDeadline(time.Now()); err == nil {
		<-c.done
		c.drain()
	}
	c.shown.finish()
	c.err = errors.Join(c.err, c.reader.Close())
	if c.log != nil {
		c.err = errors.Join(c.err, c.log.Close())
	}
	return c.err
}

// maxDrained exceeds the size of a pipe. It stops draining even if a process keeps writing.
const maxDrained = 1 << 20

// drain reads what is in the pipe without waiting for more.
func (c *capture) drain() {
	for n, left := 1, maxDrained; n > 0 && left > 0; left -= n {
		n = readNow(c.reader, c.buffer)
		c.keep(n)
	}
}

// The buffer grows for jobs that fill it. Most print little or nothing.
const (
	minBuffer   = 1 << 10
	maxBuffer   = 64 << 10
	maxLastLine = 256
)

// keep appends n bytes of the buffer to the log.
func (c *capture) keep(n int) {
	if n <= 0 {
		return
	}
	data := c.buffer[:n]
	if n == len(c.buffer) && n < maxBuffer {
		c.buffer = make([]byte, 2*n)
	}
	c.size += int64(n)
	c.tail = append(c.tail, data[max(n-maxLastLine, 0):]...)
	c.tail = c.tail[max(len(c.tail)-maxLastLine, 0):]
	c.shown.add(data)
	if c.log == nil && c.err == nil {
		c.log, c.err = c.open()
	}
	if c.err == nil {
		_, c.err = c.log.Write(data)
	}
}

// captures has one capture for both streams, or one each.
type captures []*capture

func (all captures) first() *capture { return all[0] }
func (all captures) last() *capture  { return all[len(all)-1] }

func (all captures) started() {
	for _, c := range all {
		c.started()
	}
}

func (all captures) finish() (err error) {
	for _, c := range all {
		err = errors.Join(err, c.finish())
	}
	return err
}

func (all captures) size() (n int64) {
	for _, c := range all {
		n += c.size
	}
	return n
}
