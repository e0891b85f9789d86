//go:build unix

package main

import (
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

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
				require.Regexp(t, `(?s)^[^{]*\n\{[^{]*"ran":true,[^{]*\}\n$`, got.stderr, "one report, of the run")
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
