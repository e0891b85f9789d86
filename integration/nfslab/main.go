//go:build linux

// Command nfslab runs commands and tests in an emulated machine with a real Linux NFS server and real NFS
// client hosts. See README.md.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"

	"github.com/multilock/go/integration/nfslab/guest"
	"github.com/multilock/go/integration/nfslab/guest/agent"
	"github.com/multilock/go/integration/nfslab/guest/hosts"
	"github.com/multilock/go/integration/nfslab/guest/reaper"
	"github.com/multilock/go/integration/nfslab/image"
)

const usage = `usage: nfslab build
       nfslab run [--files F...] [--out DIR] [--timeout S] [--env NAME=VALUE] [--memory MB] [--accel kvm|uml|tcg] [--stdin] [--verbose] -- CMD...
       nfslab shell [HOST]
       nfslab test [options of run] [PACKAGE] [go test flags]
       nfslab clean

exit code: that of CMD; else 250 the lab failed, 251 time limit, 252 the machine died, 253 the machine hung, 128+n signal n
`

// The lab's own exit codes. Commands rarely use them, and no signal has such a number.
const (
	exitLab     = 250
	exitTimeout = 251
	exitDied    = 252
	exitHung    = 253
)

// failure is an error with a specific exit code.
type failure struct {
	code int
	err  error
}

func (f failure) Error() string { return f.err.Error() }
func (f failure) Unwrap() error { return f.err }

func main() {
	// The machine ends with the thread that starts it.
	runtime.LockOSThread()
	os.Exit(dispatch(os.Args))
}

// dispatch selects the program by the name under which it was started, which tells whether it runs in the
// machine.
func dispatch(args []string) int {
	switch filepath.Base(args[0]) {
	case guest.OnProgram:
		return hosts.On(args)
	case guest.ExecProgram:
		return hosts.Exec(args)
	case guest.AbortProgram:
		return hosts.Abort(args)
	case guest.InitProgram:
		reaper.Main()
		return 0
	case guest.AgentProgram:
		return report(0, agent.Main())
	}
	ctx, stop := interruptible()
	defer stop()
	return report(command(ctx, args[1:]))
}

func command(ctx context.Context, args []string) (int, error) {
	if len(args) == 0 {
		return 0, errors.New(usage) //nolint:staticcheck // usage has several lines
	}
	cacheDir, err := cacheDir()
	if err != nil {
		return 0, err
	}
	lab := lab{cache: image.Cache{Dir: cacheDir, Kernel: os.Getenv("MULTILOCK_LAB_KERNEL"), Log: os.Stderr}}
	switch args[0] {
	case "build":
		_, err := lab.cache.Build(ctx)
		return 0, err
	case "run":
		return runCommand(ctx, lab, args[1:])
	case "shell":
		return shellCommand(ctx, lab, args[1:])
	case "test":
		return testCommand(ctx, lab, args[1:])
	case "clean":
		return 0, lab.cache.Clean()
	case "help", "-h", "--help":
		_, err := io.WriteString(os.Stdout, usage)
		return 0, err
	}
	return 0, fmt.Errorf("unknown command %q\n%s", args[0], usage)
}

// report prints the error, if any, and returns the exit code.
func report(code int, err error) int {
	if err == nil {
		return code
	}
	fmt.Fprintln(os.Stderr, "nfslab:", err)
	var own failure
	if errors.As(err, &own) {
		return own.code
	}
	return exitLab
}

// cacheDir is the directory of the images.
func cacheDir() (string, error) {
	if dir := os.Getenv("MULTILOCK_LAB_DIR"); dir != "" {
		return filepath.Abs(dir)
	}
	base, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("set MULTILOCK_LAB_DIR: %w", err)
	}
	return filepath.Join(base, "multilock-nfslab"), nil
}

// interrupted is the cause of a context that was cancelled by a signal.
type interrupted struct{ signal syscall.Signal }

func (i interrupted) Error() string { return "stopped: " + i.signal.String() }

func interruptible() (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	go func() {
		s := <-signals
		cause := interrupted{s.(syscall.Signal)}
		cancel(failure{128 + int(cause.signal), cause})
	}()
	return ctx, func() { cancel(nil) }
}
