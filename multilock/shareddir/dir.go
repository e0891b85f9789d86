package shareddir

import (
	"iter"
	"math/rand/v2"
	"syscall"
	"time"

	"github.com/multilock/go/internal/bounded"
	"github.com/multilock/go/multilock/vfs"
)

// Dir is a directory that several goroutines use, and that is opened again
// when the one behind its name has been replaced. A descriptor is closed when its
// last user is done with it: closed earlier, its number could come to mean
// another directory in the middle of a call.
type Dir struct {
	open func(Opener) (vfs.Dir, error)

	mu  bounded.Turn
	way Opener
	cur *Handle
}

// Opener opens the directory name in another one.
type Opener func(parent vfs.Dir, name string) (vfs.Dir, error)

// Entered opens a directory as an NFS client remembers it, which costs no request. What is
// asked of a directory that is gone or was replaced since says so: then it is Afresh.
func Entered(parent vfs.Dir, name string) (vfs.Dir, error) { return parent.Enter(name) }

// Afresh opens the directory that has the name now, by the server's word.
func Afresh(parent vfs.Dir, name string) (vfs.Dir, error) {
	if _, err := parent.Stat(); err != nil {
		return nil, err
	}
	return parent.OpenDir(name)
}

// NewDir is a directory that is opened as open says, when it is used: Entered, but Afresh
// after one had to be dropped.
func NewDir(open func(Opener) (vfs.Dir, error)) *Dir { return &Dir{open: open, way: Entered} }

// Handle is one opened directory and the number of its users, guarded by the
// mutex of its Dir.
type Handle struct {
	vfs.Dir
	users   int
	dropped bool
}

// Use returns the directory, opened if need be. Every Use needs a Done.
func (d *Dir) Use() (*Handle, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.cur == nil {
		opened, err := d.open(d.way)
		if err != nil {
			return nil, err
		}
		d.cur = &Handle{Dir: opened}
	}
	d.cur.users++
	return d.cur, nil
}

// Present returns the directory that has the name now: the one that was opened
// before may have been removed, and made again by somebody else. It fetches the
// directory's attributes, which makes an NFS client forget the names in it if it
// has changed.
func (d *Dir) Present() (*Handle, error) {
	for range Rounds() {
		h, err := d.Use()
		if err != nil {
			return nil, err
		}
		info, err := h.Stat()
		if err == nil && info.Links > 0 {
			return h, nil
		}
		if err == nil || vfs.Gone(err) {
			d.Drop(h)
		}
		d.Done(h)
		if err != nil && !vfs.Gone(err) {
			return nil, err
		}
	}
	return nil, syscall.ENOENT
}

// Done gives back what Use or Keep was given.
func (d *Dir) Done(h *Handle) {
	d.mu.Lock()
	defer d.mu.Unlock()
	h.users--
	d.closeIfUnused(h)
}

// Drop makes the next use open the directory anew, if h is still the one in use.
func (d *Dir) Drop(h *Handle) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.cur == h {
		d.cur, d.way = nil, Afresh
	}
	h.dropped = true
	d.closeIfUnused(h)
}

func (d *Dir) closeIfUnused(h *Handle) {
	if h.dropped && h.users == 0 {
		_ = h.Close() // a directory that was only looked through
	}
}

// Close drops whatever is open.
func (d *Dir) Close() {
	d.mu.Lock()
	cur := d.cur
	d.mu.Unlock()
	if cur != nil {
		d.Drop(cur)
	}
}

// Keep adds a user to a directory that is in use already.
func (d *Dir) Keep(h *Handle) {
	d.mu.Lock()
	defer d.mu.Unlock()
	h.users++
}

// A step starts over when things moved under it. Each time somebody else made
// progress, so a few rounds follow each other at once.
//
// Then they pause. A kernel lets those who wait for a directory in one after the
// other: contenders that make the group and barriers that remove it, all without a
// pause, can fall into step and get in each other's way for ever. Pauses that are
// drawn break the step.
const (
	promptRounds  = 10
	maxRounds     = 200
	maxRoundPause = 20 * time.Millisecond
)

// Rounds yields as often as a step may start over, two seconds' worth.
func Rounds() iter.Seq[int] {
	return func(yield func(int) bool) {
		bound := 100 * time.Microsecond
		for n := range maxRounds {
			if n >= promptRounds {
				time.Sleep(rand.N(bound)) //nolint:gosec // jitter needs no secrecy
				bound = min(2*bound, maxRoundPause)
			}
			if !yield(n) {
				return
			}
		}
	}
}
