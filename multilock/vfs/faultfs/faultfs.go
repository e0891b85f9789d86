// Package faultfs wraps a file system for tests. It numbers the operations of
// the seam in package vfs, and lets an Injector make any of them fail, lose its
// reply, or be the last thing that the process does.
//
// The faults are those of a network file system: a call that was not carried
// out, a call that was carried out and whose reply was lost, a call that was not
// carried out and is reported as done.
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

// Phase says when an Injector is asked.
type Phase int

const (
	// Before means that the operation has not been carried out. An error from the
	// Injector is its result then, and it never is carried out.
	Before Phase = iota
	// After means that the operation has been carried out. An error from the
	// Injector replaces its reply.
	After
)

// String is "before" or "after".
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
	// Path is what it is done to, relative to the directory that FS.OpenDir opened.
	// That of a rename is "old -> new". Random names (UUIDs) are replaced by
	// <token1>, <token2>, ..., in the order in which they came up.
	Path string
	// Phase is when.
	Phase Phase
	// Real is the path as the operating system knows it, Target the one that a
	// rename leads to. They let an Injector change the file system by itself.
	Real, Target string
	// Err is, After, what the operation answered.
	Err error
}

// Injector is asked before and after each operation. It may be called by several
// goroutines at once.
type Injector func(Op) error

// ErrPretend is an Injector's verdict that an operation is to be reported as a
// success: Before, without having been carried out; After, whatever it answered.
// It is no verdict on an operation that yields a Dir or a File.
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

// New wraps a file system. A nil Injector lets everything pass.
func New(inner vfs.FS, inject Injector) *FS {
	uuid := regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)
	return &FS{inner: inner, uuid: uuid, inject: inject, tokens: map[string]string{}}
}

// Inject replaces the Injector, from the next operation on, which gets the
// number 0. That way a test sets up its scene without faults.
func (f *FS) Inject(inject Injector) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.inject, f.next, f.tokens = inject, 0, map[string]string{}
}

// Describe makes every directory say that it is on a file system of this kind,
// so that a test runs alike wherever its files really are.
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

// FailAt makes the n-th operation answer err: Before, without having been carried
// out; After, as if its own reply had been lost.
func FailAt(n int, phase Phase, err error) Injector {
	return at(n, phase, func() error { return err })
}

func at(n int, phase Phase, verdict func() error) Injector {
	return func(op Op) error {
		if op.N != n || op.Phase != phase {
			return nil
		}
		return verdict()
	}
}

// Chain asks several injectors in turn until one has a verdict.
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

// Trace writes a line for each operation once it was carried out: its kind, its
// path, and the error that it answered, if any. There is no number in it: one
// more operation is one more line, and no other line changes.
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

// call is an operation that is about to get its number.
type call struct {
	fs         *FS
	base, kind string
	real       string
	target     string
}

// errOpens says that a verdict cannot be carried out.
var errOpens = errors.New("cannot pretend that something was opened")

// do carries out an operation that yields nothing.
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

// ask carries out an operation that yields something to know.
func ask[T any](c call, f func() (T, error)) (got T, err error) {
	err = c.do(func() error {
		got, err = f()
		return err
	})
	return got, err
}

// closing carries out a close: that frees the descriptor whatever it answers
// (close(2)), so a fault cannot keep it from being done.
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

// open carries out an operation that yields something to be closed; what it
// yields is closed if its reply is lost.
func open[T io.Closer](c call, f func() (T, error)) (T, error) {
	var none T
	got, err := ask(c, f)
	opened := any(got) != nil
	switch {
	case err == nil && !opened:
		return none, c.reply(errOpens)
	case err != nil && opened:
		_ = got.Close() // nobody will ever hear of it
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

// reply turns a verdict into what the caller sees: bare error numbers get the
// wrapping that package vfs promises.
func (c call) reply(verdict error) error {
	if errors.Is(verdict, ErrPretend) {
		return nil
	}
	var number syscall.Errno
	if errors.As(verdict, &number) || errors.Is(verdict, errOpens) {
		return &fs.PathError{Op: c.kind, Path: c.real, Err: verdict}
	}
	return verdict
}

// number makes the operation known, and fixes the Injector for both its phases.
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

// path is the operation's path with placeholders; the caller holds the mutex.
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
