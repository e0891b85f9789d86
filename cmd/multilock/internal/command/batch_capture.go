package command

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// capture brings the output of one job to its log, which is made with the first
// byte: a silent job costs nothing on the shared filesystem.
type capture struct {
	reader, writer *os.File
	path, header   string
	done           chan struct{}

	log  *os.File
	size int64
	err  error // why the log is not complete; the job is not to suffer from that
}

func captureTo(path, header string) (*capture, error) {
	reader, writer, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make a pipe for the output: %w", err)
	}
	return &capture{reader: reader, writer: writer, path: path, header: header, done: make(chan struct{})}, nil
}

// started is called when the job has its end of the pipe.
func (c *capture) started() {
	_ = c.writer.Close() // the job has its own
	go func() {
		defer close(c.done)
		c.copy()
	}()
}

func (c *capture) copy() {
	buffer := make([]byte, 16<<10)
	for {
		n, err := c.reader.Read(buffer)
		c.keep(buffer[:n])
		if err != nil {
			return
		}
	}
}

// finish ends the capture when the job has ended. Somebody in the background may
// still have the pipe open: what is in it now is kept, and the rest is not.
func (c *capture) finish() error {
	if err := c.reader.SetReadDeadline(time.Now()); err == nil {
		<-c.done
		c.drain()
	}
	c.err = errors.Join(c.err, c.reader.Close())
	if c.log != nil {
		c.err = errors.Join(c.err, c.log.Close())
	}
	return c.err
}

// drain reads what is in the pipe without waiting for more.
func (c *capture) drain() {
	conn, err := c.reader.SyscallConn()
	if err != nil || c.reader.SetReadDeadline(time.Time{}) != nil {
		return
	}
	buffer := make([]byte, 16<<10)
	for n := 1; n > 0; {
		if conn.Read(func(fd uintptr) bool { n = readNow(fd, buffer); return true }) != nil {
			return
		}
		if n > 0 {
			c.keep(buffer[:n])
		}
	}
}

// keep adds to the log.
func (c *capture) keep(data []byte) {
	if len(data) == 0 {
		return
	}
	c.size += int64(len(data))
	if c.log == nil && c.err == nil {
		c.log, c.err = openLog(c.path, c.header)
	}
	if c.err == nil {
		_, c.err = c.log.Write(data)
	}
}

// openLog opens a job's log for appending, with a header where there is something
// in it already.
func openLog(path, header string) (*os.File, error) {
	const flags, mode = os.O_WRONLY | os.O_CREATE | os.O_APPEND, 0o666
	f, err := os.OpenFile(path, flags, mode) //nolint:gosec // the umask decides
	if errors.Is(err, fs.ErrNotExist) {
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil { //nolint:gosec // the same
			return nil, err
		}
		f, err = os.OpenFile(path, flags, mode) //nolint:gosec // the same
	}
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
	return f, nil
}
