package nfs_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/cooklock"
	"github.com/multilock/go/multilock/locktest"
	"github.com/multilock/go/multilock/vfs"
	"github.com/multilock/go/multilock/vfs/faultfs"
)

// swapperVariable tells a process of the role "swapper" what to do, as JSON.
const swapperVariable = "MULTILOCK_SWAPPER"

// swapperPlan is what one swapper is told. Its values begin with its name.
type swapperPlan struct {
	Base string
	Name string
	Log  string // the file of its events, which is not on the share
	Halt string // the call at which it stops itself in its first swap, if any
}

// halts are the calls of a swap at which standing still, or dying, leaves most to
// others: what the process found before is old when it goes on, or what it began is
// for others to end. It stops right before such a call, or right after the server has
// carried it out.
func halts() []string {
	return []string{"after next", "before publishing", "after preparing", "before next", "before closing", "after publishing"}
}

func atHalt(name string) func(faultfs.Op) bool {
	return func(op faultfs.Op) bool {
		from, to := filepath.Base(op.Real), filepath.Base(op.Target)
		before, after := op.Phase == faultfs.Before, op.Phase == faultfs.After
		switch name {
		case "after preparing": // its value is on stable storage, and nobody knows of it
			return after && op.Kind == "sync"
		case "before next": // its value is in live
			return before && op.Kind == "rename" && to == "next"
		case "after next": // which it may have won or not
			return after && op.Kind == "rename" && to == "next"
		case "before closing": // it has emptied live
			return before && op.Kind == "rmdir" && from == "live"
		case "before publishing": // live is gone
			return before && op.Kind == "rename" && from == "next"
		case "after publishing": // the old epoch is still there
			return after && op.Kind == "rename" && from == "next"
		}
		return false
	}
}

// playSwapper swaps until its input ends, or it is killed.
func playSwapper(text string) error {
	var plan swapperPlan
	if err := json.Unmarshal([]byte(text), &plan); err != nil {
		return err
	}
	files := faultfs.New(vfs.OS{}, stopOnce(atHalt(plan.Halt)))
	dir, err := cooklock.OpenDirectory(cooklock.DirectoryOptions{Base: plan.Base, FS: files})
	if err != nil {
		return err
	}
	defer dir.Close()
	register, err := dir.Register("nightly")
	if err != nil {
		return err
	}
	log, err := os.OpenFile(plan.Log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o666)
	if err != nil {
		return err
	}
	defer log.Close()
	s := hostSwapper{register: register, tell: tellTo(log), name: plan.Name}
	return s.swapUntil(inputEnds(), func() { files.Inject(nil) })
}

// tellTo writes each event with one call, so nothing is lost when the process is
// killed later, and at most the end of a line when it is killed then.
func tellTo(log io.Writer) func(locktest.SwapEvent) error {
	lines := json.NewEncoder(log)
	return func(e locktest.SwapEvent) error { return lines.Encode(e) }
}

func inputEnds() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	return ctx
}

// swapUntil swaps until ctx ends, and never gives up in the middle. Not to be told
// what became of a swap is an answer; to be refused is none here.
func (s hostSwapper) swapUntil(ctx context.Context, afterFirst func()) error {
	for n := 0; ctx.Err() == nil; n++ {
		err := s.round(context.WithoutCancel(ctx), n)
		if err != nil && !errors.Is(err, multilock.ErrUnsure) {
			return err
		}
		if n == 0 {
			afterFirst()
		}
	}
	return nil
}

// swapper is the test's end of such a process. Its parent is the lab's program "on".
type swapper struct {
	*exec.Cmd
	host  host
	log   string
	input io.Closer
}

func (s *swapper) text(t testing.TB) []byte {
	t.Helper()
	text, err := os.ReadFile(s.log)
	require.NoError(t, err)
	return text
}

// told counts the events of a kind.
func (s *swapper) told(t testing.TB, op string) int {
	t.Helper()
	return bytes.Count(s.text(t), []byte(`"Op":"`+op+`"`))
}

// inTheMiddle says whether a swap was begun and has not been answered.
func (s *swapper) inTheMiddle(t testing.TB) bool {
	t.Helper()
	return s.told(t, "begin") > s.told(t, "end")+s.told(t, "unsure")
}

func (s *swapper) signal(t testing.TB, number unix.Signal) {
	t.Helper()
	require.NoError(t, unix.Kill(s.pid(t), number))
}

// pid is the process's number on the server, as the only child that "on" has.
func (s *swapper) pid(t testing.TB) int {
	t.Helper()
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", s.Process.Pid))
	require.NoError(t, err)
	var children []byte
	for _, path := range threads {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		children = append(children, text...)
	}
	pid, err := strconv.Atoi(string(bytes.TrimSpace(children)))
	require.NoError(t, err, "%s has ended, or not begun", s.log)
	return pid
}

// standsStill says whether all threads of the process are stopped.
func (s *swapper) standsStill(t testing.TB) bool {
	t.Helper()
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", s.pid(t)))
	require.NoError(t, err)
	for _, path := range threads {
		status, err := os.ReadFile(path)
		require.NoError(t, err)
		if !bytes.Contains(status, []byte("\nState:\tT")) {
			return false
		}
	}
	return len(threads) > 0
}
