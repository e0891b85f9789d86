//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/cmd/multilock/internal/command"
	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/cmd/multilock/internal/place"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
)

// Only a failing test takes as long as the watchdog.
const (
	watchdog = 2 * time.Minute
	poll     = 5 * time.Millisecond
)

// program runs the program in this process, with sources that can do less than the shipped ones. All of them
// store their locks in the directory of their URL. Only one program can run at a time, because the library
// for command lines has global variables.
type program struct {
	t    *testing.T
	base string
	vars map[string]string
	// guarantees are what a source of the kind "full" declares.
	guarantees []source.Guarantee
	findings   []source.Finding
	// acquired, unless nil, replaces each lease of such a source.
	acquired func(fullLease) source.Lease
	// opened is the full URL of the source that was opened last.
	opened string
	stdin  *os.File
}

func newProgram(t *testing.T) *program {
	t.Helper()
	return &program{t: t, base: t.TempDir(), vars: map[string]string{}}
}

// url returns a source's URL without a secret.
func (p *program) url(scheme string) string { return scheme + "://ada@host:8029" + p.base }

func (p *program) kinds() place.Kinds {
	return append(place.Known(),
		place.Kind{Scheme: "bare", Form: "bare://HOST/DIRECTORY", Groups: false, Group: "", Open: func(_ context.Context, e *console.Env, o place.Place) (multilock.Source, error) {
			src, err := p.open(e, o)
			return bare{src}, err
		}},
		place.Kind{Scheme: "full", Form: "full://HOST/DIRECTORY", Groups: true, Group: fslock.DefaultGroup, Open: func(_ context.Context, e *console.Env, o place.Place) (multilock.Source, error) {
			src, err := p.open(e, o)
			return full{src, p}, err
		}},
		place.Kind{Scheme: "broken", Form: "broken://HOST", Groups: true, Group: "", Open: func(_ context.Context, e *console.Env, o place.Place) (multilock.Source, error) {
			text, err := o.FullURL(e)
			return nil, errors.Join(err, fmt.Errorf("dial %s: no such host", text))
		}},
		place.Kind{Scheme: "silent", Form: "silent://HOST", Groups: true, Group: "", Open: func(ctx context.Context, _ *console.Env, _ place.Place) (multilock.Source, error) {
			<-p.t.Context().Done() // regardless of its own context
			return nil, context.Cause(ctx)
		}},
	)
}

func (p *program) open(e *console.Env, o place.Place) (src *fslock.Source, err error) {
	if p.opened, err = o.FullURL(e); err != nil {
		return nil, err
	}
	at, err := url.Parse(p.opened)
	if err != nil {
		return nil, err
	}
	return fslock.Open(fslock.Options{Base: at.Path, Group: o.Group})
}

// ran describes how the program ended.
type ran struct {
	code           int
	stdout, stderr string
}

func (p *program) run(args ...string) ran {
	p.t.Helper()
	dir := p.t.TempDir()
	open := func(name string) *os.File {
		f, err := os.Create(filepath.Join(dir, name))
		require.NoError(p.t, err)
		return f
	}
	e := &command.Env{Env: &console.Env{Stdin: p.stdin, Stdout: open("stdout"), Stderr: open("stderr"), Environ: cleanEnviron}, Kinds: p.kinds()}
	e.Getenv = func(name string) string { return p.vars[name] }
	code := run(p.t.Context(), e, append([]string{"multilock"}, args...)).code
	_, _ = e.Stdout.Close(), e.Stderr.Close()
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(p.t, err)
		return string(text)
	}
	return ran{code, read("stdout"), read("stderr")}
}

func cleanEnviron() []string { return []string{"PATH=" + os.Getenv("PATH")} }

// must requires success and returns the standard output.
func (p *program) must(args ...string) string {
	p.t.Helper()
	got := p.run(args...)
	require.Zero(p.t, got.code, "%v: %s", args, got.stderr)
	return got.stdout
}

func (p *program) requireUntouched() {
	p.t.Helper()
	entries, err := os.ReadDir(p.base)
	require.NoError(p.t, err)
	require.Empty(p.t, entries)
}

// bare is a source that has only locks.
type bare struct{ files *fslock.Source }

func (b bare) Close() error { return b.files.Close() }

func (b bare) Names(ctx context.Context) ([]string, error) { return b.files.Names(ctx) }

func (b bare) Observe(ctx context.Context, name string, policy multilock.StalePolicy) (source.Observer, error) {
	return b.files.Observe(ctx, name, policy)
}

func (b bare) Contend(ctx context.Context, name string, claim source.Claim, policy multilock.StalePolicy) (source.Contender, error) {
	c, err := b.files.Contend(ctx, name, claim, policy)
	return bareContender{c}, err
}

type bareContender struct{ source.Contender }

func (c bareContender) Try(ctx context.Context) (source.Lease, error) {
	lease, err := c.Contender.Try(ctx)
	return bareLease{lease}, err
}

type bareLease struct{ source.Lease }

func (bareLease) Fence(context.Context) (uint64, error) { return 0, multilock.ErrUnsupported }

func (bareLease) MarkJob(context.Context, ...process.Group) error { return multilock.ErrUnsupported }

// full is a source other than a directory, with all abilities that its guarantees do not deny.
type full struct {
	*fslock.Source
	p *program
}

func (f full) Guarantees() []source.Guarantee { return f.p.guarantees }

func (f full) Examine(context.Context) []source.Finding { return f.p.findings }

func (f full) Contend(ctx context.Context, name string, claim source.Claim, policy multilock.StalePolicy) (source.Contender, error) {
	c, err := f.Source.Contend(ctx, name, claim, policy)
	return fullContender{c, f.p}, err
}

type fullContender struct {
	source.Contender
	p *program
}

func (c fullContender) Try(ctx context.Context) (source.Lease, error) {
	lease, err := c.Contender.Try(ctx)
	if err != nil || c.p.acquired == nil {
		return lease, err
	}
	return c.p.acquired(fullLease{lease, lease.(source.Committer)}), nil
}

// fullLease is a lease with all abilities that the command uses.
type fullLease struct {
	source.Lease
	source.Committer
}

// OpenLogs hides the directory's method.
func (full) OpenLogs() {}
