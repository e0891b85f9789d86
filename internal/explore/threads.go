package explore

import (
	"cmp"
	"context"
	"io/fs"
	"path"
	"runtime"
	"slices"
	"syscall"
	"testing/synctest"
	"time"

	"github.com/multilock/go/internal/simnfs"
	"github.com/multilock/go/multilock/vfs"
)

// The goroutines of one actor wake each other, so several of them may run between two steps. Their order in
// memory is not controlled: any order must give the same result, or a schedule could not be repeated. But
// each goroutine stops before file system calls as well as before requests, and they enter calls one at a
// time, in an order that does not depend on their speed. A crash ends the actor's context, and all its
// calls fail after that; the effects of its goroutines are ignored. A goroutine that pauses before a
// request pauses the whole actor, like a host that is stopped or cut off; one that waits for a reply lets
// the others run.

// FS returns the actor's file system, with or without threads.
func (a *Actor) FS() vfs.FS {
	if a.threads {
		return entered{a}
	}
	return a
}

// Context returns a context that ends when the actor crashes or, at the latest, with the schedule.
func (a *Actor) Context() context.Context { return a.ctx }

// Gone reports whether the actor has crashed or ended.
func (a *Actor) Gone() bool {
	a.world.mu.Lock()
	defer a.world.mu.Unlock()
	return a.Crashed || a.threads && a.ended
}

// Gate is a point at which other actors may run first. It returns false if the actor is gone.
func (a *Actor) Gate(what string) bool {
	return a.gate(simnfs.Request{Kind: what}) != Crash
}

// Rely makes the actor rely on its lock as long as remaining is positive.
func (a *Actor) Rely(remaining func() time.Duration) {
	a.relies = remaining
	a.Believe(time.Time{})
}

// inTurn returns the pending calls of an actor, in the order of their steps.
func (a *Actor) inTurn() []*call {
	slices.SortStableFunc(a.waits, func(b, c *call) int {
		return cmp.Or(b.since-c.since, cmp.Compare(b.request.Kind, c.request.Kind), cmp.Compare(unmarked(b.request.Path), unmarked(c.request.Path)), cmp.Compare(b.where, c.where))
	})
	return a.waits
}

// caller distinguishes goroutines that make the same call, by their call stacks.
func caller() (sum simnfs.Sum) {
	var at [64]uintptr
	for _, pc := range at[:runtime.Callers(3, at[:])] {
		sum.Add(uint64(pc))
	}
	return sum
}

// unmarked returns a path without its tokens, which are random.
func unmarked(path string) string {
	for at := 0; len(path)-at >= tokenLength; at++ {
		if isToken(path[at:]) {
			path = path[:at] + path[at+tokenLength:]
		}
	}
	return path
}

// hold pauses all goroutines of an actor. An actor with a single goroutine pauses by itself.
func (w *World) hold(a *Actor, d time.Duration) {
	if a.threads {
		a.stopped = time.Now().Add(d)
		time.AfterFunc(d, w.arrive)
	}
}

// admit runs pending closes, ends all calls of actors that are gone, and lets the goroutines of the other
// actors enter calls, one at a time.
func (w *World) admit() {
	for {
		w.mu.Lock()
		closed := w.closed
		w.closed = nil
		c, fate := w.entry()
		w.mu.Unlock()
		for _, closes := range closed {
			closes()
		}
		if c == nil {
			return
		}
		w.resume(c, fate)
		synctest.Wait()
	}
}

// entry returns the next call that may begin, or that ends with its actor.
func (w *World) entry() (c *call, fate Fate) {
	for _, a := range w.actors {
		gone := a.Crashed || a.ended
		if !a.threads || !gone && time.Now().Before(a.stopped) {
			continue
		}
		for _, c := range a.inTurn() {
			if gone {
				return c, Crash
			}
			if c.entry {
				return c, Answered
			}
		}
	}
	return nil, Answered
}

// enters waits until a goroutine may begin a call.
func (a *Actor) enters(kind, path string) error {
	if !a.started {
		return nil
	}
	c := a.newCall(simnfs.Request{Kind: kind, Path: path})
	c.entry = true
	if a.waitAt(c) == Crash {
		return &fs.PathError{Op: kind, Path: path, Err: syscall.EIO}
	}
	a.learnt.AddText(a.world.labelled(kind + " " + path))
	return nil
}

// entered is the file system for each goroutine of an actor.
type entered struct{ actor *Actor }

func (e entered) OpenDir(path string) (vfs.Dir, error) {
	return openedBy(e.actor, "opendir", path, func() (vfs.Dir, error) { return e.actor.OpenDir(path) })
}

func openedBy(a *Actor, kind, path string, open func() (vfs.Dir, error)) (vfs.Dir, error) {
	opened, err := within(a, kind, path, open)
	if err != nil {
		return nil, err
	}
	return enteredDir{opened, a}, nil
}

func fileBy(a *Actor, kind, path string, open func() (vfs.File, error)) (vfs.File, error) {
	opened, err := within(a, kind, path, open)
	if err != nil {
		return nil, err
	}
	return enteredFile{opened, a, path}, nil
}

// within makes a call in its turn.
func within[T any](a *Actor, kind, path string, do func() (T, error)) (value T, err error) {
	if err := a.enters(kind, path); err != nil {
		return value, err
	}
	return do()
}

func done(a *Actor, kind, path string, do func() error) error {
	_, err := within(a, kind, path, func() (struct{}, error) { return struct{}{}, do() })
	return err
}

// closes queues a close, to run before any actor continues.
func (a *Actor) closes(close func() error) error {
	if !a.started {
		return close()
	}
	a.world.mu.Lock()
	defer a.world.mu.Unlock()
	a.world.closed = append(a.world.closed, func() { _ = close() }) // no request
	return nil
}

type enteredDir struct {
	vfs.Dir
	actor *Actor
}

func (d enteredDir) at(name string) string { return path.Join(d.Path(), name) }

func (d enteredDir) OpenDir(name string) (vfs.Dir, error) {
	return openedBy(d.actor, "opendir", d.at(name), func() (vfs.Dir, error) { return d.Dir.OpenDir(name) })
}

func (d enteredDir) Enter(name string) (vfs.Dir, error) {
	return openedBy(d.actor, "enter", d.at(name), func() (vfs.Dir, error) { return d.Dir.Enter(name) })
}

func (d enteredDir) Open(name string) (vfs.File, error) {
	return fileBy(d.actor, "open", d.at(name), func() (vfs.File, error) { return d.Dir.Open(name) })
}

func (d enteredDir) Create(name string, mode uint32) (vfs.File, error) {
	return fileBy(d.actor, "create", d.at(name), func() (vfs.File, error) { return d.Dir.Create(name, mode) })
}

func (d enteredDir) OpenAppend(name string, mode uint32) (vfs.File, error) {
	return fileBy(d.actor, "append", d.at(name), func() (vfs.File, error) { return d.Dir.OpenAppend(name, mode) })
}

func (d enteredDir) OpenDurable(name string, mode uint32) (vfs.File, error) {
	return fileBy(d.actor, "durable", d.at(name), func() (vfs.File, error) { return d.Dir.OpenDurable(name, mode) })
}

func (d enteredDir) OpenAppendDurable(name string, mode uint32) (vfs.File, error) {
	return fileBy(d.actor, "append", d.at(name), func() (vfs.File, error) { return d.Dir.OpenAppendDurable(name, mode) })
}

func (d enteredDir) Mkdir(name string, mode uint32) error {
	return done(d.actor, "mkdir", d.at(name), func() error { return d.Dir.Mkdir(name, mode) })
}

func (d enteredDir) Rename(oldname string, to vfs.Dir, newname string) error {
	return done(d.actor, "rename", d.at(oldname), func() error { return d.Dir.Rename(oldname, to, newname) })
}

func (d enteredDir) Unlink(name string) error {
	return done(d.actor, "unlink", d.at(name), func() error { return d.Dir.Unlink(name) })
}

func (d enteredDir) Rmdir(name string) error {
	return done(d.actor, "rmdir", d.at(name), func() error { return d.Dir.Rmdir(name) })
}

func (d enteredDir) Touch() error { return done(d.actor, "touch", d.Path(), d.Dir.Touch) }

func (d enteredDir) TouchFile(name string) error {
	return done(d.actor, "touch", d.at(name), func() error { return d.Dir.TouchFile(name) })
}

func (d enteredDir) Sync() error { return done(d.actor, "sync", d.Path(), d.Dir.Sync) }

func (d enteredDir) Stat() (vfs.Info, error) { return within(d.actor, "stat", d.Path(), d.Dir.Stat) }

func (d enteredDir) StatCached() (vfs.Info, error) {
	return within(d.actor, "cached", d.Path(), d.Dir.StatCached)
}

func (d enteredDir) StatName(name string) (vfs.Info, error) {
	return within(d.actor, "stat", d.at(name), func() (vfs.Info, error) { return d.Dir.StatName(name) })
}

func (d enteredDir) Handle(name string) (vfs.Handle, error) {
	return within(d.actor, "handle", d.at(name), func() (vfs.Handle, error) { return d.Dir.Handle(name) })
}

func (d enteredDir) List(visit func(name string) bool) error { return d.listed(d.Dir.List, visit) }

func (d enteredDir) ListFiles(visit func(name string) bool) error {
	return d.listed(d.Dir.ListFiles, visit)
}

// listed calls visit after the list call: visit may make calls of its own.
func (d enteredDir) listed(list func(func(string) bool) error, visit func(string) bool) error {
	var names []string
	err := done(d.actor, "list", d.Path(), func() error {
		return list(func(name string) bool { names = append(names, name); return true })
	})
	for _, name := range names {
		if !visit(name) {
			break
		}
	}
	return err
}

func (d enteredDir) Close() error { return d.actor.closes(d.Dir.Close) }

type enteredFile struct {
	vfs.File
	actor *Actor
	path  string
}

func (f enteredFile) Read(p []byte) (int, error) {
	return within(f.actor, "read", f.path, func() (int, error) { return f.File.Read(p) })
}

func (f enteredFile) ReadAt(p []byte, off int64) (int, error) {
	return within(f.actor, "read", f.path, func() (int, error) { return f.File.ReadAt(p, off) })
}

func (f enteredFile) Write(p []byte) (int, error) {
	return within(f.actor, "write", f.path, func() (int, error) { return f.File.Write(p) })
}

func (f enteredFile) WriteAt(p []byte, off int64) (int, error) {
	return within(f.actor, "write", f.path, func() (int, error) { return f.File.WriteAt(p, off) })
}

func (f enteredFile) Stat() (vfs.Info, error) {
	return within(f.actor, "stat", f.path, f.File.Stat)
}

func (f enteredFile) StatCached() (vfs.Info, error) {
	return within(f.actor, "cached", f.path, f.File.StatCached)
}

func (f enteredFile) Handle() (vfs.Handle, error) {
	return within(f.actor, "handle", f.path, f.File.Handle)
}

func (f enteredFile) Close() error { return f.actor.closes(f.File.Close) }
