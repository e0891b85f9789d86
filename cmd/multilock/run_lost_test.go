//go:build unix

package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
)

// lostAtFirst breaks the first acquired lock, like a process that finds no heartbeats because the holder is
// frozen.
func (p *program) lostAtFirst() {
	var first sync.Once
	p.acquired = func(lease fullLease) source.Lease {
		first.Do(func() { assert.NoError(p.t, os.RemoveAll(filepath.Join(p.base, ".locks", lease.Record().Name))) })
		return lease
	}
}

// If the lock was lost before the job started, the run waits for it again.
func TestLockLostBeforeTheStart(t *testing.T) {
	for name, options := range map[string][]string{
		"for ever": {"--wait", "forever"},
		"a limit":  {"--wait", "1h"},
		"a slot":   {"--wait", "1h", "--slots", "1"}, // another slot may be acquired instead
		"once":     {"--wait", "1h", "--once"},
		"in JSON":  {"--wait", "1h", "--json"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProgram(t)
			p.lostAtFirst()
			args := append([]string{"run", "--source", p.url("full"), "-n", "x"}, options...)
			got := p.run(append(args, "--", "sh", "-c", `echo "ran as $MULTILOCK_NAME"`)...)
			require.Zero(t, got.code, got.stderr)
			require.Equal(t, "ran as x\n", got.stdout)
			require.Contains(t, got.stderr, "before the job was started; waiting on")
			if name == "in JSON" {
				require.Regexp(t, `(?s)^\{[^{]*"level":"info"[^{]*\}\n\{[^{]*"ran":true,[^{]*\}\n$`, got.stderr, "one report, of the run")
			}
		})
	}
}

// Without --wait the loss is reported.
func TestLockLostBeforeTheStartWithoutAWait(t *testing.T) {
	p := newProgram(t)
	p.lostAtFirst()
	got := p.run("run", "--source", p.url("full"), "-n", "x", "--", "echo", "ran")
	require.Equal(t, 122, got.code, got.stderr)
	require.Empty(t, got.stdout)
	require.NotContains(t, got.stderr, "waiting on")
}

// stickyLease is a lease from which the record of a job cannot be removed.
type stickyLease struct{ fullLease }

func (l stickyLease) MarkJob(ctx context.Context, jobs ...process.Group) error {
	if len(jobs) == 0 {
		return errors.New("the server does not answer")
	}
	return l.fullLease.MarkJob(ctx, jobs...)
}

// stickyAtFirst makes the first lease a stickyLease, and counts the acquisitions.
func (p *program) stickyAtFirst() *int {
	count := 0
	p.acquired = func(lease fullLease) source.Lease {
		if count++; count == 1 {
			return stickyLease{lease}
		}
		return lease
	}
	return &count
}

// The record of an ended attempt would be evidence that no process works under the lock, so the next attempt
// is not started. The failure stays recorded.
func TestNoteThatCannotBeTakenBack(t *testing.T) {
	p := newProgram(t)
	p.stickyAtFirst()
	args := []string{"run", "--source", p.url("full"), "-n", "x", "--once", "--retries", "2", "--", "sh", "-c", `echo "attempt $MULTILOCK_ATTEMPT"; exit $((7 - MULTILOCK_ATTEMPT))`}
	got := p.run(args...)
	require.Equal(t, "attempt 1\n", got.stdout)
	require.Equal(t, 6, got.code, "how the attempt that was made has ended")
	require.Contains(t, got.stderr, "attempt 2 was not started")
	require.Contains(t, got.stderr, "the server does not answer")
	require.Contains(t, p.run("status", "--source", p.url("full"), "--results").stdout, "retry")

	got = p.run(args...)
	require.Equal(t, "attempt 2\nattempt 3\n", got.stdout, "under another lock")
	require.Equal(t, 4, got.code)
}
