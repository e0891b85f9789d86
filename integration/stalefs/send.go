//go:build linux

package stalefs

import (
	"syscall"
	"time"
)

// reach waits until the server can be reached, or gives up on a soft mount.
func (c *client) reach() error {
	if c.path.pass(c.opt.Soft) && c.server.up.pass(c.opt.Soft) {
		return nil
	}
	return syscall.ETIMEDOUT
}

// send has the server carry a call out that changes something, unless a fault
// strikes. The objects are those that the call needs. It may be executed twice,
// and after send has returned.
func (c *client) send(kind Kind, name string, execute func() error, objects ...*object) error {
	if err := c.reach(); err != nil {
		return err
	}
	f := c.draw(kind, name)
	time.Sleep(f.Before)
	defer time.Sleep(f.After)
	switch f.Outcome {
	case Retransmitted:
		_ = execute()
		return execute()
	case Lost:
		_ = execute()
		return f.Errno
	case Dropped:
		return f.Errno
	case Zombie:
		c.server.keep(objects...)
		c.server.later(f.Later, func() {
			_ = execute()
			c.server.drop(objects...)
		})
		return f.Errno
	}
	return execute()
}

// draw numbers a call and decides what happens to it.
func (c *client) draw(kind Kind, name string) Fault {
	c.mu.Lock()
	call, inject := Call{N: c.calls, Kind: kind, Name: name}, c.inject
	c.calls++
	c.mu.Unlock()
	if inject == nil {
		return Fault{}
	}
	return inject(call)
}
