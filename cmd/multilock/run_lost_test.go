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

// lostAtFirst takes the lock away from whoever acquires it first, as somebody does who
// finds it silent while its holder is frozen.
func (p *program) lostAtFirst() {
	var first sync.Once
	p.acquired = func(lease fullLease) source.Lease {
		first.Do(func() { assert.NoError(p.t, os.RemoveAll(filepath.Join(p.base, ".locks", lease.Record().Name))) })
		return lease
	}
}

// A lock that was lost before the job was started is waited for again.
func TestLockLostBeforeTheStart(t *testing.T) {
	for name, options := range map[string][]string{
		"for ever": {"--wait", "forever"},
		"a limit":  {"--wait", "1h"},
		"a slot":   {"--wait", "1h", "--slots", "1"}, // of several, another one may be taken instead
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

// Who does not wait is told.
func TestLockLostBeforeTheStartWithoutAWait(t *testing.T) {
	p := newProgram(t)
	p.lostAtFirst()
	got := p.run("run", "--source", p.url("full"), "-n", "x", "--", "echo", "ran")
	require.Equal(t, 122, got.code, got.stderr)
	require.Empty(t, got.stdout)
	require.NotContains(t, got.stderr, "waiting on")
}

// stickyLease is one from which the note of a job cannot be taken back.
type stickyLease struct{ fullLease }

func (l stickyLease) MarkJob(ctx context.Context, jobs ...process.Group) error {
	if len(jobs) == 0 {
		return errors.New("the server does not answer")
	}
	return l.fullLease.MarkJob(ctx, jobs...)
}

// stickyAtFirst makes the first acquisition one of those, and says how many there were.
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

// What is noted of an attempt that is over would testify that nobody works under the
// lock: the next one is not started. The failure stays recorded.
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
