//go:build linux

package main

import (
	"context"
	"errors"

	"github.com/multilock/go/integration/nfslab/wire"
)

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
