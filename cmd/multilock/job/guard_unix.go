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

// GuardArg is the first argument of a guard process.
// A program that starts jobs must begin its main with
//
//	if len(os.Args) > 1 && os.Args[1] == job.GuardArg {
//		os.Exit(job.Guard(os.Stdin))
//	}
const GuardArg = "__guard"

// guardDelay spares short jobs the cost of a guard.
const guardDelay = 100 * time.Millisecond

// order is the guard's first message. It goes through the pipe, because all users of the host can
// read arguments.
type order struct {
	PGID  int           `json:"pgid"`
	Mark  []byte        `json:"mark"` // not a string: JSON would change bytes that are not UTF-8
	Grace time.Duration `json:"grace"`
	deadline
}

// expectGuard starts a guard once the job has lived for guardDelay. It uses a timer, because
// starting a goroutine costs as much as several system calls.
func (j *Job) expectGuard() {
	j.helpers.Add(1)
	j.awaited = time.AfterFunc(guardDelay, func() {
		defer j.helpers.Done()
		j.guard()
	})
}

// spareGuard cancels the start of a guard when the job is over.
func (j *Job) spareGuard() {
	if j.awaited.Stop() {
		j.helpers.Done()
	}
}

// guard keeps a guard for the rest of the job's life, and replaces one that reads no messages. It
// kills and reaps the guard at the end of the job.
func (j *Job) guard() {
	for !isClosed(j.over) {
		pid, lifeline, err := j.startGuard()
		if err != nil {
			return // the job only needs a guard if its runner dies
		}
		j.feed(lifeline)
		_ = syscall.Kill(pid, syscall.SIGKILL)
		reap(pid)
		_ = lifeline.Close() // last: closing it makes the guard act
	}
}

func reap(pid int) {
	for {
		if _, err := syscall.Wait4(pid, nil, 0, nil); err != syscall.EINTR {
			return
		}
	}
}

// startGuard returns the guard and the write end of its pipe. That end is closed on exec, so its
// closing shows the guard that the runner has ended.
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

// forkGuard shares nothing with the caller: the guard has its own session, out of reach of the
// terminal; the root as its directory, to keep no file system mounted; the null device, to keep no
// pipe open; and an empty environment, without the mark. The number is for people who list
// processes.
//
// It does not use os/exec, which first probes clone(2) with a child in the runner's group that
// shares the runner's memory and handlers. If the job is stopped in that moment, the child gets the
// signal as a member of the group, and the job, continued by fg, would be stopped once more
// (checkPidfd in os/pidfd_linux.go).
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

// Guard runs the guard of a job. It reads its order from the lifeline, its standard input. It acts
// when the other end is closed, because the runner died without ending the job, or when the job's
// allowance is over without a message about a longer one, because the runner is stopped. It then
// ends the job as Job.Stop does and returns the exit code for main: 0 if no process of the job is
// left, 1 otherwise. It prints nothing.
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
	remains.alive = false // at most the runner kept its number reserved
	if err := remains.end(context.Background(), last.grace(what.Grace)); err != nil {
		return 1
	}
	return 0
}

// deadline is when the guard sends SIGTERM and SIGKILL unless it gets another message, on the clock of
// boottime.Instant.Shared. The zero value means never.
type deadline struct {
	Term time.Duration `json:"term"`
	Kill time.Duration `json:"kill"`
}

// deadline returns the deadline for the present allowance. While the runner is ending the job, it
// sends SIGTERM itself.
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

// feed sends each new allowance to the guard, until the job is over or the guard does not read: it
// is dead, or has been stopped for a long time.
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

// send writes one whole line or nothing, without blocking.
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

// await returns the last deadline when it has come or the runner is dead. It reads all pending
// messages first, because the guard may have been stopped as well.
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

// readable waits for input or EOF; without a limit if patience is negative.
func (l *listener) readable(patience time.Duration) bool {
	milliseconds := -1
	if patience >= 0 {
		milliseconds = int((patience + time.Millisecond - 1) / time.Millisecond)
	}
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(l.fd), Events: unix.POLLIN}}, milliseconds)
	return err == nil && n > 0
}

// longestPause bounds a sleep of the guard, because poll(2) does not count the time for which the
// machine is suspended.
const longestPause = time.Second

func (d deadline) pause() time.Duration {
	if d.Term == 0 {
		return -1
	}
	return min(max(d.Term-boottime.Now().Shared(), 0), longestPause)
}

func (d deadline) come() bool { return d.Term != 0 && boottime.Now().Shared() >= d.Term }

// grace returns the time between SIGTERM and SIGKILL: the usual one, or the rest of it.
func (d deadline) grace(usual time.Duration) time.Duration {
	if d.Kill == 0 {
		return usual
	}
	return min(usual, max(d.Kill-boottime.Now().Shared(), 0))
}
