package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/multilock/go/cmd/multilock/job"
)

// joblog writes a line for each attempt that ended here, as GNU parallel's --joblog.
type joblog struct {
	host string
	file *os.File
}

const joblogHeader = "Seq\tHost\tStarttime\tJobRuntime\tSend\tReceive\tExitval\tSignal\tCommand\n"

// openJoblog opens the file for appending; one that is empty gets the header.
func openJoblog(path, host string) (*joblog, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o666) //nolint:gosec // the umask decides
	if err != nil {
		return nil, fmt.Errorf("open the job log: %w", err)
	}
	info, err := f.Stat()
	if err == nil && info.Size() == 0 {
		_, err = f.WriteString(joblogHeader)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("begin the job log: %w", err), f.Close())
	}
	return &joblog{host, f}, nil
}

// add writes one line with one call, so that those of several jobs do not mix. As
// there, a newline in a command becomes a NUL, and a job that a signal killed has
// exit value 0.
func (l *joblog) add(seq int, command string, r job.Result, received int64) error {
	if l == nil {
		return nil
	}
	code := r.Code
	if r.Signal != 0 {
		code = 0
	}
	started := float64(r.Started.UnixNano()) / float64(time.Second)
	_, err := fmt.Fprintf(l.file, "%d\t%s\t%.3f\t%10.3f\t0\t%d\t%d\t%d\t%s\n",
		seq, l.host, started, r.Elapsed.Seconds(), received, code, int(r.Signal), strings.ReplaceAll(command, "\n", "\x00"))
	if err != nil {
		return fmt.Errorf("write the job log: %w", err)
	}
	return nil
}

func (l *joblog) close() error {
	if l == nil {
		return nil
	}
	return l.file.Close()
}
