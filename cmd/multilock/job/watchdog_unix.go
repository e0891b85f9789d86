//go:build unix

package job

import (
	"bufio"
	"encoding/json"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/multilock/go/multilock/boottime"
)

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
