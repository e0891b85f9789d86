package nfs_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/multilock/go/internal/testkit/worker"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/locktest"
)

// How long the cluster may take to make progress once all faults have healed. A TCP connection
// without replies for some seconds may take as long to recover, the server accepts no renames in
// its grace period of ten seconds, and all of this is emulated on a busy machine.
const (
	patience = 2 * time.Minute // until each lock has been acquired again
	slowest  = 5 * time.Minute // until each worker has acquired a lock, and until it has ended
)

// trouble injects faults for a while. It ends early when a violation was found.
func (s *soak) trouble(d time.Duration, recovered func(after string)) {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	var others sync.WaitGroup
	defer others.Wait()
	others.Go(func() { s.killWorkers(ctx, s.rng(2)) })
	others.Go(func() { s.stopWorkers(ctx, s.rng(3)) })
	others.Go(func() { s.look(ctx, cancel) })
	w := newWeather(s)
	for worker.Pause(ctx, w.between(0.2, 1)) {
		faults := w.next()
		s.round(ctx, faults)
		recovered(fmt.Sprint(faults))
	}
}

func (s *soak) rng(who uint64) *rand.Rand { return rand.New(rand.NewPCG(s.seed, who)) }

// look checks the history from time to time, and ends the trouble at a violation.
func (s *soak) look(ctx context.Context, found context.CancelFunc) {
	for n := 1; worker.Pause(ctx, s.shift.TTL); n++ {
		events := s.history.All()
		if locktest.Check(events) != nil || s.Failed() {
			found()
		}
		if n%15 == 0 {
			s.Logf("%d acquisitions so far", locktest.Finished(events))
		}
	}
}

// round injects faults and heals them. It heals them even when the time is up.
func (s *soak) round(ctx context.Context, faults []fault) {
	var longest time.Duration
	for _, f := range faults {
		s.tally(f.kind)
		s.must(f.strike())
		longest = max(longest, f.lasts)
	}
	worker.Pause(ctx, longest)
	for _, f := range slices.Backward(faults) { // the server first: a booting host needs it
		s.must(f.heal())
	}
}

func (s *soak) must(err error) {
	if err != nil {
		s.Error(err)
	}
}

// tally counts the injected faults, by kind.
func (s *soak) tally(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tallies[what]++
}

// recover waits until every lock has been acquired again.
func (s *soak) recover(after string) {
	healed := locktest.Now()
	if s.await(s.shift.Names, healed, patience) {
		s.recoveries = append(s.recoveries, (locktest.Now() - healed).Round(time.Millisecond))
		return
	}
	s.Logf("after %s", after)
}

// await waits until each lock, or each slot, has had an acquisition since the given time.
func (s *soak) await(those []string, since, limit time.Duration) bool {
	for end := locktest.Now() + limit; ; time.Sleep(50 * time.Millisecond) {
		late := late(s.history.All(), those, since)
		if len(late) == 0 {
			return true
		}
		if locktest.Now() > end {
			s.Errorf("stuck for %s: %s", limit, late)
			s.tellLocks()
			return false
		}
	}
}

// late returns the locks, or slots, without an acquisition since the given time.
func late(events []locktest.Event, those []string, since time.Duration) (late []string) {
	last := map[string]time.Duration{}
	for _, e := range events {
		if e.Kind == locktest.Acquired {
			place, _, _ := strings.Cut(e.Proc, ".")
			last[e.Name], last[place] = e.Time, e.Time
		}
	}
	for _, name := range those {
		if last[name] < since {
			late = append(late, name)
		}
	}
	return late
}

// tellLocks logs the state of the locks on the server.
func (s *soak) tellLocks() {
	src := s.source(s, hosts()[0])
	for _, name := range s.shift.Names {
		seen, err := multilock.Inspect(context.Background(), src, name, multilock.StalePolicy{})
		s.Logf("%s: %s by %s (%s): %s, %v", name, seen.State, seen.Record.Holder, seen.Record.Token, seen.Why, err)
	}
}

// killWorkers kills a worker every few seconds, independently of the other faults.
func (s *soak) killWorkers(ctx context.Context, rng *rand.Rand) {
	for worker.Pause(ctx, worker.UpTo(rng, 2*s.shift.TTL)) {
		if s.kill(s.slots[rng.IntN(len(s.slots))]) {
			s.tally("worker kill")
		}
	}
}

// stopWorkers stops a worker for longer than its TTL.
func (s *soak) stopWorkers(ctx context.Context, rng *rand.Rand) {
	ttl := s.shift.TTL
	for worker.Pause(ctx, worker.UpTo(rng, ttl)) {
		if s.suspend(ctx, s.slots[rng.IntN(len(s.slots))], ttl*5/4+worker.UpTo(rng, ttl)) {
			s.tally("worker stop")
		}
	}
}

// fault is a fault that lasts for a while and then heals.
type fault struct {
	kind   string
	strike func() error
	heal   func() error
	lasts  time.Duration
}

func (f fault) String() string { return f.kind }

// tools runs one of the lab's commands.
func tools(format string, args ...any) func() error {
	words := strings.Fields(fmt.Sprintf(format, args...))
	return func() error { return tool(words[0], words[1:]...) }
}

// dealer deals the kinds of faults in random order, each as often as the others.
type dealer struct {
	rng  *rand.Rand
	size int
	deck []int
}

func (d *dealer) next() int {
	if len(d.deck) == 0 {
		d.deck = d.rng.Perm(d.size)
	}
	drawn := d.deck[0]
	d.deck = d.deck[1:]
	return drawn
}

// weather generates the faults.
type weather struct {
	*soak
	rng  *rand.Rand
	each dealer // the next kind of fault of a host
	all  dealer // the next kind of fault of the server
}

func newWeather(s *soak) *weather {
	w := &weather{soak: s, rng: s.rng(0)}
	w.each = dealer{rng: w.rng, size: len(w.hostFaults(hosts()[0]))}
	w.all = dealer{rng: w.rng, size: len(w.serverFaults())}
	return w
}

// next returns faults that happen at the same time: on up to two of the hosts, on the server, or on
// all of them.
func (w *weather) next() (faults []fault) {
	shaken := w.rng.IntN(3)
	for _, i := range w.rng.Perm(len(hosts()))[:shaken] {
		faults = append(faults, w.hostFaults(hosts()[i])[w.each.next()])
	}
	if shaken == 0 || w.rng.IntN(2) == 0 {
		faults = append(faults, w.serverFaults()[w.all.next()])
	}
	return faults
}

// between returns a random duration, with bounds in units of the TTL.
func (w *weather) between(least, most float64) time.Duration {
	return time.Duration((least + (most-least)*w.rng.Float64()) * float64(w.shift.TTL))
}

// clockShift returns how many seconds a clock is wrong, at least one: from less than a TTL to so
// many that every lock looks dead by that clock.
func (w *weather) clockShift() int { return int(w.between(0.5, 20).Seconds()) + 1 }

func (w *weather) hostFaults(h host) []fault {
	n := h.name
	percent, ms := 3+w.rng.IntN(25), 20+w.rng.IntN(200)
	wrong := w.clockShift()
	if w.rng.IntN(2) == 0 {
		wrong = -wrong
	}
	return []fault{
		{"host crash", func() error { return w.crash(h) }, func() error { return w.boot(h) }, w.between(0, 2)},
		{"host pause", tools("host pause %s", n), tools("host resume %s", n), w.between(1.2, 3)},
		{"short partition", tools("net cut %s", n), tools("net heal %s", n), w.between(0.1, 0.7)},
		{"long partition", tools("net cut %s", n), tools("net heal %s", n), w.between(1.2, 4)},
		{"lossy link", tools("net loss %s %d", n, percent), tools("net loss %s 0", n), w.between(1, 3)},
		{"slow link", tools("net delay %s %d %d", n, ms, ms/2), tools("net delay %s 0", n), w.between(1, 3)},
		{"loss of all replies", tools("net drop-replies %s on", n), tools("net drop-replies %s off", n), w.between(0.2, 3)},
		{"wrong clock", tools("host clock %s %d", n, wrong), tools("host clock %s 0", n), w.between(0.5, 4)},
	}
}

func (w *weather) serverFaults() []fault {
	shift := w.clockShift()
	ahead, behind := tools("server clock +%d", shift), tools("server clock -%d", shift)
	nothing := func() error { return nil }
	return []fault{
		{"server restart", tools("server stop"), tools("server start"), w.between(0, 2)},
		{"server power cut", tools("server crash"), nothing, 0},
		{"break of all connections", tools("server disconnect"), nothing, 0},
		{"server silence", tools("server unplug"), tools("server plug"), w.between(0.2, 3)},
		{"clock forward", ahead, behind, w.between(0.5, 2)},
		{"clock back", behind, ahead, w.between(0.5, 2)},
	}
}
