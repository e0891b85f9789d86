package nfs_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/multilock/go/integration/broken"
	"github.com/multilock/go/internal/testkit/actor"
	"github.com/multilock/go/internal/testkit/worker"
	"github.com/multilock/go/multilock/cooklock"
	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/locktest"
	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/vfs"
)

// shift is the input of one worker process.
type shift struct {
	Name   string // its name in the history, never reused
	Base   string
	Names  []string
	TTL    time.Duration
	Seed   uint64
	Swaps  string // directory for the logs of all swaps, not on the share
	Broken string // name of a broken variant, "" for the real protocol
}

// playWorker works until its input ends. Its output is the history.
func playWorker() error {
	var s shift
	if err := actor.Part(&s); err != nil {
		return err
	}
	var system vfs.FS = vfs.OS{}
	if s.Broken != "" {
		v, err := broken.Find(s.Broken)
		if err != nil {
			return err
		}
		system = v.FS()
	}
	src, err := fslock.Open(fslock.Options{Base: s.Base, FS: system})
	if err != nil {
		return err
	}
	w := worker.Worker{
		Source: src, Log: locktest.NewRecorder(os.Stdout, s.Name), Rand: rand.New(rand.NewPCG(s.Seed, 0)),
		Names: s.Names, TTL: s.TTL,
	}
	over := actor.InputEnds()
	if s.Broken != "" { // the variant may break the swaps as well
		return w.Work(over)
	}
	swapped := make(chan error, 1)
	go func() { swapped <- s.swapUntil(over, src, rand.New(rand.NewPCG(s.Seed, 1))) }()
	return errors.Join(w.Work(over), <-swapped)
}

// slot runs one worker at a time on a host. Each process in it has a name of its own.
type slot struct {
	name string // host and number
	host host

	mu  sync.Mutex
	now *soakWorker // nil between two workers
}

type soakWorker struct {
	remote
	name   string
	doomed atomic.Bool // the test is about to kill it
}

func (sl *slot) worker() *soakWorker {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	return sl.now
}

func (sl *slot) enter(w *soakWorker) {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	sl.now = w
}

// fill runs workers in a slot, one after the other. A worker that was not killed must end when
// asked, without an error.
func (s *soak) fill(ctx context.Context, sl *slot, seed uint64) {
	for life := uint64(1); ctx.Err() == nil; life++ {
		part := s.shift
		part.Name, part.Base, part.Seed = fmt.Sprintf("%s.%d", sl.name, life), s.on(sl.host), seed+life
		w := s.start(sl, part)
		stop := context.AfterFunc(ctx, func() { _ = w.Input.Close() })
		err := w.Wait()
		stop()
		sl.enter(nil)
		if !w.doomed.Load() && (err != nil || ctx.Err() == nil) {
			s.Errorf("%s ended by itself: %v", w.name, err)
			return
		}
	}
}

// start waits until the host is up.
func (s *soak) start(sl *slot, part shift) *soakWorker {
	up := s.hosts[sl.host.name]
	up.RLock()
	defer up.RUnlock()
	w := &soakWorker{remote: prepare(s, sl.host, "worker", part), name: part.Name}
	w.Stdout = s.history.In
	w.Start(s)
	sl.enter(w)
	return w
}

// bury records in the history that a worker was killed.
func (s *soak) bury(w *soakWorker) {
	if err := locktest.NewRecorder(s.history.In, w.name).Record(locktest.Event{Kind: locktest.Killed}); err != nil {
		s.Errorf("%s: %v", w.name, err)
	}
}

// kill sends SIGKILL to the worker in a slot, and reports whether there was one.
func (s *soak) kill(sl *slot) bool {
	w, pid := sl.running()
	if pid == 0 {
		return false
	}
	w.doomed.Store(true)
	s.bury(w)
	return unix.Kill(pid, unix.SIGKILL) == nil
}

// suspend stops the worker in a slot for a while.
func (s *soak) suspend(ctx context.Context, sl *slot, d time.Duration) bool {
	_, pid := sl.running()
	if pid == 0 || unix.Kill(pid, unix.SIGSTOP) != nil {
		return false
	}
	worker.Pause(ctx, d)
	_ = unix.Kill(pid, unix.SIGCONT) // the process may have been killed by now
	return true
}

// running returns the worker in a slot and its process ID, 0 if it is not running.
func (sl *slot) running() (w *soakWorker, pid int) {
	if w = sl.worker(); w != nil {
		pid = w.pid()
	}
	return w, pid
}

// crash cuts a host's power. No process is started on the host before it is up again.
func (s *soak) crash(h host) error {
	s.hosts[h.name].Lock()
	var dead []*soakWorker
	for _, sl := range s.slots {
		if w := sl.worker(); w != nil && sl.host == h {
			w.doomed.Store(true)
			dead = append(dead, w)
		}
	}
	err := tool("host", "crash", h.name)
	for _, w := range dead {
		s.bury(w)
	}
	return err
}

func (s *soak) boot(h host) error {
	defer s.hosts[h.name].Unlock()
	return tool("host", "boot", h.name)
}

// cookRegister is the register that all workers swap.
func cookRegister(src source.Ledger, ttl time.Duration) cooklock.Register {
	return cooklock.LedgerRegister{Ledger: src, Name: "nightly", TTL: ttl}
}

// swapper reads and swaps a register, and logs each step. Its values begin with its name. It writes
// each event with one call, so a kill loses no earlier event and truncates at most the one being
// written.
type swapper struct {
	register cooklock.Register
	tell     *json.Encoder
	name     string
}

// swapUntil swaps from time to time and always completes a swap that it has begun. An error of a
// swap is recorded in its event.
func (s shift) swapUntil(over context.Context, src source.Ledger, rng *rand.Rand) error {
	log, err := os.Create(filepath.Join(s.Swaps, s.Name))
	if err != nil {
		return err
	}
	defer log.Close()
	own := swapper{cookRegister(src, s.TTL), json.NewEncoder(log), s.Name}
	for n := 0; worker.Pause(over, worker.UpTo(rng, s.TTL)); n++ {
		if err := own.round(context.WithoutCancel(over), n); err != nil {
			return err
		}
	}
	return nil
}

func (s swapper) round(ctx context.Context, n int) error {
	if found, number, err := s.register.Peek(ctx); err == nil {
		if err := s.tell.Encode(locktest.SwapEvent{Op: "peek", Value: string(found), Number: number, Time: locktest.Now()}); err != nil {
			return err
		}
	}
	value := fmt.Sprint(s.name, "-", n)
	if err := s.tell.Encode(locktest.SwapEvent{Op: "begin", Value: value, Time: locktest.Now()}); err != nil {
		return err
	}
	old, number, err := locktest.UntilSwapped(time.Second, func() ([]byte, uint64, error) { return s.register.Swap(ctx, []byte(value)) })
	return s.tell.Encode(locktest.SwapAnswer(value, old, number, err))
}

// requireOneRegister swaps once more. The logs of all processes must then form the history of one
// register, and all hosts must read the value swapped in last.
func (s *soak) requireOneRegister() {
	s.Helper()
	var told bytes.Buffer
	last := swapper{cookRegister(s.source(s, hosts()[0]), s.shift.TTL), json.NewEncoder(&told), "last"}
	require.NoError(s, last.round(within(s), 0))
	events, err := locktest.ReadSwaps(&told)
	require.NoError(s, err)
	newest := events[len(events)-1]
	require.Equal(s, "end", newest.Op, newest.Error)
	files, err := filepath.Glob(filepath.Join(s.shift.Swaps, "*"))
	require.NoError(s, err)
	for _, path := range files {
		events = append(events, readSwaps(s, path)...)
	}
	confirmed, err := locktest.CheckSwaps(events)
	require.NoError(s, err)
	s.Logf("%d swaps confirmed, by %d processes", confirmed, len(files))
	require.Greater(s, confirmed, 1)
	for _, h := range hosts() {
		value, number, err := cookRegister(s.source(s, h), s.shift.TTL).Peek(within(s))
		require.NoError(s, err)
		require.Equal(s, newest.Value, string(value), h.name)
		require.Equal(s, newest.Number, number, h.name)
	}
	require.Equal(s, []string{"nightly"}, s.entries(s, ".multilock", "groups", ".locks", "done"))
}

func readSwaps(t testing.TB, path string) []locktest.SwapEvent {
	t.Helper()
	file, err := os.Open(path)
	require.NoError(t, err)
	defer file.Close()
	events, err := locktest.ReadSwaps(file)
	require.NoError(t, err)
	return events
}
