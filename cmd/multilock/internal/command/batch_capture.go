package command

import (
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"
)

// capture brings the output of one job to its log, which is made with the first
// byte: a silent job costs nothing on the shared filesystem.
type capture struct {
	reader, writer *os.File
	open           func() (jobLog, error)
	done           chan struct{}
	ending         atomic.Bool
	shown          *printedLines // for people who watch; nil for none

	room []byte // what is read into
	log  jobLog
	size int64
	err  error // why the log is not complete; the job is not to suffer from that
}

func captureTo(open func() (jobLog, error)) (*capture, error) {
	reader, writer, err := outputPipe()
	if err != nil {
		return nil, fmt.Errorf("make a pipe for the output: %w", err)
	}
	return &capture{reader: reader, writer: writer, open: open, done: make(chan struct{}), room: make([]byte, leastRoom)}, nil
}

// started is called when the job has its end of the pipe.
func (c *capture) started() {
	_ = c.writer.Close() // the job has its own
	go func() {
		defer close(c.done)
		c.copy()
	}()
}

// flushAfter is when others see what a job has printed that goes on.
const flushAfter = 2 * time.Second

func (c *capture) copy() {
	for due := false; ; {
		n, err := c.reader.Read(c.room)
		c.keep(n)
		switch {
		case err == nil && due:
			continue
		case err == nil:
			due = c.reader.SetReadDeadline(time.Now().Add(flushAfter)) == nil
		case !errors.Is(err, os.ErrDeadlineExceeded):
			return
		default:
			due = false
			c.flush()
			_ = c.reader.SetReadDeadline(time.Time{}) // there was one
		}
		if c.ending.Load() {
			return // its deadline may have been ours
		}
	}
}

func (c *capture) flush() {
	if c.log != nil && c.err == nil {
		c.err = c.log.Flush()
	}
}

// finish ends the capture when the job has ended. Somebody in the background may
// still have the pipe open: what is in it now is kept, and the rest is not.
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

// mostDrained is more than a pipe holds: who still writes into it could keep us for ever.
const mostDrained = 1 << 20

// drain reads what is in the pipe without waiting for more.
func (c *capture) drain() {
	for n, left := 1, mostDrained; n > 0 && left > 0; left -= n {
		n = readNow(c.reader, c.room)
		c.keep(n)
	}
}

// The room for what is read grows with a job that fills it: most print little, or nothing.
const (
	leastRoom = 1 << 10
	mostRoom  = 64 << 10
)

// keep adds to the log what has been read, if anything was.
func (c *capture) keep(n int) {
	if n <= 0 {
		return
	}
	data := c.room[:n]
	if n == len(c.room) && n < mostRoom {
		c.room = make([]byte, 2*n)
	}
	c.size += int64(n)
	c.shown.add(data)
	if c.log == nil && c.err == nil {
		c.log, c.err = c.open()
	}
	if c.err == nil {
		_, c.err = c.log.Write(data)
	}
}

// captures are those of an attempt: one of both streams, or one of each.
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
