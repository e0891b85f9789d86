package command

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/cmd/multilock/internal/printed"
)

// capturing are the options of "run" that capture the job's output.
type capturing struct {
	quietSuccess bool
	log          string
	logKeep      console.Number
	group        groupCapturing
}

// capturedOutput captures the output of all attempts, unless it goes directly to our own streams.
type capturedOutput struct {
	env     *console.Env
	streams []*capturedStream // one for both streams, or one each; none if the job inherits ours

	log   *os.File        // nil without --log
	path  string          // of the log
	group *printed.RunLog // nil without --capture
	show  bool            // if the run fails
	tee   bool            // show it immediately
	done  chan struct{}   // closed after the last attempt's output was copied

	mu        sync.Mutex
	lost      error  // why the log is incomplete
	groupLost error  // why the output stored with the locks is incomplete
	tail      []byte // the end of the output
	over      error  // why capturing stopped, nil while it continues
}

// outputTimeout limits how long the lock is held after the job's end until its output is written: a pipe may
// have a stalled reader, a log an unreachable server.
const outputTimeout = 10 * time.Second

// finish ends an attempt's captures. Writes that take too long are abandoned, and reported at the end.
func (k *capturedOutput) finish(out captures) {
	done := make(chan struct{})
	k.done = done
	go func() {
		defer close(done)
		_ = out.finish() // errors are reported at the end
	}()
	select {
	case <-done:
	case <-time.After(outputTimeout):
		k.mu.Lock()
		defer k.mu.Unlock()
		k.over = fmt.Errorf("it was still being written %s after the command's end, and the lock does not wait for that", console.Short(outputTimeout))
	}
}

// missing returns why the log is incomplete.
func (k *capturedOutput) missing() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return cmp.Or(k.over, k.lost)
}

// maxTail is how much of a job's output a hook receives.
const maxTail = 10_000

// last returns the end of the job's output.
func (k *capturedOutput) last() []byte {
	k.mu.Lock()
	defer k.mu.Unlock()
	return bytes.Clone(k.tail[max(len(k.tail)-maxTail, 0):])
}

// remember keeps the end of the output in bounded memory.
func (k *capturedOutput) remember(data []byte) {
	if len(k.tail) > 4*maxTail {
		k.tail = append(k.tail[:0], k.tail[len(k.tail)-maxTail:]...)
	}
	k.tail = append(k.tail, data...)
}

// capturedStream is one of the job's streams.
type capturedStream struct {
	all *capturedOutput
	to  *os.File // our own stream, which shows it

	spool  *os.File     // nil if it is not shown later
	lost   error        // why the spool is incomplete
	group  *printed.Job // nil without --capture
	unread error        // why showing it stopped
}

// open prepares the captures. Errors occur here, before the job is started, rather than while it runs.
func (k *capturedOutput) open(opt capturing, run logOf) (err error) {
	k.show = opt.quietSuccess
	k.tee = k.group != nil && !k.show && opt.log == ""
	if k.show || opt.log != "" || k.group != nil {
		k.streams = k.streamsOf()
	}
	if opt.log != "" {
		if k.log, k.path, err = run.openInTime(opt.log, opt.logKeep.Value); err != nil {
			return fmt.Errorf("--log: %w", err)
		}
	}
	for _, s := range k.streams {
		if k.show {
			err = errors.Join(err, s.makeSpool())
		}
	}
	return err
}

// streamsOf returns one stream for both, unless they must be shown separately.
func (k *capturedOutput) streamsOf() []*capturedStream {
	out, err := &capturedStream{all: k, to: k.env.Stdout}, &capturedStream{all: k, to: k.env.Stderr}
	if !k.show && !k.tee || sameFile(k.env.Stdout, k.env.Stderr) {
		return []*capturedStream{out}
	}
	return []*capturedStream{out, err}
}

// sameFile reports whether two streams lead to the same file, so that the order of their output matters.
func sameFile(a, b *os.File) bool {
	first, err := a.Stat()
	if err != nil {
		return false
	}
	second, err := b.Stat()
	return err == nil && os.SameFile(first, second)
}

// makeSpool creates an unlinked file, which disappears with this process.
func (s *capturedStream) makeSpool() error {
	file, err := os.CreateTemp("", "multilock-")
	if err == nil {
		s.spool, err = file, os.Remove(file.Name())
	}
	if err != nil {
		return fmt.Errorf("--quiet-success: the output cannot be kept back (another directory can be named with TMPDIR): %w", err)
	}
	return nil
}

// capture captures one attempt. It returns none if the job inherits our own streams.
func (k *capturedOutput) capture() (captures, error) {
	var logs []openLog
	for _, s := range k.streams {
		logs = append(logs, func() (jobLog, error) { return s, nil })
	}
	return captureTo(logs...)
}

// Write fails only if the reader of our own stream is gone, which ends a job without a capture, too.
func (s *capturedStream) Write(data []byte) (int, error) {
	s.all.mu.Lock()
	s.all.remember(data)
	s.all.mu.Unlock()
	if s.spool != nil {
		s.put(s.spool, &s.lost, data)
	}
	if s.all.log != nil {
		s.put(s.all.log, &s.all.lost, data)
	}
	if s.group != nil {
		s.put(s.group, &s.all.groupLost, data)
	}
	if s.all.tee && s.unread == nil {
		_, s.unread = s.to.Write(data)
	}
	if errors.Is(s.unread, syscall.EPIPE) {
		return 0, s.unread
	}
	return len(data), nil
}

// put writes to one file until its first error. It may block forever, but blocks only this stream.
func (s *capturedStream) put(to io.Writer, lost *error, data []byte) {
	s.all.mu.Lock()
	no := cmp.Or(*lost, s.all.over)
	s.all.mu.Unlock()
	if no != nil {
		return
	}
	_, err := to.Write(data)
	s.all.mu.Lock()
	defer s.all.mu.Unlock()
	*lost = cmp.Or(*lost, err)
}

// Flush makes the output visible to other hosts. Only output stored with the locks is buffered.
func (s *capturedStream) Flush() error {
	if s.group != nil {
		s.all.uncaptured(s.group.Flush())
	}
	return nil
}

// Close ends an attempt. Other attempts may follow.
func (s *capturedStream) Close() error {
	if s.group != nil {
		s.all.uncaptured(s.group.Close())
	}
	return nil
}

// end runs after the release, so that no lock is held during the wait for a reader or a log's server. Closing
// stop ends the output.
func (k *capturedOutput) end(stop <-chan struct{}, failed error) {
	if k != nil && k.show && failed != nil {
		k.showAll(stop)
	}
	if k == nil {
		return
	}
	if k.tee && k.done != nil {
		select {
		case <-k.done: // a slow reader keeps reading
		case <-stop:
		}
	}
	k.mu.Lock()
	lost := cmp.Or(k.over, k.groupLost)
	k.mu.Unlock()
	if k.group != nil && lost != nil {
		k.env.Say("warning: the command's output was not captured as a whole: %v", lost)
	}
	if k.log == nil {
		return
	}
	if err := errors.Join(k.missing(), k.log.Close()); err != nil {
		k.env.Say("warning: the log of the command's output is not complete: %v", err)
	}
	if failed != nil {
		k.env.Say("the command's output is in %s", k.path)
	}
}

// showAll copies the captured output to our own streams.
func (k *capturedOutput) showAll(stop <-chan struct{}) {
	k.env.Flush()
	shown := make(chan error, 1)
	go func() {
		var all error
		for _, s := range k.streams {
			all = errors.Join(all, s.show())
		}
		shown <- all
	}()
	select {
	case err := <-shown:
		if err != nil {
			k.env.Say("warning: the command's output is not shown as a whole: %v", err)
		}
	case <-stop:
		k.env.Say("the command's output was not shown completely, because this process is terminating")
	}
}

// show is called once for each stream. The system closes the file.
func (s *capturedStream) show() error {
	if s.spool == nil {
		return nil
	}
	if _, err := s.spool.Seek(0, io.SeekStart); err != nil {
		return err
	}
	_, err := io.Copy(s.to, s.spool)
	s.all.mu.Lock()
	defer s.all.mu.Unlock()
	return errors.Join(cmp.Or(s.lost, s.all.over), err)
}
