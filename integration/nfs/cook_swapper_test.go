package nfs_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/multilock/go/internal/testkit/actor"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/cooklock"
	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/locktest"
	"github.com/multilock/go/multilock/vfs"
	"github.com/multilock/go/multilock/vfs/faultfs"
)

// swapperPlan is what one swapper is told. Its values begin with its name.
type swapperPlan struct {
	Base string
	Name string
	Log  string // the file of its events, which is not on the share
	Halt string // the call at which it stops itself in its first swap, if any
	TTL  time.Duration
}

// stopOnce stops this process with SIGSTOP at the first such operation. The signal goes
// to this very thread: sent to the process, another thread may take it, and this one
// would run on for a moment.
func stopOnce(at func(faultfs.Op) bool) faultfs.Injector {
	var once sync.Once
	return func(op faultfs.Op) error {
		if at(op) {
			once.Do(func() {
				runtime.LockOSThread()
				defer runtime.UnlockOSThread()
				_ = unix.Tgkill(os.Getpid(), unix.Gettid(), unix.SIGSTOP)
			})
		}
		return nil
	}
}

// halts are the calls of a swap at which standing still, or dying, leaves most to
// others: what the process found before is old when it goes on, or what it began is
// for others to clear away. It stops right before such a call, or right after the
// server has carried it out.
func halts() []string {
	return []string{"after the swap", "before the swap", "after preparing", "before learning", "before releasing", "after releasing"}
}

func atHalt(name string) func(faultfs.Op) bool {
	return func(op faultfs.Op) bool {
		from, to := filepath.Base(op.Real), filepath.Base(filepath.Dir(op.Target))
		before, after := op.Phase == faultfs.Before, op.Phase == faultfs.After
		switch name {
		case "before learning": // it has the lock, and does not know the value
			return before && op.Kind == "open" && strings.HasSuffix(op.Real, "/done/nightly")
		case "after preparing": // its value is on stable storage, beside the lock
			return after && op.Kind == "sync" && from == "nightly.result"
		case "before the swap":
			return before && op.Kind == "rename" && to == "done"
		case "after the swap": // of which it has not been told
			return after && op.Kind == "rename" && to == "done"
		case "before releasing": // it has been told
			return before && op.Kind == "unlink" && from == "nightly.locked"
		case "after releasing": // the empty directory is still there
			return after && op.Kind == "unlink" && from == "nightly.locked"
		}
		return false
	}
}

// playSwapper swaps until its input ends, or it is killed.
func playSwapper() error {
	var plan swapperPlan
	if err := actor.Part(&plan); err != nil {
		return err
	}
	files := faultfs.New(vfs.OS{}, nil)
	src, err := fslock.Open(fslock.Options{Base: plan.Base, FS: files})
	if err != nil {
		return err
	}
	defer src.Close()
	register := cooklock.LedgerRegister{Ledger: src, Name: "nightly", TTL: plan.TTL}
	log, err := os.OpenFile(plan.Log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o666)
	if err != nil {
		return err
	}
	defer log.Close()
	s := hostSwapper{register: register, tell: plan.halting(files, tellTo(log)), name: plan.Name}
	return s.swapUntil(actor.InputEnds())
}

// halting makes the process stop itself in its first swap. That is what lies between its
// beginning and the event after that: the look before it makes some of the same calls.
func (p swapperPlan) halting(files *faultfs.FS, tell func(locktest.SwapEvent) error) func(locktest.SwapEvent) error {
	halt := stopOnce(atHalt(p.Halt))
	return func(e locktest.SwapEvent) error {
		err := tell(e)
		files.Inject(nil)
		if e.Op == "begin" {
			files.Inject(halt)
			halt = nil
		}
		return err
	}
}

// tellTo writes each event with one call, so nothing is lost when the process is
// killed later, and at most the end of a line when it is killed then.
func tellTo(log io.Writer) func(locktest.SwapEvent) error {
	lines := json.NewEncoder(log)
	return func(e locktest.SwapEvent) error { return lines.Encode(e) }
}

// swapUntil swaps until ctx ends, and never gives up in the middle. Not to be told
// what became of a swap is an answer; to be refused is none here.
func (s hostSwapper) swapUntil(ctx context.Context) error {
	for n := 0; ctx.Err() == nil; n++ {
		err := s.round(context.WithoutCancel(ctx), n)
		if err != nil && !errors.Is(err, multilock.ErrUnsure) {
			return err
		}
	}
	return nil
}

// swapper is the test's end of such a process.
type swapper struct {
	remote
	log string
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
	require.NoError(t, unix.Kill(s.pid(), number))
}

// standsStill says whether all threads of the process are stopped.
func (s *swapper) standsStill(t testing.TB) bool {
	t.Helper()
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", s.pid()))
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

// swapTTL leaves an emulated machine time for the signs of life of all who swap at once.
// The lock of a process that was killed is cleared by the next one on its host.
const swapTTL = 20 * time.Second

// cookRegister is a register as a host's NFS client shows it.
func cookRegister(t testing.TB, p place, h host) cooklock.Register {
	t.Helper()
	return cooklock.LedgerRegister{Ledger: p.source(t, h), Name: "nightly", TTL: swapTTL}
}

// hostSwapper looks at a register and swaps, and tells of all that it does.
type hostSwapper struct {
	register cooklock.Register
	tell     func(locktest.SwapEvent) error
	name     string
}

func (s hostSwapper) round(ctx context.Context, n int) error {
	found, number, err := s.register.Peek(ctx)
	if err != nil {
		return err
	}
	if err := s.tell(locktest.SwapEvent{Op: "peek", Value: string(found), Number: number, Time: locktest.Now()}); err != nil {
		return err
	}
	value := fmt.Sprint(s.name, "-", n)
	if err := s.tell(locktest.SwapEvent{Op: "begin", Value: value, Time: locktest.Now()}); err != nil {
		return err
	}
	old, number, err := locktest.UntilSwapped(2*time.Second, func() ([]byte, uint64, error) { return s.register.Swap(ctx, []byte(value)) })
	return errors.Join(err, s.tell(locktest.SwapAnswer(value, old, number, err)))
}
