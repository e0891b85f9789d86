//go:build linux

package soak_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/locktest"
)

// localDir is on no share, and all hosts see it; the lab hands out what is in it.
const localDir = "/out"

// soak is one run.
type soak struct {
	settings
	base    string // as the server has it
	names   []string
	hosts   []*host
	rng     *rand.Rand
	out     io.Writer
	journal *journal
	crew    *crew
	weather *weather
	result  *result
	started time.Time
}

func prepare(set settings, hosts []*host, out io.Writer) (*soak, error) {
	base, err := os.MkdirTemp(serverShare, "soak-")
	if err != nil {
		return nil, err
	}
	local := filepath.Join(localDir, filepath.Base(base))
	if err := errors.Join(os.Chmod(base, 0o777), os.Mkdir(local, 0o777)); err != nil { //nolint:gosec // as shared as the share
		return nil, err
	}
	history, err := os.Create(filepath.Join(local, "history.jsonl"))
	if err != nil {
		return nil, err
	}
	s := &soak{
		settings: set, base: base, names: []string{"alpha", "beta", "gamma"}, hosts: hosts, out: out,
		rng: rand.New(rand.NewPCG(set.seed, 0)), journal: newJournal(history), result: newResult(out),
	}
	plan := shift{Base: filepath.Join(hostShare, filepath.Base(base)), Local: local, Names: s.names, TTL: set.ttl, Broken: set.broken}
	s.crew = newCrew(plan, s.journal, s.result, hosts, set.workers)
	s.weather = newWeather(s.rng, set.ttl, hosts, s.crew)
	return s, nil
}

// How long the cluster may take to make progress once nothing is wrong any more. A
// TCP connection that was silent for some seconds may stay so for as long again,
// the server answers no renames in its grace period of ten seconds, and all of
// this is emulated on a machine that has other things to do.
const (
	patience  = 2 * time.Minute // for each lock to be taken again
	slowest   = 5 * time.Minute // for each worker to get a lock, and to end
	stuckMore = 5 * time.Minute // for a lock that was called stuck
)

// run injects faults for the set time, and then looks what came of it.
func (s *soak) run() {
	s.started = time.Now()
	working, dismiss := context.WithCancel(context.Background())
	defer dismiss()
	s.crew.start(working, rand.New(rand.NewPCG(s.seed, 1)))
	s.recover("start", s.started)
	s.trouble()
	if !s.untilCaught {
		s.settle()
	}
	dismiss()
	s.goHome()
	s.judge()
	s.report()
}

// trouble is the time of the faults.
func (s *soak) trouble() {
	ctx, cancel := context.WithTimeout(s.result.untilViolated(s.untilCaught), s.duration)
	defer cancel()
	var others sync.WaitGroup
	defer others.Wait()
	others.Go(func() { s.killWorkers(ctx, rand.New(rand.NewPCG(s.seed, 2))) })
	others.Go(func() { s.stopWorkers(ctx, rand.New(rand.NewPCG(s.seed, 3))) })
	others.Go(func() { s.tick(ctx) })
	for ctx.Err() == nil && !s.result.hopeless() {
		pause(ctx, s.weather.between(0.2, 1))
		if ctx.Err() == nil {
			s.round(ctx)
		}
	}
}

// round strikes, heals, and waits for progress. Even when its time is up, it
// leaves nothing broken.
func (s *soak) round(ctx context.Context) {
	faults := s.weather.round()
	var longest time.Duration
	for _, f := range faults {
		s.result.tally(f.kind, true)
		s.result.must(f.strike(context.WithoutCancel(ctx)))
		longest = max(longest, f.lasts)
	}
	pause(ctx, longest)
	for _, f := range slices.Backward(faults) { // the server first: a host that boots needs it
		s.result.must(f.heal(context.WithoutCancel(ctx)))
	}
	s.recover(fmt.Sprint(faults), time.Now())
}

// recover waits until every lock has been acquired since a moment.
func (s *soak) recover(after string, healed time.Time) {
	if s.untilCaught {
		return // a broken protocol need not recover
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	late := s.journal.awaitNames(ctx, s.names, healed)
	for _, name := range late {
		s.result.stick(fmt.Sprintf("%s, %s after %s: %s", name, patience, after, s.look(name)))
	}
	if len(late) == 0 {
		s.result.recovered(time.Since(healed), after)
		return
	}
	ctx, cancel = context.WithTimeout(context.Background(), stuckMore)
	defer cancel()
	s.journal.awaitNames(ctx, s.names, healed)
}

// look tells what the server has of a lock.
func (s *soak) look(name string) string {
	src, err := fslock.Open(fslock.Options{Base: s.base})
	if err != nil {
		return err.Error()
	}
	defer src.Close()
	seen, err := multilock.Inspect(context.Background(), src, name, multilock.Patience{})
	return fmt.Sprintf("%s by %s (%s): %s, %v", seen.State, seen.Record.Holder, seen.Record.Token, seen.Why, err)
}

// killWorkers kills a worker every few seconds, whatever else goes wrong.
func (s *soak) killWorkers(ctx context.Context, rng *rand.Rand) {
	for ctx.Err() == nil {
		pause(ctx, rand64(rng, 2*s.ttl))
		killed, err := s.crew.kill(s.crew.any(rng))
		s.result.tally(workerKill, killed)
		s.result.must(err)
	}
}

// stopWorkers stops one for longer than its TTL.
func (s *soak) stopWorkers(ctx context.Context, rng *rand.Rand) {
	for ctx.Err() == nil {
		pause(ctx, rand64(rng, s.ttl))
		stopped, err := s.crew.suspend(ctx, s.crew.any(rng), s.ttl*5/4+rand64(rng, s.ttl))
		s.result.tally(workerStop, stopped)
		s.result.must(err)
	}
}

// tick prints a line every minute.
func (s *soak) tick(ctx context.Context) {
	minutes := time.NewTicker(time.Minute)
	defer minutes.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-minutes.C:
			fmt.Fprintf(s.out, "%3.0fm  acquired %d, %s\n", time.Since(s.started).Minutes(), s.journal.count(locktest.Acquired), s.result.line())
		}
	}
}

// settle waits until every worker has got a lock after the last fault.
func (s *soak) settle() {
	ctx, cancel := context.WithTimeout(context.Background(), slowest)
	defer cancel()
	for _, name := range s.journal.awaitSlots(ctx, s.crew.names(), time.Now()) {
		s.result.stick(fmt.Sprintf("the worker %s got no lock for %s after the last fault", name, slowest))
	}
}

// goHome waits for the workers, who were asked to end.
func (s *soak) goHome() {
	home := make(chan struct{})
	go func() { s.crew.done.Wait(); close(home) }()
	timer := time.NewTimer(slowest)
	defer timer.Stop()
	select {
	case <-home:
		return
	case <-timer.C:
	}
	for _, slot := range s.crew.slots {
		if m := slot.member(); m != nil {
			s.result.fail(fmt.Errorf("%s does not end", m.proc))
			m.abort()
		}
	}
	<-home
}

// judge reads what the workers wrote, and the history that the locks keep themselves.
func (s *soak) judge() {
	s.result.check(s.journal.all())
	src, err := fslock.Open(fslock.Options{Base: s.base})
	if err != nil {
		s.result.fail(err)
		return
	}
	defer src.Close()
	events, err := src.History(context.Background(), time.Time{})
	s.result.must(err)
	s.result.takeovers(events)
	if !s.untilCaught {
		s.takeAll(src)
	}
}

// takeAll takes every lock once more, now that no worker lives, and gives it
// back: whatever the dead have left must be nobody's business then.
func (s *soak) takeAll(src *fslock.Source) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for _, name := range s.names {
		nothing := func(context.Context) error { return nil }
		if err := multilock.Do(ctx, src, name, multilock.Options{TTL: s.ttl}, nothing); err != nil {
			s.result.stick(fmt.Sprintf("%s, in the end: %v", name, err))
		}
	}
	left, err := src.Names(ctx)
	s.result.must(err)
	if len(left) > 0 {
		s.result.stick(fmt.Sprintf("%v are left when nothing is held", left))
	}
}
