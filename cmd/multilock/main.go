// The limit of a container's processors is looked up once, and not every second: a
// waiter is to leave the processor alone.
//
//go:debug updatemaxprocs=0

// Command multilock locks and runs jobs for clusters whose hosts share nothing
// but a filesystem.
package main

import (
	"context"
	"os"

	"github.com/multilock/go/cmd/multilock/internal/command"
	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/cmd/multilock/internal/place"
	"github.com/multilock/go/cmd/multilock/job"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == job.GuardArg {
		os.Exit(job.Guard(os.Stdin))
	}
	e := &command.Env{Env: &console.Env{Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Getenv: os.Getenv, Environ: os.Environ}, Kinds: place.Known()}
	outcome := run(context.Background(), e, os.Args)
	outcome.leave()
	os.Exit(outcome.code)
}
