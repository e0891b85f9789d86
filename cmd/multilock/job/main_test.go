//go:build linux

package job_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"testing"
	"time"

	"github.com/multilock/go/cmd/multilock/job"
	"github.com/multilock/go/multilock/locktest"
)

const (
	runnerArg = "__runner"
	testMark  = "MULTILOCK_JOB_TEST"
	// guardGrace is short because a test waits for it to pass.
	guardGrace = 200 * time.Millisecond
)

// TestMain lets the test binary be the guard and the runner of a job as well.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case job.GuardArg:
			os.Exit(job.Guard(os.Stdin))
		case runnerArg:
			os.Exit(runAsRunner(os.Args[2:]))
		case tracerArg:
			os.Exit(traceRunner(os.Args[2]))
		}
	}
	locktest.HearHangups()
	os.Exit(m.Run())
}

// runAsRunner is what `multilock run` does, without a lock.
func runAsRunner(args []string) int {
	signals := make(chan os.Signal, 16)
	if catch := job.Signals(); len(catch) > 0 {
		signal.Notify(signals, catch...)
	}
	j, err := job.Start(job.Spec{
		Args: args, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		Env: markedEnv(), Mark: mark(), JobControl: true, GuardGrace: guardGrace, Allowance: allowed(),
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return exitCode(err)
	}
	j.Forward(context.Background(), signals)
	j.Result().Reraise()
	return j.Result().Code
}

// allowanceVariable says for how long jobs may run.
const allowanceVariable = "MULTILOCK_JOB_TEST_ALLOWANCE"

func allowed() func() job.Allowance {
	patience, err := time.ParseDuration(os.Getenv(allowanceVariable))
	if err != nil {
		return nil
	}
	return allow(patience).now
}

func exitCode(err error) int {
	var missing *job.NotFoundError
	var broken *job.NotRunnableError
	switch {
	case errors.As(err, &missing):
		return 127
	case errors.As(err, &broken):
		return 126
	}
	return 125
}

func mark() string { return fmt.Sprintf("%s=%d", testMark, os.Getpid()) }

func markedEnv() []string {
	var env []string
	for _, entry := range os.Environ() {
		if !strings.HasPrefix(entry, testMark+"=") {
			env = append(env, entry)
		}
	}
	return append(env, mark())
}
