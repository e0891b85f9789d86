//go:build unix

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// run is one run of some tests.
type run struct {
	work    string // a directory for everything that it leaves
	b       *binary
	mutant  int
	tests   []string
	limit   time.Duration
	reached string // a file of one byte per mutant, or ""
}

// outcome is what came of it.
type outcome struct {
	passed, hung bool
	failed       string // the test that failed first, if that is known
	output       []byte
}

var runs atomic.Int64

// do runs the tests, and ends all that they leave running.
func (r run) do(ctx context.Context) (outcome, error) {
	mark := fmt.Sprintf("MUTANTS_RUN=%d.%d", os.Getpid(), runs.Add(1))
	temp, err := os.MkdirTemp(r.work, "run-")
	if err != nil {
		return outcome{}, err
	}
	defer os.RemoveAll(temp) //nolint:errcheck // the whole directory is removed in the end
	if err := os.Chmod(temp, 0o777); err != nil {
		return outcome{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, r.limit+r.limit/4)
	defer cancel()
	cmd := exec.CommandContext(ctx, r.b.path, "-test.short", "-test.failfast", "-test.v", "-test.timeout", r.limit.String(),
		"-test.run", pattern(r.tests))
	cmd.Dir = r.b.testDir
	cmd.Env = append(os.Environ(), mark, "TMPDIR="+temp, fmt.Sprint("MUTANT=", r.mutant), "MUTANTS_REACHED="+r.reached)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second // what a test left running may have our pipe
	err = cmd.Run()
	if err != nil || errors.Is(err, exec.ErrWaitDelay) {
		endAll(mark)
	}
	o := outcome{passed: err == nil || errors.Is(err, exec.ErrWaitDelay), output: out.Bytes()}
	o.hung = ctx.Err() != nil || bytes.Contains(o.output, []byte("panic: test timed out"))
	if found := regexp.MustCompile(`(?m)^--- FAIL: (\w+)`).FindSubmatch(o.output); found != nil {
		o.failed = string(found[1])
	}
	return o, nil
}

// pattern selects some tests, or one subtest.
func pattern(tests []string) string {
	if parent, sub, ok := strings.Cut(tests[0], "/"); ok {
		return "^" + parent + "$/^" + regexp.QuoteMeta(sub) + "$"
	}
	return "^(" + strings.Join(tests, "|") + ")$"
}

// subtests are those that ran.
func (o outcome) subtests() (names []string) {
	for _, found := range regexp.MustCompile(`(?m)^=== RUN   (\w+/[^/\n]+)$`).FindAllSubmatch(o.output, -1) {
		names = append(names, string(found[1]))
	}
	return names
}

// endAll ends the processes that have the mark in their environment: those that the
// tests of one run have started, in whatever group, and nobody else's.
func endAll(mark string) {
	environs, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, path := range environs {
		environ, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(append([]byte{0}, environ...), []byte("\x00"+mark+"\x00")) {
			continue
		}
		var pid int
		if _, err := fmt.Sscanf(path, "/proc/%d/environ", &pid); err == nil && pid > 1 {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}
