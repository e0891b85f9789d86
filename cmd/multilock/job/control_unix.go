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

// control does for one job what a shell does for its jobs, and makes the runner look like the job
// to its own shell.
//
// The job gets the terminal at once if the runner has it and neither standard input nor output is a
// pipe. In a pipeline (`run make | less`) another member of the runner's group may need the
// terminal, so there the job gets it on demand: the kernel stops the job with SIGTTIN or SIGTTOU,
// and the runner hands over the terminal and continues the job.
//
// The job is only continued on SIGCONT, never because a call that should have stopped the runner
// has returned: a stop takes effect a little later.
type control struct {
	job   *Job
	eager bool // give the terminal without being asked
	// signals carries SIGCONT and SIGTSTP in one channel, to keep their order: a stop key right
	// after `fg` must not be handled before it.
	signals chan os.Signal

	mu    sync.Mutex
	ended bool
	tty   *terminal // nil without a terminal
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

// catch leaves an ignored SIGTSTP ignored, for the runner and the job.
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

// prepare lets the child take the terminal itself, before it executes the command. If the runner
// gave it later, the command could be stopped first.
func (c *control) prepare(attr *syscall.SysProcAttr) {
	if !c.eager || !c.tty.ours() {
		return
	}
	c.modes = c.tty.modes()
	c.given = true
	attr.Foreground = true
	attr.Ctty = c.tty.fd
}

// serve handles the signals that a shell sends to the runner and means for the job.
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

// resume handles `fg` and `bg`.
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

// finish takes the terminal back when the job is over, and reports whether the job had it. It restores
// the line settings after a job that was killed.
func (c *control) finish(killed bool) (had bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
	// Stopping costs two thread switches, so nothing waits for it.
	go signal.Stop(c.signals)
	if c.tty == nil {
		return false
	}
	had = c.takeBack()
	if had && killed && c.modes != nil {
		_ = c.tty.restore(c.modes) // fails after a hangup, when there is nothing to restore
	}
	_ = c.tty.close()
	c.tty = nil
	return had
}

// lend puts the job into the foreground. It returns false if the terminal does not allow that.
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
		_ = c.tty.give(syscall.Getpgrp()) // fails after a hangup
		c.given = false
	}
	return had
}

// terminal is the controlling terminal, through a descriptor of its own: the job's descriptors may
// lead elsewhere, as in `less <file`, which still reads keys.
type terminal struct {
	fd int
}

// openTerminal returns nil if there is no controlling terminal.
func openTerminal() *terminal {
	fd, err := unix.Open("/dev/tty", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NOCTTY, 0)
	if err != nil {
		return nil
	}
	return &terminal{fd: fd}
}

// ours reports whether the runner's process group is in the foreground. It returns false without a
// terminal, and after a hangup.
func (t *terminal) ours() bool {
	if t == nil {
		return false
	}
	foreground, err := unix.IoctlGetInt(t.fd, unix.TIOCGPGRP)
	return err == nil && foreground == unix.Getpgrp()
}

// give puts a process group of this session into the foreground. In the background this needs a
// blocked SIGTTOU, or the kernel stops the runner (tcsetpgrp(3)).
func (t *terminal) give(pgid int) error {
	return withoutTTOU(func() error {
		return unix.IoctlSetPointerInt(t.fd, unix.TIOCSPGRP, pgid)
	})
}

// modes returns the line settings, nil if they cannot be read.
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
		return // the runner is ending the job and must not be stopped
	}
	had := c.takeBack()
	if orphaned() {
		c.carryOn(sig, had)
		return
	}
	c.suspend(sig, had)
}

// wantsTerminal reports the signals of a background process that reads from the terminal or changes
// it.
func wantsTerminal(sig syscall.Signal) bool {
	return sig == syscall.SIGTTIN || sig == syscall.SIGTTOU
}

// suspend stops the runner, and the members of its group that the same event would have stopped if
// the job were in that group: the terminal's stop key reaches the whole foreground, and so do
// SIGTTIN and SIGTTOU in the background.
//
// The runner stops itself with SIGSTOP because Go, once it has caught SIGTSTP, swallows it instead
// of stopping (sigdisable in runtime/signal_unix.go leaves the handler in place).
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

// carryOn is for a process group that no shell controls, for example below cron or ssh without a shell,
// where nothing would ever continue the runner. In such a group the kernel ignores stops from the
// terminal, so the job continues. If the job needs a terminal that it cannot have, it gets SIGHUP and
// SIGCONT, as POSIX specifies for stopped members of an orphaned group. SIGSTOP only stops the job: the
// runner must renew its lock.
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

// orphaned reports whether the runner's process group is orphaned: no parent outside of it belongs
// to its session (POSIX, Orphaned Process Group). It only looks at the runner's own ancestors,
// which the other members of a pipeline share.
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
