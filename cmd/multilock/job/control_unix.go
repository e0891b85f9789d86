//go:build unix

package job

import (
	"os"
	"os/signal"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// control does for one job what a shell does for its jobs, and makes us look to
// our own shell as if we were the job.
//
// The job gets the terminal at once if it is ours and neither standard input
// nor output is a pipe. In a pipeline (`run make | less`) another member of our
// group may need it, so there the job gets it when it asks: the kernel stops it
// with SIGTTIN or SIGTTOU, and we hand over and continue it.
//
// All continuing is done when SIGCONT comes to us, never because a call that
// should have stopped us has returned: the stop takes effect a little later.
type control struct {
	job   *Job
	eager bool // give the terminal without being asked
	// signals carries SIGCONT and SIGTSTP. It is one channel to keep their order:
	// a stop key pressed right after `fg` must not be taken for one before.
	signals chan os.Signal

	mu    sync.Mutex
	ended bool
	tty   *terminal // nil: none
	given bool      // the job has the terminal
	modes *term.State
}

func newControl(j *Job) *control {
	c := &control{
		job:     j,
		eager:   !isPipe(j.spec.Stdin) && !isPipe(j.spec.Stdout),
		signals: make(chan os.Signal, 16),
		tty:     openTerminal(),
	}
	c.catch()
	return c
}

// catch leaves an ignored SIGTSTP ignored, for us and for the job.
func (c *control) catch() {
	signal.Notify(c.signals, syscall.SIGCONT)
	if !ignored(syscall.SIGTSTP) {
		signal.Notify(c.signals, syscall.SIGTSTP)
	}
}

func isPipe(f *os.File) bool {
	if f == nil {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&(os.ModeNamedPipe|os.ModeSocket) != 0
}

// prepare lets the child take the terminal itself, before it executes the
// command: were we to give it afterwards, the command could be stopped first.
func (c *control) prepare(attr *syscall.SysProcAttr) {
	if !c.eager || !c.tty.ours() {
		return
	}
	c.modes = c.tty.modes()
	c.given = true
	attr.Foreground = true
	attr.Ctty = c.tty.fd
}

// serve handles the signals that a shell sends to us and means for the job.
func (c *control) serve() {
	for {
		select {
		case <-c.job.over:
			return
		case sig := <-c.signals:
			if sig == syscall.SIGCONT {
				c.resume()
			} else {
				_ = c.job.Signal(syscall.SIGTSTP) // fails only when the job is over
			}
		}
	}
}

// resume is what `fg` and `bg` lead to.
func (c *control) resume() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return
	}
	if may := c.job.spec.MayResume; may != nil && !may() {
		return
	}
	if c.eager && c.tty.ours() {
		c.lend()
	}
	_ = c.job.Signal(syscall.SIGCONT)
}

// finish takes the terminal back for good and reports whether the job had it. A
// job that was killed has not put the line settings back.
func (c *control) finish(killed bool) (had bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
	// Nobody reads them any more. Each takes two switches between threads, and
	// nothing has to wait for that.
	go signal.Stop(c.signals)
	if c.tty == nil {
		return false
	}
	had = c.takeBack()
	if had && killed && c.modes != nil {
		_ = c.tty.restore(c.modes) // a terminal that has hung up needs none
	}
	_ = c.tty.close()
	c.tty = nil
	return had
}

// lend puts the job into the foreground. It reports false when the terminal
// would not have it.
func (c *control) lend() bool {
	if c.modes == nil {
		c.modes = c.tty.modes()
	}
	c.given = c.tty.give(c.job.pid) == nil
	return c.given
}

func (c *control) takeBack() (had bool) {
	had = c.given
	if had {
		_ = c.tty.give(syscall.Getpgrp()) // a terminal that has hung up is nobody's
		c.given = false
	}
	return had
}

// terminal is the controlling terminal, through a descriptor of our own, because
// none of the job's descriptors need lead to it: `less <file` still reads keys.
type terminal struct {
	fd int
}

// openTerminal returns nil if we have no controlling terminal.
func openTerminal() *terminal {
	fd, err := unix.Open("/dev/tty", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NOCTTY, 0)
	if err != nil {
		return nil
	}
	return &terminal{fd: fd}
}

// ours reports whether our process group is in the foreground. It is false for
// no terminal and for one that has hung up.
func (t *terminal) ours() bool {
	if t == nil {
		return false
	}
	foreground, err := unix.IoctlGetInt(t.fd, unix.TIOCGPGRP)
	return err == nil && foreground == unix.Getpgrp()
}

// give puts a process group of our session into the foreground. From the
// background that takes a blocked SIGTTOU, or it stops us (tcsetpgrp(3)).
func (t *terminal) give(pgid int) error {
	return withoutTTOU(func() error {
		return unix.IoctlSetPointerInt(t.fd, unix.TIOCSPGRP, pgid)
	})
}

// modes returns the line settings, nil if they cannot be had.
func (t *terminal) modes() *term.State {
	state, err := term.GetState(t.fd)
	if err != nil {
		return nil
	}
	return state
}

func (t *terminal) restore(modes *term.State) error {
	return withoutTTOU(func() error { return term.Restore(t.fd, modes) })
}

func (t *terminal) close() error {
	return unix.Close(t.fd)
}

// stopped is called when the command has stopped.
func (j *Job) stopped(sig syscall.Signal) {
	if j.control != nil {
		j.control.stopped(sig)
	}
}

func (c *control) stopped(sig syscall.Signal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if wantsTerminal(sig) && !c.given && c.tty.ours() && c.lend() {
		_ = c.job.Signal(syscall.SIGCONT)
		return
	}
	if c.job.isStopping() {
		return // whoever ends the job must not be stopped by it
	}
	had := c.takeBack()
	if orphaned() {
		c.carryOn(sig, had)
		return
	}
	c.suspend(sig, had)
}

// wantsTerminal reports the signals of a background process that reads from the
// terminal or changes it.
func wantsTerminal(sig syscall.Signal) bool {
	return sig == syscall.SIGTTIN || sig == syscall.SIGTTOU
}

// suspend stops us, and those of our group whom the same event would have
// stopped if the job were in our group: the terminal's stop key reaches all of
// the foreground, and so do SIGTTIN and SIGTTOU in the background.
//
// SIGSTOP stands in for SIGTSTP on ourselves because Go, once it has caught
// that one, swallows it instead of stopping (sigdisable in
// runtime/signal_unix.go leaves the handler in place).
func (c *control) suspend(sig syscall.Signal, had bool) {
	if wantsTerminal(sig) {
		_ = unix.Kill(0, sig)
		return
	}
	if sig == syscall.SIGTSTP && had {
		suspendPeers()
	}
	_ = unix.Kill(os.Getpid(), syscall.SIGSTOP)
}

// carryOn is for a group that no shell controls, for example below cron or ssh
// without a shell: nobody would ever continue us. The kernel does not let the
// terminal stop such a group, so the job, which is in one only without us, goes
// on; if it wants a terminal it cannot have, it gets what POSIX has for stopped
// members of an orphaned group, SIGHUP and SIGCONT. SIGSTOP is obeyed by the
// job, and not by us, who have a lock to keep.
func (c *control) carryOn(sig syscall.Signal, had bool) {
	if had {
		c.lend()
	}
	switch {
	case wantsTerminal(sig):
		_ = c.job.Signal(syscall.SIGHUP)
		_ = c.job.Signal(syscall.SIGCONT)
	case sig == syscall.SIGTSTP:
		_ = c.job.Signal(syscall.SIGCONT)
	}
}

// orphaned reports that our process group is orphaned: no ancestor outside it,
// next to it, belongs to our session (POSIX, Orphaned Process Group). Only our
// own line of ancestors is looked at; the other members of a pipeline have the
// same.
func orphaned() bool {
	group := syscall.Getpgrp()
	session, err := unix.Getsid(0)
	if err != nil {
		return true
	}
	for pid := os.Getppid(); pid > 0; {
		parentGroup, groupErr := unix.Getpgid(pid)
		parentSession, sessionErr := unix.Getsid(pid)
		if groupErr != nil || sessionErr != nil || parentSession != session {
			return true
		}
		if parentGroup != group {
			return false
		}
		if pid, err = parentOf(pid); err != nil {
			return false
		}
	}
	return true
}
