//go:build linux

package soak_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/multilock/go/multilock/locktest"
)

// crew is the workers: in every slot there is always one, as long as its host is up.
type crew struct {
	plan     shift // what all have in common
	journal  *journal
	register register
	result   *result
	slots    []*slot
	done     sync.WaitGroup
}

// slot is a worker's place on a host. Each process in it has a name of its own.
type slot struct {
	name string // host and number
	host *host

	mu  sync.Mutex
	now *member // nil between two lives
}

func newCrew(plan shift, journal *journal, result *result, hosts []*host, each int) *crew {
	c := &crew{plan: plan, journal: journal, result: result, register: register{dir: plan.Local}}
	for n := range each {
		for _, h := range hosts {
			c.slots = append(c.slots, &slot{name: fmt.Sprintf("%s-%d", h.name, n), host: h})
		}
	}
	return c
}

// any is a random slot.
func (c *crew) any(rng *rand.Rand) *slot { return c.slots[rng.IntN(len(c.slots))] }

func (c *crew) names() (names []string) {
	for _, s := range c.slots {
		names = append(names, s.name)
	}
	return names
}

// start fills all slots until ctx ends; then the workers end in good order.
func (c *crew) start(ctx context.Context, rng *rand.Rand) {
	for _, s := range c.slots {
		seed := rng.Uint64()
		c.done.Go(func() { c.fill(ctx, s, seed) })
	}
}

// fill runs one worker after the other in a slot.
func (c *crew) fill(ctx context.Context, s *slot, seed uint64) {
	for life := uint64(1); ; life++ {
		boot, err := s.host.awaitUp(ctx)
		if err != nil {
			return
		}
		plan := c.plan
		plan.Proc, plan.Seed = fmt.Sprintf("%s.%d", s.name, life), seed+life
		m, err := startMember(s.host.name, plan)
		if err != nil {
			c.result.fail(fmt.Errorf("start %s: %w", plan.Proc, err))
			return
		}
		s.enter(m)
		ended := c.attend(ctx, s, m)
		s.enter(nil)
		c.result.judge(m, ended, s.host.stillUp(boot))
		if ctx.Err() != nil {
			return
		}
	}
}

// attend listens to a worker until it has ended.
func (c *crew) attend(ctx context.Context, s *slot, m *member) error {
	defer context.AfterFunc(ctx, m.dismiss)()
	err := m.listen(func(e locktest.Event) error { return c.journal.add(s.name, e) })
	return errors.Join(err, m.wait())
}

func (s *slot) enter(m *member) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = m
}

func (s *slot) member() *member {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

// condemn notes that a worker is about to be killed, before it is.
func (c *crew) condemn(s *slot, m *member) error {
	m.condemn()
	return errors.Join(
		c.register.condemn(m.proc),
		c.journal.add(s.name, locktest.Event{Proc: m.proc, Kind: locktest.Killed, Time: locktest.Now()}),
	)
}

// kill ends the worker in a slot as kill -9 does, and reports whether there was one.
func (c *crew) kill(s *slot) (bool, error) {
	m, pid, ok := s.process()
	if !ok {
		return false, nil
	}
	if err := c.condemn(s, m); err != nil {
		return false, err
	}
	return true, signal(pid, unix.SIGKILL)
}

// suspend stops the worker in a slot for a time.
func (c *crew) suspend(ctx context.Context, s *slot, d time.Duration) (bool, error) {
	_, pid, ok := s.process()
	if !ok {
		return false, nil
	}
	if err := signal(pid, unix.SIGSTOP); err != nil {
		return false, err
	}
	pause(ctx, d)
	return true, signal(pid, unix.SIGCONT)
}

// process is the worker in a slot and its number, if there is one.
func (s *slot) process() (m *member, pid int, ok bool) {
	if m = s.member(); m == nil {
		return nil, 0, false
	}
	pid, ok = m.pid()
	return m, pid, ok
}

// bury notes the death of all workers of a host that has crashed.
func (c *crew) bury(h *host) error {
	var err error
	for _, s := range c.slots {
		if m := s.member(); s.host == h && m != nil {
			err = errors.Join(err, c.condemn(s, m))
		}
	}
	return err
}

// signal is no error if the process has ended meanwhile.
func signal(pid int, s unix.Signal) error {
	if err := unix.Kill(pid, s); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("send %s to %d: %w", s, pid, err)
	}
	return nil
}

// pause waits as long as ctx allows.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// describe tells what a worker is to do.
func (s shift) describe() (string, error) {
	text, err := json.Marshal(s)
	return string(text), err
}
