// Package faultfs wraps a file system for tests. It numbers the operations of package vfs, and lets an
// Injector make any of them fail, lose its reply, or end the process.
//
// The faults are those of a network file system: a call that did not take effect, a call that took
// effect but whose reply was lost, and a call that is reported as done but did not take effect.
package faultfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"regexp"
	"strings"
	"sync"
	"syscall"

	"github.com/multilock/go/multilock/vfs"
)

// Phase is when an Injector is called.
type Phase int

const (
	// Before means that the operation has not been executed. An error from the Injector becomes its
	// result, and the operation is not executed.
	Before Phase = iota
	// After means that the operation has been executed. An error from the Injector replaces its
	// result.
	After
)

// String returns "before" or "after".
func (p Phase) String() string {
	if p == Before {
		return "before"
	}
	return "after"
}

// Op is one operation of an FS, or of a Dir or File below it.
type Op struct {
	// N counts the operations from 0.
	N int
	// Kind is the operation: the method's name in package vfs, in lower case, with
	// "file." before that of a File's Stat, StatCached, Handle and Close.
	Kind string
	// Path is the operation's path, relative to the directory that FS.OpenDir opened; for a rename it is
	// "old -> new". Random names (UUIDs) are replaced by <token1>, <token2>, ..., in the order of
	// their first use.
	Path string
	// Phase is before or after the operation.
	Phase Phase
	// Real is the path in the operating system, Target the target of a rename. With them an Injector can
	// change the file system itself.
	Real, Target string
	// Err is the result of the operation; nil in phase Before.
	Err error
}

// Injector is called before and after each operation, possibly by several goroutines at once.
type Injector func(Op) error

// ErrPretend from an Injector makes an operation return success: Before, without executing it; After,
// whatever its result. It is not valid for an operation that returns a Dir or a File.
var ErrPretend = errors.New("pretend that it succeeded")

// FS is a file system with faults. It is safe for concurrent use.
type FS struct {
	inner vfs.FS
	uuid  *regexp.Regexp

	mu     sync.Mutex
	inject Injector
	next   int
	tokens map[string]string
	kind   *vfs.FileSystem
}

var _ vfs.FS = (*FS)(nil)

// New wraps a file system. A nil Injector causes no faults.
func New(inner vfs.FS, inject Injector) *FS {
	uuid := regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)
	return &FS{inner: inner, uuid: uuid, inject: inject, tokens: map[string]string{}}
}

// Inject replaces the Injector and restarts the numbers from 0, so that a test can set up its files
// without faults.
func (f *FS) Inject(inject Injector) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.inject, f.next, f.tokens = inject, 0, map[string]string{}
}

// Describe makes every directory report this kind of file system, so that a test behaves the same on
// any real one.
func (f *FS) Describe(kind vfs.FileSystem) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.kind = &kind
}

func (f *FS) described() *vfs.FileSystem {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.kind
}

// OpenDir implements vfs.FS.
func (f *FS) OpenDir(path string) (vfs.Dir, error) {
	c := call{fs: f, base: path, kind: "opendir", real: path}
	return openDir(c, func() (vfs.Dir, error) { return f.inner.OpenDir(path) })
}

// FailAt makes operation n return err: Before, without executing it; After, as if its reply had been
// lost.
func FailAt(n int, phase Phase, err error) Injector {
	return at(n, phase, func() error { return err })
}

func at(n int, phase Phase, assessment func() error) Injector {
	return func(op Op) error {
		if op.N != n || op.Phase != phase {
			return nil
		}
		return assessment()
	}
}

// Chain calls several injectors in turn until one returns an error.
func Chain(injectors ...Injector) Injector {
	return func(op Op) error {
		for _, inject := range injectors {
			if err := inject(op); err != nil {
				return err
			}
		}
		return nil
	}
}

// Trace writes a line for each executed operation: its kind, its path, and its error, if any. The line
// has no number, so that one more operation adds one line and changes no other.
func Trace(w io.Writer) Injector {
	var mu sync.Mutex
	return func(op Op) error {
		if op.Phase == Before {
			return nil
		}
		mu.Lock()
		defer mu.Unlock()
		_, err := fmt.Fprintf(w, "%s %s%s\n", op.Kind, op.Path, answer(op.Err))
		return err
	}
}

func answer(err error) string {
	var number syscall.Errno
	switch {
	case err == nil:
		return ""
	case errors.Is(err, io.EOF):
		return " = EOF"
	case errors.As(err, &number):
		return " = " + errorName(number)
	}
	return " = " + err.Error()
}

// call is an operation before it gets its number.
type call struct {
	fs         *FS
	base, kind string
	real       string
	target     string
}

// errOpens means that ErrPretend is not valid for this operation.
var errOpens = errors.New("cannot pretend that something was opened")

// do executes an operation without a result.
func (c call) do(f func() error) error {
	op, inject := c.number()
	if err := inject(op); err != nil {
		return c.reply(err)
	}
	op.Phase, op.Err = After, f()
	if err := inject(op); err != nil {
		return c.reply(err)
	}
	return op.Err
}

// ask executes an operation with a result.
func ask[T any](c call, f func() (T, error)) (got T, err error) {
	err = c.do(func() error {
		got, err = f()
		return err
	})
	return got, err
}

// closing executes a close. A close frees the descriptor whatever it returns (close(2)), so a fault does
// not prevent it.
func (c call) closing(f func() error) error {
	op, inject := c.number()
	before := inject(op)
	op.Phase, op.Err = After, f()
	for _, err := range []error{before, inject(op)} {
		if err != nil {
			return c.reply(err)
		}
	}
	return op.Err
}

// open executes an operation that opens something, and closes that if the reply is lost.
func open[T io.Closer](c call, f func() (T, error)) (T, error) {
	var none T
	got, err := ask(c, f)
	opened := any(got) != nil
	switch {
	case err == nil && !opened:
		return none, c.reply(errOpens)
	case err != nil && opened:
		_ = got.Close() // the caller never receives it
		return none, err
	}
	return got, err
}

func openDir(c call, f func() (vfs.Dir, error)) (vfs.Dir, error) {
	inner, err := open(c, f)
	if err != nil {
		return nil, err
	}
	return &dir{fs: c.fs, base: c.base, inner: inner}, nil
}

func openFile(c call, f func() (vfs.File, error)) (vfs.File, error) {
	inner, err := open(c, f)
	if err != nil {
		return nil, err
	}
	return &file{fs: c.fs, base: c.base, path: c.real, inner: inner}, nil
}

// reply converts an Injector's error into the caller's: it wraps bare error numbers as package vfs
// does.
func (c call) reply(assessment error) error {
	if errors.Is(assessment, ErrPretend) {
		return nil
	}
	var number syscall.Errno
	if errors.As(assessment, &number) || errors.Is(assessment, errOpens) {
		return &fs.PathError{Op: c.kind, Path: c.real, Err: assessment}
	}
	return assessment
}

// number numbers the operation, and fixes the Injector for both phases.
func (c call) number() (Op, Injector) {
	c.fs.mu.Lock()
	defer c.fs.mu.Unlock()
	op := Op{N: c.fs.next, Kind: c.kind, Path: c.path(), Real: c.real, Target: c.target}
	c.fs.next++
	if c.fs.inject == nil {
		return op, func(Op) error { return nil }
	}
	return op, c.fs.inject
}

// path returns the operation's path with placeholders. The caller holds the mutex.
func (c call) path() string {
	path := c.relative(c.real)
	if c.target != "" {
		path = fmt.Sprintf("%s -> %s", path, c.relative(c.target))
	}
	return c.fs.uuid.ReplaceAllStringFunc(path, c.placeholder)
}

func (c call) relative(path string) string {
	if path == c.base {
		return "."
	}
	return strings.TrimPrefix(path, strings.TrimSuffix(c.base, "/")+"/")
}

func (c call) placeholder(token string) string {
	if _, known := c.fs.tokens[token]; !known {
		c.fs.tokens[token] = fmt.Sprintf("<token%d>", len(c.fs.tokens)+1)
	}
	return c.fs.tokens[token]
}
