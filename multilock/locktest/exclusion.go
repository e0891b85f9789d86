package locktest

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

const (
	exclusionSources    = 4
	exclusionGoroutines = 3 // of each source
)

func testMutualExclusion(p *place) {
	newArena(p).compete(multilock.Options{})
}

// testMutualExclusionAfterASilentHolder has all rivals watch, break and take over the same lock at the same
// time.
func testMutualExclusionAfterASilentHolder(p *place) {
	silent := p.lease(p.open(), "nightly", p.claim())
	newArena(p).compete(multilock.Options{})
	require.ErrorIs(p, silent.Renew(p.ctx), source.ErrLost)
	require.ErrorIs(p, silent.Release(p.ctx), source.ErrLost)
}

// arena is what the lock protects: a counter that loses counts, and reports the overlap, if two work on it
// at the same time.
type arena struct {
	*place
	inside  atomic.Int32
	counter atomic.Int64 // read and written in two steps
	mu      sync.Mutex
	history bytes.Buffer
}

func newArena(p *place) *arena { return &arena{place: p} }

// compete has all rivals do their rounds, and checks what they did and saw.
func (a *arena) compete(opt multilock.Options) {
	results := make(chan error)
	for i := range exclusionSources {
		src := a.open()
		for j := range exclusionGoroutines {
			rival := rival{arena: a, src: src, opt: opt, recorder: NewRecorder(a, fmt.Sprintf("source %d, goroutine %d", i, j))}
			go func() {
				var err error
				for n := 0; err == nil && n < a.fixture.rounds(); n++ {
					err = rival.round(a.work)
				}
				results <- err
			}()
		}
	}
	for range exclusionSources * exclusionGoroutines {
		require.NoError(a, <-results)
	}
	require.EqualValues(a, exclusionSources*exclusionGoroutines*a.fixture.rounds(), a.counter.Load(), "no count is lost")
	a.check()
}

// check checks the rivals' events.
func (a *arena) check() {
	events, err := ReadEvents(&a.history)
	require.NoError(a, err)
	require.NoError(a, Check(events))
}

// Write collects the recorders' lines.
func (a *arena) Write(line []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.history.Write(line)
}

// work is what two rivals must not do at the same time.
func (a *arena) work() error {
	if company := a.inside.Add(1); company != 1 {
		return fmt.Errorf("%d are inside at a time", company)
	}
	before := a.counter.Load()
	runtime.Gosched()
	a.counter.Store(before + 1)
	a.inside.Add(-1)
	return nil
}

type rival struct {
	*arena
	src      source.Source
	opt      multilock.Options
	recorder *Recorder
}

// round records when it has the lock, does work under it, and records when it has released it.
func (r rival) round(work func() error) error {
	start := Now()
	lock, err := multilock.Acquire(r.ctx, r.src, "nightly", r.opt)
	if err != nil {
		return err
	}
	e := Event{Name: "nightly", Token: lock.Record().Token}
	err = r.recorder.Note(lock, Acquired, start)
	if r.fixture.Fences {
		err = errors.Join(err, unlessOver(r.fence(lock, e)))
	}
	err = errors.Join(err, work(), r.recorder.Record(e.as(Releasing)), unlessOver(lock.Release(r.ctx)))
	return errors.Join(err, r.recorder.Record(e.as(Released)))
}

// unlessOver drops the error of a lock that ended by time.
func unlessOver(err error) error {
	if errors.Is(err, source.ErrOver) {
		return nil
	}
	return err
}

func (r rival) fence(lock *multilock.Lock, e Event) error {
	start := Now()
	number, err := lock.Fence(r.ctx)
	if err != nil {
		return err
	}
	e = e.as(Fenced).from(start)
	e.Fence = number
	return r.recorder.Record(e)
}
