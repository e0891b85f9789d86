package faultfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"syscall"

	"github.com/multilock/go/multilock/vfs"
)

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
