package probe

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/multilock/go/cmd/multilock/job"
	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
)

// runner runs the commands of a probe.
type runner struct {
	environ []string
	self    process.Identity
}

const (
	// maxOutput is longer than any answer.
	maxOutput = 1 << 20
	stopGrace = time.Second
	// closing limits how long a child process may keep the output open after the command's end.
	closing = time.Second
)

func (r runner) getenv(name string) string {
	for _, entry := range r.environ {
		if value, found := strings.CutPrefix(entry, name+"="); found {
			return value
		}
	}
	return ""
}

// output runs a command and returns its output. It returns an error if the command fails, or has not ended
// when ctx ends.
func (r runner) output(ctx context.Context, vars []string, args ...string) (string, error) {
	out, err := newOutput()
	if err != nil {
		return "", err
	}
	complaints, err := newOutput()
	if err != nil {
		return "", errors.Join(err, out.writer.Close(), out.reader.Close())
	}
	environ := append(append([]string{}, r.environ...), vars...)
	j, err := job.Start(job.Spec{Args: args, Env: environ, Stdout: out.writer, Stderr: complaints.writer, Self: r.self})
	out.begin()
	complaints.begin()
	if err != nil {
		return "", err
	}
	select {
	case <-j.Done():
	case <-ctx.Done():
		return "", errors.Join(fmt.Errorf("%s: %w", args[0], context.Cause(ctx)), j.Stop(context.WithoutCancel(ctx), stopGrace))
	}
	text, complaint := out.text(), complaints.text()
	if code := j.Result().Code; code != 0 {
		first, _, _ := bytes.Cut(complaint, []byte("\n"))
		return "", fmt.Errorf("%s ended with code %d: %s", args[0], code, source.Shorten(source.Printable(string(first)), 200))
	}
	if text == nil {
		return "", fmt.Errorf("%s: its output was not closed, or is too long", args[0])
	}
	return string(text), nil
}

// output is a pipe that is read in the background.
type output struct {
	reader, writer *os.File
	read           chan []byte // receives all output, nil after an error or if it is too long
}

func newOutput() (*output, error) {
	reader, writer, err := os.Pipe()
	return &output{reader, writer, make(chan []byte, 1)}, err
}

// begin starts reading, after the command has inherited the writer.
func (o *output) begin() {
	_ = o.writer.Close()
	go func() {
		defer o.reader.Close()
		all, err := io.ReadAll(io.LimitReader(o.reader, maxOutput))
		if err != nil || len(all) == maxOutput {
			all = nil
		}
		o.read <- all
	}()
}

// text returns all output, or nil.
func (o *output) text() []byte {
	timer := time.NewTimer(closing)
	defer timer.Stop()
	select {
	case all := <-o.read:
		return all
	case <-timer.C:
		_ = o.reader.SetReadDeadline(time.Now()) // a child process still has it open
		return nil
	}
}
