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

// runner runs commands whose output is an answer.
type runner struct {
	environ []string
	self    process.Identity
}

const (
	// maxOutput is more than any answer needs. What is longer is none.
	maxOutput = 1 << 20
	stopGrace = time.Second
	// closing is how long a command that has ended may leave its output open.
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

// output runs a command to its end, or that of ctx, and returns what it printed. It is an
// error if it fails.
func (r runner) output(ctx context.Context, vars []string, args ...string) (string, error) {
	out, err := newOutput()
	if err != nil {
		return "", err
	}
	said, err := newOutput()
	if err != nil {
		return "", errors.Join(err, out.writer.Close(), out.reader.Close())
	}
	environ := append(append([]string{}, r.environ...), vars...)
	j, err := job.Start(job.Spec{Args: args, Env: environ, Stdout: out.writer, Stderr: said.writer, Self: r.self})
	out.begin()
	said.begin()
	if err != nil {
		return "", err
	}
	select {
	case <-j.Done():
	case <-ctx.Done():
		return "", errors.Join(fmt.Errorf("%s: %w", args[0], context.Cause(ctx)), j.Stop(context.WithoutCancel(ctx), stopGrace))
	}
	text, complaint := out.text(), said.text()
	if code := j.Result().Code; code != 0 {
		first, _, _ := bytes.Cut(complaint, []byte("\n"))
		return "", fmt.Errorf("%s ended with code %d: %s", args[0], code, source.Shorten(source.Printable(string(first)), 200))
	}
	if text == nil {
		return "", fmt.Errorf("%s: its output has no end", args[0])
	}
	return string(text), nil
}

// output is a pipe that is read in the background.
type output struct {
	reader, writer *os.File
	read           chan []byte // gets all of it; nil if that is too much, or an error
}

func newOutput() (*output, error) {
	reader, writer, err := os.Pipe()
	return &output{reader, writer, make(chan []byte, 1)}, err
}

// begin is called when the command has its end of the pipe.
func (o *output) begin() {
	_ = o.writer.Close()
	go func() {
		defer o.reader.Close()
		all, err := io.ReadAll(io.LimitReader(o.reader, maxOutput))
		if err != nil || len(all) == maxOutput {
			all = nil
		} else if all == nil {
			all = []byte{}
		}
		o.read <- all
	}()
}

// text is all of it, nil if that cannot be told.
func (o *output) text() []byte {
	timer := time.NewTimer(closing)
	defer timer.Stop()
	select {
	case all := <-o.read:
		return all
	case <-timer.C:
		_ = o.reader.SetReadDeadline(time.Now()) // somebody has it open who was left behind
		return nil
	}
}
