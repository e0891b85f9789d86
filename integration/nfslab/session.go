//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/multilock/go/integration/nfslab/vm"
	"github.com/multilock/go/integration/nfslab/wire"
)

const (
	bootLimit    = 5 * time.Minute // on an emulated processor on a busy machine
	silenceLimit = 90 * time.Second
)

// session is the launcher's side of the connection to the agent.
type session struct {
	machine *vm.Machine
	sender  *wire.Sender
	job     wire.Job
	out     *outputDir
}

func newSession(machine *vm.Machine, job wire.Job, out string) *session {
	return &session{machine: machine, sender: wire.NewSender(machine.Control), job: job, out: newOutputDir(out)}
}

// talk copies the command's output until the command has ended, and returns its exit code.
func (s *session) talk() (int, error) {
	limit := bootLimit
	for {
		// Set again for every frame, so that time in which writing the output blocked does not count.
		if err := s.machine.Control.SetReadDeadline(time.Now().Add(limit)); err != nil {
			return 0, s.broken(err)
		}
		kind, payload, err := wire.Receive(s.machine.Control)
		if err != nil {
			return 0, s.broken(err)
		}
		switch kind {
		case wire.Ready:
			limit = silenceLimit
			s.feed()
		case wire.Exit:
			return s.finish(payload)
		default:
			if err := s.pass(kind, payload); err != nil {
				return 0, err
			}
		}
	}
}

func (s *session) pass(kind wire.Kind, payload []byte) error {
	var err error
	switch kind {
	case wire.Stdout:
		_, err = os.Stdout.Write(payload)
	case wire.Stderr:
		_, err = os.Stderr.Write(payload)
	case wire.Output:
		_, err = s.out.Write(payload)
	case wire.Alive:
	default:
		err = fmt.Errorf("%w: kind %q", wire.ErrGarbled, byte(kind))
	}
	return err
}

// feed starts the transfer of input to the machine.
func (s *session) feed() {
	if s.job.Terminal {
		s.followTerminalSize()
	}
	if s.job.Stdin {
		go func() {
			_, _ = io.Copy(s.sender.Stream(wire.Stdin), os.Stdin) // either side may stop first
			_ = s.sender.Send(wire.Stdin, nil)
		}()
	}
}

func (s *session) finish(payload []byte) (int, error) {
	code, err := strconv.Atoi(string(payload))
	if err != nil {
		return 0, fmt.Errorf("%w: exit code %q", wire.ErrGarbled, payload)
	}
	if err := s.out.Close(); err != nil {
		return 0, fmt.Errorf("files of /out: %w", err)
	}
	return code, s.sender.Send(wire.Bye, nil)
}

func (s *session) broken(err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return failure{exitHung, errors.New("the machine hangs")}
	}
	return failure{exitDied, fmt.Errorf("the machine died: %w", err)}
}

func runCommand(ctx context.Context, lab lab, args []string) (int, error) {
	opts, command, err := parseOptions(args)
	if err != nil {
		return 0, err
	}
	if len(command) == 0 {
		return 0, errors.New("run: no command\n" + usage) //nolint:staticcheck // usage is more than a line
	}
	return lab.run(ctx, opts, newJob(opts, command))
}

func shellCommand(ctx context.Context, lab lab, args []string) (int, error) {
	opts, host, err := parseOptions(args)
	if err != nil {
		return 0, err
	}
	job := newJob(opts, append([]string{"lab-shell"}, host...))
	job.Terminal = true
	return lab.run(ctx, opts, job)
}

func newJob(opts options, command []string) wire.Job {
	return wire.Job{
		Command: command, Env: append([]string{"MULTILOCK_LAB=1"}, opts.env...), Dir: "/" + guestDir,
		Stdin: opts.stdin, Output: opts.out != "",
	}
}
