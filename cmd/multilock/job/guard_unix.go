//go:build unix

package job

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/multilock/go/multilock/boottime"
)

// GuardArg is the first argument of a process that is to be the guard of a job.
// A program that starts jobs must begin its main with
//
//	if len(os.Args) > 1 && os.Args[1] == job.GuardArg {
//		os.Exit(job.Guard(os.Stdin))
//	}
const GuardArg = "__guard"

// guardDelay spares short jobs the cost of a guard.
const guardDelay = 100 * time.Millisecond

// order tells the guard what to do. It goes through the pipe and not through
// the arguments, which everybody on the host can read.
type order struct {
	PGID  int           `json:"pgid"`
	Mark  []byte        `json:"mark"` // not a string: JSON would change bytes that are not UTF-8
	Grace time.Duration `json:"grace"`
	deadline
}

// expectGuard sees to it that a job that lives for guardDelay gets a guard. No
// goroutine waits for that moment: to start one costs as much as several system calls.
func (j *Job) expectGuard() {
	j.helpers.Add(1)
	j.awaited = time.AfterFunc(guardDelay, func() {
		defer j.helpers.Done()
		j.guard()
	})
}

// spareGuard is for a job that is over.
func (j *Job) spareGuard() {
	if j.awaited.Stop() {
		j.helpers.Done()
	}
}

// guard keeps a guard for the rest of the job's life, and another one if that takes no
// news any more. At the end of the job the guard is killed and reaped: it has no say in
// that, and nothing to do.
func (j *Job) guard() {
	for !isClosed(j.over) {
		pid, lifeline, err := j.startGuard()
		if err != nil {
			return // a job is no worse for having none, as long as its runner lives
		}
		j.feed(lifeline)
		_ = syscall.Kill(pid, syscall.SIGKILL)
		reap(pid)
		_ = lifeline.Close() // last, for its end is the guard's cue
	}
}

func reap(pid int) {
	for {
		if _, err := syscall.Wait4(pid, nil, 0, nil); err != syscall.EINTR {
			return
		}
	}
}

// startGuard returns the guard and the end of the pipe that tells it that we
// live. Nobody else has that end: it is closed on exec.
func (j *Job) startGuard() (int, *os.File, error) {
	reader, writer, err := os.Pipe()
	if err != nil {
		return 0, nil, err
	}
	defer reader.Close()
	what := order{PGID: j.pid, Mark: []byte(j.spec.Mark), Grace: j.spec.GuardGrace, deadline: j.deadline()}
	pid := 0
	if err = json.NewEncoder(writer).Encode(what); err == nil {
		pid, err = forkGuard(j.pid, reader)
	}
	if err != nil {
		writer.Close()
		return 0, nil, err
	}
	return pid, writer, nil
}

// forkGuard keeps away from everything that is the caller's: a session of
// its own is out of reach of the terminal, the root directory keeps nothing
// mounted, the null device no pipe open, and an empty environment carries no
// mark. The number is only for those who look at the list of processes.
//
// It is not left to os/exec: that first tries out what clone(2) can do, with a child
// in our group that has our memory and our handlers. If the job is stopped in that
// moment, the child is told so as one of our group, and its handler tells us; and the
// job, continued by fg, would be stopped once more (checkPidfd in os/pidfd_linux.go).
func forkGuard(pgid int, lifeline *os.File) (int, error) {
	path, err := ownExecutable()
	if err != nil {
		return 0, err
	}
	files, done, err := Spec{Stdin: lifeline}.files()
	if err != nil {
		return 0, err
	}
	defer done()
	return syscall.ForkExec(path, []string{os.Args[0], GuardArg, strconv.Itoa(pgid)}, &syscall.ProcAttr{
		Dir: "/", Env: []string{}, Files: files, Sys: &syscall.SysProcAttr{Setsid: true},
	})
}

// Guard is the guard of a job. It reads what to do from the lifeline, which is
// its standard input, and sleeps until the other end is closed, which happens
// when the runner dies without ending the job, or until the job's allowance is over and
// no news of a longer one have come, which happens when the runner is stopped. Then it
// ends the job as Job.Stop does and returns the exit code for main: 0 if no process of
// the job is left, 1 otherwise. It has nobody to tell anything to and prints nothing.
func Guard(lifeline *os.File) int {
	signal.Ignore(syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGPIPE)
	closeInherited()
	news := listener{fd: int(lifeline.Fd()), lines: bufio.NewReader(lifeline)}
	var what order
	if err := news.next(&what); err != nil || what.PGID < 2 {
		return 1
	}
	last := news.await(what.deadline)
	remains := newTree(what.PGID, string(what.Mark))
	remains.alive = false // or will be: the runner was what kept its number
	if err := remains.end(context.Background(), last.grace(what.Grace)); err != nil {
		return 1
	}
	return 0
}

// deadline is what the guard is told with its order, and each time that the allowance
// moves: when to send SIGTERM and SIGKILL if nothing else is heard, on the clock of
// boottime.Instant.Shared. The zero deadline never comes.
type deadline struct {
	Term time.Duration `json:"term"`
	Kill time.Duration `json:"kill"`
}

// deadline is that of the job's present allowance. While we are ending the job, SIGTERM
// is our business.
func (j *Job) deadline() deadline {
	if j.spec.Allowance == nil {
		return deadline{}
	}
	return j.deadlineOf(j.spec.Allowance())
}

func (j *Job) deadlineOf(a Allowance) deadline {
	span := a.Others.Shared() - a.Until.Shared()
	d := deadline{Term: a.Until.Shared() + span/4, Kill: a.Until.Shared() + span*3/4}
	if j.isStopping() {
		d.Term = d.Kill
	}
	return d
}

// feed tells the guard each new allowance, until the job is over or the guard does not
// take it: it is dead then, or has been stopped for very long.
func (j *Job) feed(lifeline *os.File) {
	if j.spec.Allowance == nil {
		<-j.over
		return
	}
	stopping := j.stopping
	for {
		a := j.spec.Allowance()
		if !send(lifeline, j.deadlineOf(a)) {
			return
		}
		select {
		case <-j.over:
			return
		case <-stopping:
			stopping = nil
		case <-a.Renewed:
		}
	}
}

// send writes one line, as a whole or not at all, and waits for nobody.
func send(lifeline *os.File, d deadline) (sent bool) {
	line, err := json.Marshal(d)
	if err != nil {
		return false
	}
	line = append(line, '\n')
	raw, err := lifeline.SyscallConn()
	if err != nil {
		return false
	}
	err = raw.Write(func(fd uintptr) bool {
		n, err := unix.Write(int(fd), line)
		sent = err == nil && n == len(line)
		return true
	})
	return sent && err == nil
}

// listener is the guard's end of the lifeline.
type listener struct {
	fd    int
	lines *bufio.Reader
}

func (l *listener) next(message any) error {
	line, err := l.lines.ReadBytes('\n')
	if err != nil {
		return err
	}
	return json.Unmarshal(line, message)
}

// await returns the last deadline, when that has come or the runner is dead. All that
// was sent is read before: we may have been stopped as well.
func (l *listener) await(d deadline) deadline {
	for {
		if l.lines.Buffered() == 0 && !l.readable(d.pause()) {
			if d.come() {
				return d
			}
			continue
		}
		if err := l.next(&d); err != nil {
			return d
		}
	}
}

// readable waits for news, or for their end, for this time; for as long as it takes if
// that is negative.
func (l *listener) readable(patience time.Duration) bool {
	milliseconds := -1
	if patience >= 0 {
		milliseconds = int((patience + time.Millisecond - 1) / time.Millisecond)
	}
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(l.fd), Events: unix.POLLIN}}, milliseconds)
	return err == nil && n > 0
}

// longestPause is how long the guard may sleep: what it waits with does not count the
// time for which the machine sleeps.
const longestPause = time.Second

func (d deadline) pause() time.Duration {
	if d.Term == 0 {
		return -1
	}
	return min(max(d.Term-boottime.Now().Shared(), 0), longestPause)
}

func (d deadline) come() bool { return d.Term != 0 && boottime.Now().Shared() >= d.Term }

// grace is the time between SIGTERM and SIGKILL: the usual one, or what is left.
func (d deadline) grace(usual time.Duration) time.Duration {
	if d.Kill == 0 {
		return usual
	}
	return min(usual, max(d.Kill-boottime.Now().Shared(), 0))
}
